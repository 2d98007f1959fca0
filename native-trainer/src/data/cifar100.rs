//! CIFAR-100 in its binary version: `train.bin` and `test.bin` hold records of a coarse label, a fine label, and the red,
//! green and blue plane of 32×32 pixels.

use std::fs::File;
use std::sync::{Arc, Mutex};

use akin_base::problem::{Advise, problem};
use akin_core::taxonomy::ClassIdentity;
use anyhow::Result;

use super::listing::{
    Count, Counts, Download, Entry, ListedImage, Listing, LocalCopy, Source, Split, SplitCounts,
};
use super::storage::{Container, Part};

const SIDE: u32 = 32;
const LABELS: usize = 2;
const RECORD: usize = LABELS + 3 * (SIDE * SIDE) as usize;

/// CIFAR-100.
pub static ENTRY: Entry = Entry {
    title: "CIFAR-100",
    layout: "train.bin, test.bin, coarse_label_names.txt, fine_label_names.txt",
    content: "20 superclasses of 5 classes each; training and test images are of the same classes",
    counts: Some(Counts {
        splits: &[
            SplitCounts { split: "train", images: Count::Exactly(50_000), classes: &[("class", 100)] },
            SplitCounts { split: "test", images: Count::Exactly(10_000), classes: &[("class", 100)] },
        ],
        classes: &[("superclass", 20), ("class", 100)],
        published_in: "HPDH, section 4.1",
    }),
    licence: "from 80 Million Tiny Images, for research; no licence is stated",
    source: Source::Public(&[Download {
        address: "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
        md5: Some("03b5dce01913d631647c71ecec9e9cb8"),
    }]),
};

/// Lists the images of a copy.
pub fn list(copy: &LocalCopy) -> Result<Listing> {
    let root = copy.root("train.bin", &["cifar-100-binary"]);
    let names = |file: &str| copy.lines::<1>(&root.join(file), 0);
    let (coarse, fine) = (names("coarse_label_names.txt")?, names("fine_label_names.txt")?);
    let (mut images, mut containers) = (Vec::new(), Vec::new());
    for (container, (split, name)) in
        [(Split::Train, "train.bin"), (Split::Test, "test.bin")].into_iter().enumerate()
    {
        let path = root.join(name);
        let bytes = copy.bytes(&path)?;
        let damaged = |why: String| {
            problem(
                format!("{} {why}", path.display()),
                "unpack cifar-100-binary.tar.gz again; the Python version of CIFAR-100 is not read",
            )
        };
        if !bytes.len().is_multiple_of(RECORD) {
            return Err(damaged(format!(
                "has {} bytes, which are no whole records of {RECORD}",
                bytes.len()
            )));
        }
        for (number, record) in bytes.chunks_exact(RECORD).enumerate() {
            let (Some([coarse]), Some([fine])) =
                (coarse.get(usize::from(record[0])), fine.get(usize::from(record[1])))
            else {
                return Err(damaged(format!("has a label without a name in record {number}")));
            };
            images.push(ListedImage {
                path: path.join(number.to_string()),
                part: Part::Planes { container, start: (number * RECORD + LABELS) as u64, side: SIDE },
                junk: Vec::new(),
                labels: vec![coarse.clone(), fine.clone()],
                split: Some(split),
            });
        }
        let file =
            File::open(&path).advise(|| format!("{} cannot be read", path.display()), "check the file")?;
        containers.push(Container::new(path, Arc::new(Mutex::new(file))));
    }
    Ok(Listing { images, identity: ClassIdentity::Name, containers })
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::*;
    use super::RECORD;

    /// A record whose planes are constant.
    fn record(coarse: u8, fine: u8, [red, green, blue]: [u8; 3]) -> Vec<u8> {
        let planes = [red, green, blue].map(|value| vec![value; 1024]).concat();
        [vec![coarse, fine], planes].concat()
    }

    #[test]
    fn images_are_read_from_inside_the_file() {
        let train = [record(0, 1, [1, 2, 3]), record(1, 0, [4, 5, 6])].concat();
        let test = record(1, 0, [7, 8, 9]);
        let copy = files(&[
            ("cifar-100-binary/train.bin", &train),
            ("cifar-100-binary/test.bin", &test),
            ("cifar-100-binary/coarse_label_names.txt", b"fish\ntrees\n\n"),
            ("cifar-100-binary/fine_label_names.txt", b"oak_tree\nray\n\n"),
        ]);
        let dataset = read(&copy, "kind = 'cifar100'");
        assert_eq!(splits(&dataset), [("train", 2), ("test", 1)]);
        assert_eq!(labels(&dataset, 0), ["fish", "ray"]);
        assert!(dataset.paths[2].ends_with("test.bin/0"));
        for (item, pixel) in [(0, [1, 2, 3]), (1, [4, 5, 6]), (2, [7, 8, 9])] {
            let picture = picture(&dataset, item);
            assert_eq!((picture.width(), picture.height()), (32, 32));
            assert!(picture.data().chunks(3).all(|found| found == pixel));
        }
    }

    #[test]
    fn a_file_of_another_length_or_label_is_refused() {
        let names: [(&str, &[u8]); 2] =
            [("coarse_label_names.txt", b"fish\n"), ("fine_label_names.txt", b"ray\n")];
        let refused = |train: &[u8]| {
            let copy = files(&[("train.bin", train), ("test.bin", b""), names[0], names[1]]);
            refusal(try_to_read(&copy, "kind = 'cifar100'"))
        };
        let (message, hint) = refused(&[0; RECORD - 1]);
        assert!(
            message.ends_with("train.bin has 3073 bytes, which are no whole records of 3074"),
            "{message}"
        );
        assert!(hint.contains("Python version"));
        assert!(refused(&record(0, 1, [0; 3])).0.ends_with("has a label without a name in record 0"));
    }
}
