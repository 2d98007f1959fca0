//! FGVC-Aircraft: photos of aircraft with their manufacturer, family and variant, each in lists of its own.

use std::collections::HashMap;

use akin_core::taxonomy::ClassIdentity;
use anyhow::Result;

use super::listing::{
    Count, Counts, Download, Entry, ListedImage, Listing, LocalCopy, Source, Split, SplitCounts, damaged,
};
use super::storage::Part;

/// The rows at the bottom of each photo that name its photographer. The data set's README asks to remove them.
const FOOTER: u32 = 20;

/// FGVC-Aircraft.
pub static ENTRY: Entry = Entry {
    title: "FGVC-Aircraft",
    layout: "images_{variant,family,manufacturer}_{trainval,test}.txt, images/*.jpg (also in data)",
    content: "30 manufacturers, 70 families, 100 variants; training and test photos are of the same variants",
    counts: Some(Counts {
        splits: &[
            SplitCounts { split: "train", images: Count::Exactly(6_667), classes: &[("variant", 100)] },
            SplitCounts { split: "test", images: Count::Exactly(3_333), classes: &[("variant", 100)] },
        ],
        classes: &[("manufacturer", 30), ("family", 70), ("variant", 100)],
        published_in: "Maji et al., arXiv 1306.5151, and its README",
    }),
    licence: "photos of their photographers, for non-commercial research",
    source: Source::Public(&[Download {
        address: "https://www.robots.ox.ac.uk/~vgg/data/fgvc-aircraft/archives/fgvc-aircraft-2013b.tar.gz",
        md5: None,
    }]),
};

/// Lists the images of a copy.
pub fn list(copy: &LocalCopy) -> Result<Listing> {
    let folders = ["data", "fgvc-aircraft-2013b/data"];
    let root = copy.root("images_variant_trainval.txt", &folders);
    let mut images = Vec::new();
    for (split, part) in [(Split::Train, "trainval"), (Split::Test, "test")] {
        let file = |level: &str| root.join(format!("images_{level}_{part}.txt"));
        let by_image = |level: &str| -> Result<HashMap<String, String>> {
            Ok(copy.lines::<2>(&file(level), 0)?.into_iter().map(|[image, name]| (image, name)).collect())
        };
        let (manufacturers, families) = (by_image("manufacturer")?, by_image("family")?);
        let variants = file("variant");
        for (line, [image, variant]) in (1..).zip(copy.lines::<2>(&variants, 0)?) {
            let (Some(manufacturer), Some(family)) = (manufacturers.get(&image), families.get(&image)) else {
                return Err(damaged(
                    &variants,
                    line,
                    &format!("image {image} has no manufacturer or no family"),
                ));
            };
            images.push(ListedImage {
                path: root.join("images").join(format!("{image}.jpg")),
                part: Part::WithoutFooter(FOOTER),
                junk: Vec::new(),
                labels: vec![manufacturer.clone(), family.clone(), variant],
                split: Some(split),
            });
        }
    }
    Ok(Listing::from_files(images, ClassIdentity::Path))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::*;

    #[test]
    fn the_three_lists_are_joined_and_the_footer_is_cut_off() {
        let photo = image::GrayImage::new(8, 28);
        let mut png = std::io::Cursor::new(Vec::new());
        photo.write_to(&mut png, image::ImageFormat::Png).unwrap();
        let png = png.into_inner();
        let mut tree: Vec<(&str, &[u8])> = vec![
            ("data/images_manufacturer_trainval.txt", b"11 Boeing\n"),
            ("data/images_family_trainval.txt", b"11 Boeing 707\n"),
            ("data/images_variant_trainval.txt", b"11 707-320\n"),
            ("data/images_manufacturer_test.txt", b"12 Boeing\n13 Airbus\n"),
            ("data/images_family_test.txt", b"13 A320\n12 Boeing 707\n"),
            ("data/images_variant_test.txt", b"12 707-320\n13 A321\n"),
            ("data/images/11.jpg", &png),
        ];
        let dataset = read(&files(&tree), "kind = 'aircraft'");
        assert_eq!(splits(&dataset), [("train", 1), ("test", 2)]);
        assert_eq!(labels(&dataset, 0), ["Boeing", "Boeing 707", "707-320"]);
        assert_eq!(labels(&dataset, 2), ["Airbus", "A320", "A321"]);
        let copy = files(&tree);
        let dataset = read(&copy, "kind = 'aircraft'");
        let picture = picture(&dataset, 0);
        assert_eq!((picture.width(), picture.height()), (8, 8));
        tree[4].1 = b"13 A320\n";
        let (message, _) = refusal(try_to_read(&files(&tree), "kind = 'aircraft'"));
        assert!(message.ends_with("line 1: image 12 has no manufacturer or no family"), "{message}");
    }
}
