//! Stanford Online Products: `Ebay_train.txt` and `Ebay_test.txt` list the images with their product and category.

use akin_core::taxonomy::ClassIdentity;
use anyhow::Result;

use super::listing::{Count, Counts, Entry, ListedImage, Listing, LocalCopy, Source, Split, SplitCounts};

/// Stanford Online Products.
pub static ENTRY: Entry = Entry {
    title: "Stanford Online Products",
    layout: "Ebay_train.txt, Ebay_test.txt, CATEGORY_final/*.JPG",
    content: "12 categories of 22,634 products; training and test products differ",
    counts: Some(Counts {
        splits: &[
            SplitCounts { split: "train", images: Count::Exactly(59_551), classes: &[("product", 11_318)] },
            SplitCounts { split: "test", images: Count::Exactly(60_502), classes: &[("product", 11_316)] },
        ],
        classes: &[("category", 12), ("product", 22_634)],
        published_in: "Song et al., CVPR 2016; HAPPIER, section B.1",
    }),
    licence: "photos of eBay listings, for research; no licence is stated",
    source: Source::Page("https://cvgl.stanford.edu/projects/lifted_struct/"),
};

/// Lists the images of a copy.
pub fn list(copy: &LocalCopy) -> Result<Listing> {
    let mut images = Vec::new();
    for (split, file) in [(Split::Train, "Ebay_train.txt"), (Split::Test, "Ebay_test.txt")] {
        for [_, product, category, path] in copy.lines(&copy.path(file), 1)? {
            // The folder is the name of the category; the file has only its number.
            let name = path.split_once("_final/").map_or(category.as_str(), |(name, _)| name).to_owned();
            images.push(ListedImage::file(copy.path(&path), vec![name, product], split));
        }
    }
    Ok(Listing::from_files(images, ClassIdentity::Name))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::*;

    const HEADER: &str = "image_id class_id super_class_id path\n";

    #[test]
    fn products_are_listed_with_their_category() {
        let train = format!(
            "{HEADER}1 1 1 bicycle_final/1_0.JPG\n2 1 1 bicycle_final/1_1.JPG\n3 2 2 cabinet_final/2_0.JPG\n"
        );
        let test = format!("{HEADER}4 3 1 bicycle_final/3_0.JPG\n5 3 1 bicycle_final/3_1.JPG\n");
        let copy = files(&[("Ebay_train.txt", train.as_bytes()), ("Ebay_test.txt", test.as_bytes())]);
        let dataset = read(&copy, "kind = 'sop'");
        assert_eq!(splits(&dataset), [("train", 3), ("test", 2)]);
        assert_eq!(labels(&dataset, 0), ["bicycle", "1"]);
        assert_eq!(labels(&dataset, 4), ["bicycle", "3"]);
        assert_eq!(dataset.paths[2], copy.path().join("cabinet_final/2_0.JPG"));
        let finest = read(&copy, "kind = 'sop'\nlevels = ['product']");
        assert_eq!(labels(&finest, 4), ["3"]);
    }

    #[test]
    fn a_missing_list_is_named_with_the_layout() {
        let copy = files(&[("Ebay_train.txt", HEADER.as_bytes())]);
        let (message, hint) = refusal(try_to_read(&copy, "kind = 'sop'"));
        assert!(message.contains("Ebay_test.txt cannot be read"), "{message}");
        assert!(hint.contains("`sop` holds Ebay_train.txt, Ebay_test.txt"), "{hint}");
    }
}
