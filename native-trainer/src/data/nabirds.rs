//! NABirds: 555 visual categories of North American birds in a tree of up to four levels.
//!
//! `hierarchy.txt` gives the parent of each class; the root, 0, is not a level. Where a category is less than four levels
//! deep, it is its own child down to the finest level, which gives 22, 228, 495 and 555 classes (HPDH, section 4.1, and
//! its code).

use std::collections::HashMap;

use akin_base::problem::problem;
use akin_core::taxonomy::{ClassIdentity, fill_from_parent};
use anyhow::Result;

use super::listing::{
    Count, Counts, Entry, ListedImage, Listing, LocalCopy, Source, Split, SplitCounts, damaged,
};
use crate::config::DataKind;

/// NABirds.
pub static ENTRY: Entry = Entry {
    title: "NABirds",
    layout: "images.txt, image_class_labels.txt, train_test_split.txt, classes.txt, hierarchy.txt, images/*/*.jpg",
    content: "22 groups, 228 families, 495 species, 555 plumages; training and test images are of the same classes",
    counts: Some(Counts {
        splits: &[
            SplitCounts { split: "train", images: Count::Exactly(23_929), classes: &[("plumage", 555)] },
            SplitCounts { split: "test", images: Count::Exactly(24_633), classes: &[("plumage", 555)] },
        ],
        classes: &[("group", 22), ("family", 228), ("species", 495), ("plumage", 555)],
        published_in: "HPDH, section 4.1; the upper levels: counted in the published hierarchy.txt",
    }),
    licence: "the terms of the Cornell Lab of Ornithology, to be accepted on its page",
    source: Source::Page("https://dl.allaboutbirds.org/nabirds"),
};

const ROOT: &str = "0";

/// Lists the images of a copy.
pub fn list(copy: &LocalCopy) -> Result<Listing> {
    let root = copy.root("images.txt", &["nabirds"]);
    let pairs = |file: &str| -> Result<HashMap<String, String>> {
        Ok(copy.lines::<2>(&root.join(file), 0)?.into_iter().map(|[key, value]| (key, value)).collect())
    };
    let (class_of, is_training) = (pairs("image_class_labels.txt")?, pairs("train_test_split.txt")?);
    let (names, parent_of) = (pairs("classes.txt")?, pairs("hierarchy.txt")?);
    let depth = DataKind::Nabirds.levels(false).len();

    let path_of = |class: &str| -> Result<Vec<String>> {
        let mut path = Vec::new();
        let mut class = class;
        while class != ROOT {
            let name =
                names.get(class).ok_or_else(|| fault(format!("class {class} has no name in classes.txt")))?;
            path.insert(0, name.clone());
            if path.len() > depth {
                return Err(fault(format!(
                    "class {class} lies more than {depth} levels deep in hierarchy.txt"
                )));
            }
            class = parent_of
                .get(class)
                .ok_or_else(|| fault(format!("class {class} ({name}) has no parent in hierarchy.txt")))?;
        }
        fill_from_parent(&mut path, depth);
        Ok(path)
    };

    let mut paths: HashMap<&str, Vec<String>> = HashMap::new();
    let mut images = Vec::new();
    let file = root.join("images.txt");
    for (line, [image, path]) in (1..).zip(copy.lines::<2>(&file, 0)?) {
        let (Some(class), Some(training)) = (class_of.get(&image), is_training.get(&image)) else {
            return Err(damaged(&file, line, &format!("image {image} has no class or no split")));
        };
        if !paths.contains_key(class.as_str()) {
            paths.insert(class, path_of(class)?);
        }
        images.push(ListedImage::file(
            root.join("images").join(path),
            paths[class.as_str()].clone(),
            if training == "1" { Split::Train } else { Split::Test },
        ));
    }
    Ok(Listing::from_files(images, ClassIdentity::Path))
}

fn fault(message: String) -> anyhow::Error {
    problem(message, "copy classes.txt and hierarchy.txt from the data set again")
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::*;

    const TREE: [(&str, &[u8]); 5] = [
        ("images.txt", b"a-1 0817/a.jpg\nb-2 0817/b.jpg\nc-3 0900/c.jpg\nd-4 0900/d.jpg\n"),
        ("image_class_labels.txt", b"a-1 817\nb-2 817\nc-3 900\nd-4 900\n"),
        ("train_test_split.txt", b"a-1 1\nb-2 0\nc-3 1\nd-4 0\n"),
        (
            "classes.txt",
            b"0 Birds\n1 Perching Birds\n2 Loons\n30 Cardinals and Allies\n400 Lazuli Bunting\n817 Lazuli Bunting (Adult male)\n900 Common Loon\n",
        ),
        ("hierarchy.txt", b"1 0\n2 0\n30 1\n400 30\n817 400\n900 2\n"),
    ];

    #[test]
    fn a_category_that_is_not_four_deep_is_its_own_child() {
        let dataset = read(&files(&TREE), "kind = 'nabirds'");
        assert_eq!(splits(&dataset), [("train", 2), ("test", 2)]);
        assert_eq!(
            labels(&dataset, 0),
            ["Perching Birds", "Cardinals and Allies", "Lazuli Bunting", "Lazuli Bunting (Adult male)"]
        );
        assert_eq!(labels(&dataset, 2), ["Loons", "Common Loon", "Common Loon", "Common Loon"]);
    }

    #[test]
    fn a_class_without_a_parent_is_refused() {
        let refused = |hierarchy: &'static [u8]| {
            let mut tree = TREE;
            tree[4].1 = hierarchy;
            refusal(try_to_read(&files(&tree), "kind = 'nabirds'")).0
        };
        assert_eq!(
            refused(b"1 0\n2 0\n30 1\n817 400\n900 2\n"),
            "class 400 (Lazuli Bunting) has no parent in hierarchy.txt"
        );
        assert!(
            refused(b"1 30\n2 0\n30 1\n400 30\n817 400\n900 2\n").contains("more than 4 levels deep"),
            "a circle"
        );
        assert!(refused(b"1 0\n2 0\n30 1\n400 31\n817 400\n900 2\n").contains("class 31 has no name"));
    }
}
