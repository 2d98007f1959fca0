//! CUB-200-2011: bird species. The coarse levels are not part of it; they come from a [hierarchy](super::hierarchy).

use std::collections::HashMap;

use akin_core::taxonomy::ClassIdentity;
use anyhow::Result;

use super::hierarchy::Hierarchy;
use super::listing::{
    Count, Counts, Download, Entry, ListedImage, Listing, LocalCopy, Source, Split, SplitCounts, damaged,
};
use crate::config::HierarchyConfig;

/// Classes 1 to 100 are the training classes.
const LAST_TRAINING_CLASS: usize = 100;

/// CUB-200-2011.
pub static ENTRY: Entry = Entry {
    title: "CUB-200-2011",
    layout: "images.txt, image_class_labels.txt, classes.txt, images/CLASS/*.jpg",
    content: "200 bird species, of which the first 100 are trained on; with data.hierarchy also 38 families and 13 orders",
    counts: Some(Counts {
        splits: &[
            SplitCounts { split: "train", images: Count::Exactly(5_864), classes: &[("species", 100)] },
            SplitCounts { split: "test", images: Count::Exactly(5_924), classes: &[("species", 100)] },
        ],
        classes: &[("order", 13), ("family", 38), ("species", 200)],
        published_in: "Song et al., CVPR 2016; the hierarchy: Chang et al., CVPR 2021",
    }),
    licence: "photos from Flickr, for non-commercial research",
    source: Source::Public(&[Download {
        address: "https://data.caltech.edu/records/65de6-vp158/files/CUB_200_2011.tgz",
        md5: Some("97eceeb196236b17998738112f37df78"),
    }]),
};

/// Lists the images of a copy.
pub fn list(copy: &LocalCopy<HierarchyConfig>) -> Result<Listing> {
    let root = copy.root("images.txt", &["CUB_200_2011"]);
    let (images_file, labels_file) = (root.join("images.txt"), root.join("image_class_labels.txt"));
    let names: HashMap<String, String> = copy
        .lines::<2>(&root.join("classes.txt"), 0)?
        .into_iter()
        .map(|[class, name]| (class, name))
        .collect();
    let class_of: HashMap<String, String> =
        copy.lines::<2>(&labels_file, 0)?.into_iter().map(|[image, class]| (image, class)).collect();
    let hierarchy = Hierarchy::read(copy)?;
    let mut images = Vec::new();
    for (line, [image, path]) in (1..).zip(copy.lines::<2>(&images_file, 0)?) {
        let class = class_of.get(&image).ok_or_else(|| {
            damaged(&images_file, line, &format!("image {image} is not in image_class_labels.txt"))
        })?;
        let (number, name) = class.parse::<usize>().ok().zip(names.get(class)).ok_or_else(|| {
            damaged(&images_file, line, &format!("its class {class} is not in classes.txt"))
        })?;
        let mut labels = hierarchy.above(number, name)?;
        labels.push(name.clone());
        let split = if number <= LAST_TRAINING_CLASS { Split::Train } else { Split::Test };
        images.push(ListedImage::file(root.join("images").join(path), labels, split));
    }
    Ok(Listing::from_files(images, ClassIdentity::Name))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::*;

    const TREE: [(&str, &[u8]); 4] = [
        (
            "CUB_200_2011/images.txt",
            b"1 001.Albatross/a.jpg\n2 100.Pelican/b.jpg\n3 101.Tern/c.jpg\n4 101.Tern/d.jpg\n",
        ),
        ("CUB_200_2011/image_class_labels.txt", b"1 1\n2 100\n3 101\n4 101\n"),
        ("CUB_200_2011/classes.txt", b"1 001.Albatross\n100 100.Pelican\n101 101.Tern\n"),
        // As published: the class, and two columns that are not in order.
        ("birds.py", b"import torch\n\ntrees = [\n[1,12,35],\n[100,6,9],\n[101,6,8],\n]\n"),
    ];

    #[test]
    fn the_first_hundred_classes_are_trained_on() {
        let copy = files(&TREE);
        let dataset = read(&copy, "kind = 'cub200'");
        assert_eq!(splits(&dataset), [("train", 2), ("test", 2)]);
        assert_eq!(labels(&dataset, 1), ["100.Pelican"]);
        assert_eq!(dataset.paths[2], copy.path().join("CUB_200_2011/images/101.Tern/c.jpg"));
    }

    #[test]
    fn the_published_hierarchy_gives_orders_and_families() {
        let copy = files(&TREE);
        let more = format!("hierarchy = '{}'", copy.path().join("birds.py").display());
        let dataset = read(&copy, &format!("kind = 'cub200'\n{more}"));
        assert_eq!(dataset.taxonomy.level_names(), ["order", "family", "species"]);
        assert_eq!(labels(&dataset, 2), ["order 6", "family 8", "101.Tern"]);
        let family = read(&copy, &format!("kind = 'cub200'\n{more}\nlevels = ['family', 'species']"));
        assert_eq!(labels(&family, 0), ["family 35", "001.Albatross"]);

        let (message, hint) = refusal(config(&copy, "kind = 'cub200'\nlevels = ['order', 'species']"));
        assert!(message.contains("`cub200` has no level `order`"), "{message}");
        assert!(hint.contains("data.hierarchy"), "{hint}");
    }

    #[test]
    fn a_class_without_a_name_or_a_label_is_refused() {
        let mut tree = TREE;
        tree[1].1 = b"1 1\n2 100\n3 101\n";
        let (message, _) = refusal(try_to_read(&files(&tree), "kind = 'cub200'"));
        assert!(
            message.ends_with("images.txt, line 4: image 4 is not in image_class_labels.txt"),
            "{message}"
        );
        tree[1].1 = b"1 1\n2 100\n3 101\n4 102\n";
        let (message, _) = refusal(try_to_read(&files(&tree), "kind = 'cub200'"));
        assert!(message.ends_with("line 4: its class 102 is not in classes.txt"), "{message}");
    }
}
