//! Omniglot: drawings of characters, in folders by alphabet and character.

use akin_base::problem::problem;
use akin_core::taxonomy::ClassIdentity;
use anyhow::Result;

use super::folder::Tree;
use super::listing::{Count, Counts, Download, Entry, Listing, LocalCopy, Source, Split, SplitCounts};
use super::missing::MissingLabels;

/// Omniglot.
pub static ENTRY: Entry = Entry {
    title: "Omniglot",
    layout: "images_background/ALPHABET/CHARACTER/*.png, images_evaluation/ALPHABET/CHARACTER/*.png",
    content: "50 alphabets of 1,623 characters; training and test alphabets differ",
    counts: Some(Counts {
        splits: &[
            SplitCounts { split: "train", images: Count::Exactly(19_280), classes: &[("character", 964)] },
            SplitCounts { split: "test", images: Count::Exactly(13_180), classes: &[("character", 659)] },
        ],
        classes: &[("alphabet", 50), ("character", 1_623)],
        published_in: "Lake et al., Science 2015, and counted in the published files",
    }),
    licence: "MIT",
    source: Source::Public(&[
        Download {
            address: "https://raw.githubusercontent.com/brendenlake/omniglot/master/python/images_background.zip",
            md5: Some("68d2efa1b9178cc56df9314c21c6e718"),
        },
        Download {
            address: "https://raw.githubusercontent.com/brendenlake/omniglot/master/python/images_evaluation.zip",
            md5: Some("6b91aef0f799c5bb55b94e3f2daec811"),
        },
    ]),
};

/// Lists the images of a copy.
pub fn list(copy: &LocalCopy) -> Result<Listing> {
    let levels = copy.kind.levels(false).iter().map(|&level| level.to_owned()).collect::<Vec<_>>();
    let tree = Tree { levels: &levels, missing: MissingLabels::REFUSED, no_labels: &[] };
    let root = copy.root("images_background", &["python"]);
    let mut images = Vec::new();
    for (split, name) in [(Split::Train, "images_background"), (Split::Test, "images_evaluation")] {
        let folder = root.join(name);
        if !folder.is_dir() {
            return Err(problem(format!("{} is not a folder", folder.display()), copy.layout_hint()));
        }
        tree.walk(&folder, Some(split), &mut images)?;
    }
    // Each alphabet has a character01.
    Ok(Listing::from_files(images, ClassIdentity::Path))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::*;

    #[test]
    fn background_alphabets_are_trained_on() {
        let copy = tree(&[
            "images_background/Greek/character01/0394_01.png",
            "images_background/Greek/character02/0395_01.png",
            "images_evaluation/Angelic/character01/0965_01.png",
        ]);
        let dataset = read(&copy, "kind = 'omniglot'");
        assert_eq!(splits(&dataset), [("train", 2), ("test", 1)]);
        assert_eq!(labels(&dataset, 2), ["Angelic", "character01"]);
        assert_eq!(dataset.taxonomy.class_count(2), 3);
        let (message, hint) =
            refusal(try_to_read(&tree(&["images_background/a/b/c.png"]), "kind = 'omniglot'"));
        assert!(message.ends_with("images_evaluation is not a folder"), "{message}");
        assert!(hint.contains("images_background/ALPHABET"), "{hint}");
    }
}
