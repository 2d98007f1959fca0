//! DyML-Vehicle, -Animal and -Product (Sun et al., CVPR 2021). Training images have three labels. Vehicle and Animal are
//! evaluated by three benchmarks, each with queries, a gallery and labels of one level; Product by one list with all
//! three labels.

use akin_core::taxonomy::ClassIdentity;
use anyhow::Result;

use super::listing::{Count, Counts, Entry, ListedImage, Listing, LocalCopy, Source, Split, SplitCounts};
use crate::config::{Benchmark, BenchmarkConfig};

const LICENCE: &str = "compiled from other data sets, for research";
const SOURCE: Source = Source::Page("https://onedrive.live.com (the link is in Sun et al., CVPR 2021)");
const PUBLISHED_IN: &str = "HAPPIER, Table 8, in thousands";
const BENCHMARKS: &str = "train/label.csv, train/imgs/*; bmk_coarse, bmk_middle and bmk_fine, each with query.csv, \
                          gallery.csv, query/* and gallery/*";

/// DyML-Vehicle.
pub static VEHICLE: Entry = Entry {
    title: "DyML-Vehicle",
    layout: BENCHMARKS,
    content: "three levels of vehicles for training; data.benchmark chooses the level that is evaluated",
    counts: Some(Counts {
        splits: &[
            SplitCounts {
                split: "train",
                images: Count::About(343_100),
                classes: &[("coarse", 5), ("middle", 89), ("fine", 36_301)],
            },
            SplitCounts { split: "coarse", images: Count::About(5_900), classes: &[("coarse", 6)] },
            SplitCounts { split: "middle", images: Count::About(34_300), classes: &[("middle", 127)] },
            SplitCounts { split: "fine", images: Count::About(63_500), classes: &[("fine", 8_183)] },
        ],
        classes: &[],
        published_in: PUBLISHED_IN,
    }),
    licence: LICENCE,
    source: SOURCE,
};

/// DyML-Animal.
pub static ANIMAL: Entry = Entry {
    title: "DyML-Animal",
    layout: BENCHMARKS,
    content: "three levels of animals for training; data.benchmark chooses the level that is evaluated",
    counts: Some(Counts {
        splits: &[
            SplitCounts {
                split: "train",
                images: Count::About(407_800),
                classes: &[("coarse", 5), ("middle", 28), ("fine", 495)],
            },
            SplitCounts { split: "coarse", images: Count::About(12_500), classes: &[("coarse", 5)] },
            SplitCounts { split: "middle", images: Count::About(23_100), classes: &[("middle", 17)] },
            SplitCounts { split: "fine", images: Count::About(11_300), classes: &[("fine", 162)] },
        ],
        classes: &[],
        published_in: PUBLISHED_IN,
    }),
    licence: LICENCE,
    source: SOURCE,
};

/// DyML-Product.
pub static PRODUCT: Entry = Entry {
    title: "DyML-Product",
    layout: "train/label.csv, train/imgs/*; mini-bmk_all_in_one/label.csv, mini-bmk_all_in_one/imgs/*",
    content: "three levels of products",
    counts: Some(Counts {
        splits: &[
            SplitCounts {
                split: "train",
                images: Count::About(747_100),
                classes: &[("coarse", 36), ("middle", 169), ("fine", 1_609)],
            },
            SplitCounts {
                split: "test",
                images: Count::About(1_500),
                classes: &[("coarse", 6), ("middle", 37), ("fine", 315)],
            },
        ],
        classes: &[],
        published_in: PUBLISHED_IN,
    }),
    licence: LICENCE,
    source: SOURCE,
};

const LEVELS: usize = 3;

/// The columns of the image and of its labels, coarse → fine, as the files spell them.
const COLUMNS: [&str; 4] = ["fname", "coarse_id", "middle_id", "fine_id0.jpg"];

/// Lists the images for training and those of a benchmark.
pub fn list_benchmarks(copy: &LocalCopy<BenchmarkConfig>) -> Result<Listing> {
    let mut images = labelled(copy, "train", Split::Train)?;
    let (name, level) = match copy.settings.benchmark {
        Benchmark::Coarse => ("bmk_coarse", 0),
        Benchmark::Middle => ("bmk_middle", 1),
        Benchmark::Fine => ("bmk_fine", 2),
    };
    for (split, part) in [(Split::Query, "query"), (Split::Gallery, "gallery")] {
        for (_, [file, label]) in copy.rows(&format!("{name}/{part}.csv"), ["fname", "labels0.jpg"])? {
            // A benchmark knows one level. Its classes are not those of the training images; above that level all
            // images are of one class, and below it each class has one child.
            let label = format!("{name} {label}");
            let labels = (0..LEVELS).map(|place| if place < level { name } else { &label }.to_owned());
            images.push(ListedImage::file(copy.path(name).join(part).join(file), labels.collect(), split));
        }
    }
    Ok(Listing::from_files(images, ClassIdentity::Path))
}

/// Lists the images for training and those of the only benchmark.
pub fn list_product(copy: &LocalCopy) -> Result<Listing> {
    let mut images = labelled(copy, "train", Split::Train)?;
    for mut image in labelled(copy, "mini-bmk_all_in_one", Split::Test)? {
        // Class 3 of the benchmark is not class 3 of the training images.
        image.labels = image.labels.into_iter().map(|label| format!("test {label}")).collect();
        images.push(image);
    }
    Ok(Listing::from_files(images, ClassIdentity::Path))
}

/// The images of a folder with `label.csv` and `imgs`.
fn labelled<Settings>(copy: &LocalCopy<Settings>, folder: &str, split: Split) -> Result<Vec<ListedImage>> {
    let rows = copy.rows(&format!("{folder}/label.csv"), COLUMNS)?;
    let image = |(_, [file, coarse, middle, fine]): (usize, [String; 4])| {
        ListedImage::file(copy.path(folder).join("imgs").join(file), vec![coarse, middle, fine], split)
    };
    Ok(rows.into_iter().map(image).collect())
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::*;

    /// Names with leading spaces and a stray `.jpg`, as published.
    const TRAIN: &[u8] = b"fname, fine_id0.jpg, middle_id, coarse_id\na.jpg, 1, 2, 3\nb.jpg, 4, 2, 3\n";

    #[test]
    fn a_benchmark_has_labels_of_one_level() {
        let copy = files(&[
            ("train/label.csv", TRAIN),
            ("bmk_fine/query.csv", b"fname, labels0.jpg\nq.jpg, 1\n"),
            ("bmk_fine/gallery.csv", b"fname, labels0.jpg\ng.jpg, 1\nh.jpg, 2\n"),
            ("bmk_middle/query.csv", b"fname, labels0.jpg\nq.jpg, 7\n"),
            ("bmk_middle/gallery.csv", b"fname, labels0.jpg\ng.jpg, 7\n"),
        ]);
        let dataset = read(&copy, "kind = 'dyml_vehicle'");
        assert_eq!(splits(&dataset), [("train", 2), ("query", 1), ("gallery", 2)]);
        assert_eq!(labels(&dataset, 1), ["3", "2", "4"]);
        assert_eq!(labels(&dataset, 3), ["bmk_fine", "bmk_fine", "bmk_fine 1"]);
        assert_eq!(dataset.paths[3], copy.path().join("bmk_fine/gallery/g.jpg"));
        let middle = read(&copy, "kind = 'dyml_animal'\nbenchmark = 'middle'");
        assert_eq!(labels(&middle, 2), ["bmk_middle", "bmk_middle 7", "bmk_middle 7"]);
        let (message, hint) = refusal(try_to_read(&copy, "kind = 'dyml_animal'\nbenchmark = 'coarse'"));
        assert!(
            message.contains("bmk_coarse/query.csv cannot be read") && hint.contains("bmk_coarse"),
            "{message}"
        );
    }

    /// Before hours of training.
    #[test]
    fn a_missing_benchmark_of_the_protocol_is_found_when_the_data_are_loaded() {
        let (images, query) = (
            ["a.jpg", "b.jpg"].map(|image| format!("train/imgs/{image}")),
            b"fname, labels0.jpg\nq.jpg, 1\n",
        );
        let mut tree: Vec<(String, &[u8])> = vec![("train/label.csv".into(), TRAIN)];
        tree.extend(images.map(|image| (image, &b""[..])));
        for (benchmark, part) in
            [("fine", "query"), ("fine", "gallery"), ("middle", "query"), ("middle", "gallery")]
        {
            tree.push((format!("bmk_{benchmark}/{part}.csv"), query));
            tree.push((format!("bmk_{benchmark}/{part}/q.jpg"), b""));
        }
        let files: Vec<(&str, &[u8])> = tree.iter().map(|(name, bytes)| (name.as_str(), *bytes)).collect();
        let copy = super::super::fixtures::files(&files);
        let load = |toml: &str| super::super::Dataset::load(&config(&copy, toml).unwrap());
        load("kind = 'dyml_animal'").unwrap();
        let (message, _) = refusal(load("kind = 'dyml_animal'\n[split]\nprotocol = 'dyml'"));
        assert!(message.contains("bmk_coarse/query.csv cannot be read"), "{message}");
    }

    #[test]
    fn products_have_one_test_list_with_all_labels() {
        let copy = files(&[("train/label.csv", TRAIN), ("mini-bmk_all_in_one/label.csv", TRAIN)]);
        let dataset = read(&copy, "kind = 'dyml_product'");
        assert_eq!(splits(&dataset), [("train", 2), ("test", 2)]);
        assert_eq!(labels(&dataset, 3), ["test 3", "test 2", "test 4"]);
        assert_eq!(dataset.taxonomy.class_count(3), 4);
        let copy = files(&[("train/label.csv", b"fname,middle_id\na.jpg,1\n")]);
        let (message, _) = refusal(try_to_read(&copy, "kind = 'dyml_product'"));
        assert!(message.contains("has no column `coarse_id`"), "{message}");
    }
}
