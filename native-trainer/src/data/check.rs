//! Counts a data set and looks for likely mistakes in it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use akin_base::files::{is_fault_of_file, system_fault};
use akin_base::problem::a_few;
use akin_base::quantities::counted;
use anyhow::Result;
use rayon::prelude::*;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::Dataset;

/// What [`inspect`] found.
#[derive(Debug, Default, Serialize)]
pub struct Findings {
    /// The names of the levels, coarse → fine.
    pub levels: Vec<String>,
    /// The counts of each split, in the order of [`Splits::named`](super::splits::Splits::named). Of a data set with a test
    /// set for each level, those of the training images and of each test set.
    pub splits: Vec<SplitFindings>,
    /// The counts of each level, coarse → fine.
    pub taxonomy: Vec<LevelFindings>,
    /// Likely mistakes in the labels. None of them stops training.
    pub remarks: Vec<String>,
    /// Files that cannot be read as images. Training skips them.
    pub unreadable: Vec<Unreadable>,
    /// Groups of files with the same bytes in different splits.
    pub duplicates: Vec<Vec<Duplicate>>,
    /// Groups of files with the same bytes in one split.
    pub repeated: Vec<Vec<Duplicate>>,
}

/// The counts of one split.
#[derive(Debug, Serialize)]
pub struct SplitFindings {
    /// `train`, `test`, `query` or `gallery`, or the level of a test set.
    pub name: String,
    /// The number of images.
    pub images: usize,
    /// The number of classes at each level, coarse → fine.
    pub classes: Vec<usize>,
}

/// The counts of one level.
#[derive(Debug, Serialize)]
pub struct LevelFindings {
    /// Its name.
    pub name: String,
    /// The number of classes in all splits together.
    pub classes: usize,
    /// The number of classes that are in the training split and in an evaluation split.
    pub shared: usize,
    /// The number of queries that have a positive at this level.
    pub queries_with_positives: usize,
    /// The number of images whose class is not known.
    pub unknown: usize,
}

/// A file that cannot be read as an image.
#[derive(Debug, Serialize)]
pub struct Unreadable {
    /// The file.
    pub path: PathBuf,
    /// Why it cannot be read.
    pub reason: String,
}

/// A file whose bytes another file has too.
#[derive(Debug, Serialize)]
pub struct Duplicate {
    /// The split of the file.
    pub split: &'static str,
    /// The file.
    pub path: PathBuf,
}

/// Counts a data set, looks for likely mistakes in its labels, and decodes every image of its splits. Calls `done` after
/// each image, from several threads.
///
/// # Errors
///
/// A file that the system cannot read, for example because too many are open: the image may be sound.
pub fn inspect(dataset: &Dataset, done: impl Fn() + Sync) -> Result<Findings> {
    let splits = dataset.splits.named();
    let depth = dataset.taxonomy.depth();
    let classes =
        |items: &[usize], level| dataset.classes(items, level).into_iter().collect::<BTreeSet<u32>>();
    let evaluated: Vec<usize> = [&dataset.splits.query[..], &dataset.splits.gallery].concat();
    let taxonomy = (1..=depth)
        .map(|level| LevelFindings {
            name: dataset.taxonomy.level_names()[level - 1].clone(),
            classes: dataset.taxonomy.class_count(level),
            shared: classes(&dataset.splits.train, level).intersection(&classes(&evaluated, level)).count(),
            queries_with_positives: dataset.queries_with_positives(level),
            unknown: dataset.labels.len() - dataset.labels.known_counts()[level - 1],
        })
        .collect();
    let counts = splits.iter().map(|&(name, items)| SplitFindings {
        name: name.to_owned(),
        images: items.len(),
        classes: (1..=depth).map(|level| classes(items, level).len()).collect(),
    });
    let (unreadable, groups) = read_files(dataset, done)?;
    let (duplicates, repeated) =
        groups.into_iter().partition(|group| group.iter().any(|file| file.split != group[0].split));
    Ok(Findings {
        levels: dataset.taxonomy.level_names().to_vec(),
        splits: counts.collect(),
        taxonomy,
        remarks: remarks(dataset),
        unreadable,
        duplicates,
        repeated,
    })
}

/// Counts the training images and the test sets of all levels, of which each data set holds one, and decodes every image
/// once. The images of a test set are those of its gallery, which has the queries, too: their files are read, and not
/// counted. Calls `done` as [`inspect`] does.
///
/// # Errors
///
/// As [`inspect`].
pub fn inspect_benchmarks(benchmarks: Vec<(String, Dataset)>, done: impl Fn() + Sync) -> Result<Findings> {
    let mut all: Option<Findings> = None;
    for (level, mut dataset) in benchmarks {
        if all.is_some() {
            dataset.splits.train.clear();
        }
        let mut findings = inspect(&dataset, &done)?;
        for split in &mut findings.splits {
            if split.name == "gallery" {
                split.name.clone_from(&level);
            }
        }
        match &mut all {
            None => all = Some(findings),
            Some(all) => {
                all.splits.extend(findings.splits.into_iter().filter(|split| split.name == level));
                all.unreadable.extend(findings.unreadable);
            }
        }
    }
    Ok(all.unwrap_or_default())
}

/// Reads every file of a split. Returns the unreadable files, and the groups of equal files.
fn read_files(dataset: &Dataset, done: impl Fn() + Sync) -> Result<(Vec<Unreadable>, Vec<Vec<Duplicate>>)> {
    let digest = |item: usize| {
        let path = &dataset.paths[item];
        let result = match dataset.storage.bytes(item, path) {
            Ok(bytes) => match dataset.storage.decode(item, &bytes) {
                Ok(_) => Ok(<[u8; 32]>::from(Sha256::digest(&bytes))),
                Err(error) => Err(error.message().to_owned()),
            },
            Err(error) if is_fault_of_file(&error) => Err(error.to_string()),
            Err(error) => return Err(system_fault(path, &error)),
        };
        done();
        Ok((item, result))
    };
    let splits = dataset.splits.named();
    let items: Vec<usize> = splits.iter().flat_map(|&(_, items)| items).copied().collect();
    let digests: HashMap<usize, std::result::Result<[u8; 32], String>> =
        items.into_par_iter().map(digest).collect::<Result<_>>()?;

    let path = |item: usize| dataset.paths[item].clone();
    let mut unreadable = Vec::new();
    let mut by_content: BTreeMap<[u8; 32], Vec<Duplicate>> = BTreeMap::new();
    for (split, items) in splits {
        for &item in items {
            match &digests[&item] {
                Ok(digest) => {
                    by_content.entry(*digest).or_default().push(Duplicate { split, path: path(item) })
                }
                Err(reason) => unreadable.push(Unreadable { path: path(item), reason: reason.clone() }),
            }
        }
    }
    let mut groups: Vec<Vec<Duplicate>> = by_content.into_values().filter(|group| group.len() > 1).collect();
    groups.sort_by(|a, b| a[0].path.cmp(&b[0].path));
    Ok((unreadable, groups))
}

/// Likely mistakes in the labels.
fn remarks(dataset: &Dataset) -> Vec<String> {
    let taxonomy = &dataset.taxonomy;
    let (depth, names) = (taxonomy.depth(), taxonomy.level_names());
    let finest = &names[depth - 1];
    let mut remarks: Vec<String> = dataset.missing_files_in_words().into_iter().collect();
    for (split, items) in dataset.splits.named() {
        if items.is_empty() {
            remarks.push(format!("the split `{split}` is empty"));
        }
    }

    let mut sizes = HashMap::<u32, usize>::new();
    for class in dataset.classes(&dataset.splits.train, depth) {
        *sizes.entry(class).or_default() += 1;
    }
    let single_image =
        class_names(dataset, depth, sizes.into_iter().filter(|&(_, size)| size == 1).map(|(class, _)| class));
    if !single_image.is_empty() {
        let count =
            counted(single_image.len(), &format!("{finest} has"), &format!("classes of {finest} have"));
        remarks.push(format!(
            "{count} only one training image, which has no positive at that level: {}",
            a_few(&single_image)
        ));
    }

    for level in 1..depth {
        let mut children = vec![0; taxonomy.class_count(level)];
        for class in 0..taxonomy.class_count(level + 1) as u32 {
            if let Some(parent) = taxonomy.parent(level + 1, class) {
                children[parent as usize] += 1;
            }
        }
        let single_child =
            class_names(dataset, level, (0..children.len()).filter(|&c| children[c] == 1).map(|c| c as u32));
        let (name, below) = (&names[level - 1], &names[level]);
        if let Some(remark) = same_classes(dataset, level) {
            remarks.push(remark);
        } else if !single_child.is_empty() {
            let count =
                counted(single_child.len(), &format!("{name} has"), &format!("classes of {name} have"));
            remarks.push(format!("{count} only one {below}: {}", a_few(&single_child)));
        }
    }
    if taxonomy.class_count(1) == 1 {
        remarks.push(format!("there is only one {}, so no two images are strangers", names[0]));
    }

    for level in 1..=depth {
        remarks.extend([alike_names(dataset, level), unknown(dataset, level)].into_iter().flatten());
    }

    for level in 1..=depth {
        let known = dataset.splits.query.iter().filter(|&&query| dataset.labels.known(query) >= level);
        let queries = known.count();
        let without = queries - dataset.queries_with_positives(level);
        if without > 0 {
            let count = counted(without, "query has", "queries have");
            remarks.push(format!(
                "{count} no positive at level {} and will be left out of its means",
                names[level - 1]
            ));
        }
    }
    remarks
}

/// A remark if the class of some images is not known at a level.
pub fn unknown(dataset: &Dataset, level: usize) -> Option<String> {
    let unknown = dataset.labels.len() - dataset.labels.known_counts()[level - 1];
    let name = &dataset.taxonomy.level_names()[level - 1];
    (unknown > 0).then(|| {
        format!(
            "{} no known {name}, and losses and scores leave out the pairs that it would decide",
            counted(unknown, "image has", "images have")
        )
    })
}

/// A remark on classes of a level whose names differ only in upper and lower case or in spaces.
pub fn alike_names(dataset: &Dataset, level: usize) -> Option<String> {
    let taxonomy = &dataset.taxonomy;
    let mut groups: BTreeMap<(Option<u32>, String), Vec<&str>> = BTreeMap::new();
    for class in 0..taxonomy.class_count(level) as u32 {
        let name = taxonomy.class_name(level, class);
        let plain: String = name.to_lowercase().split_whitespace().collect();
        groups.entry((taxonomy.parent(level, class), plain)).or_default().push(name);
    }
    let alike: Vec<String> = groups
        .into_values()
        .filter(|names| names.len() > 1)
        .map(|names| names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(" and "))
        .collect();
    let level = &taxonomy.level_names()[level - 1];
    (!alike.is_empty()).then(|| {
        format!(
            "at the level {level}, {} are different classes: rename one if they are the same",
            a_few(&alike)
        )
    })
}

/// A remark if a level has the same classes as the level below.
pub fn same_classes(dataset: &Dataset, level: usize) -> Option<String> {
    let (taxonomy, names) = (&dataset.taxonomy, dataset.taxonomy.level_names());
    (taxonomy.class_count(level) == taxonomy.class_count(level + 1)).then(|| {
        format!("every {} has only one {}, so the two levels are the same", names[level - 1], names[level])
    })
}

/// The names of classes, sorted.
fn class_names(dataset: &Dataset, level: usize, classes: impl Iterator<Item = u32>) -> Vec<String> {
    let mut names: Vec<String> =
        classes.map(|class| dataset.taxonomy.class_name(level, class).to_owned()).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::fixtures::*;
    use super::*;

    /// A PNG of one pixel.
    fn png(grey: u8) -> Vec<u8> {
        let mut bytes = std::io::Cursor::new(Vec::new());
        image::GrayImage::from_pixel(1, 1, image::Luma([grey]))
            .write_to(&mut bytes, image::ImageFormat::Png)
            .unwrap();
        bytes.into_inner()
    }

    #[test]
    fn a_data_set_is_counted_and_likely_mistakes_are_named() {
        let text = "path,kind,variety,split
1.png,Apple,Gala,train
2.png,Apple,Gala,train
3.png,Pear,Conference,train
4.png,Apple,Gala,query
5.png,Apple,Fuji,gallery
6.png,Pear,Conference,gallery
missing.png,Apple,Gala,gallery
";
        let (directory, data) = csv(text, "");
        for (number, grey) in [(1, 10), (2, 20), (3, 30), (4, 10)] {
            fs::write(directory.path().join(format!("{number}.png")), png(grey)).unwrap();
        }
        fs::write(directory.path().join("5.png"), &png(50)[..40]).unwrap();
        fs::write(directory.path().join("6.png"), "not an image").unwrap();
        let dataset = Dataset::read(&data).unwrap();
        let seen = AtomicUsize::new(0);
        let findings = inspect(&dataset, || {
            seen.fetch_add(1, Ordering::Relaxed);
        })
        .unwrap();

        assert_eq!(seen.into_inner(), 7);
        let counts: Vec<_> =
            findings.splits.iter().map(|split| (&split.name[..], split.images, &split.classes[..])).collect();
        assert_eq!(counts, [("train", 3, &[2, 2][..]), ("query", 1, &[1, 1]), ("gallery", 3, &[2, 3])]);
        let levels: Vec<_> = findings
            .taxonomy
            .iter()
            .map(|level| (level.classes, level.shared, level.queries_with_positives))
            .collect();
        assert_eq!(levels, [(2, 2, 1), (3, 2, 1)]);

        let files: Vec<_> = findings.unreadable.iter().map(|file| file.path.file_name().unwrap()).collect();
        assert_eq!(files, ["5.png", "6.png", "missing.png"]);
        assert!(findings.unreadable.iter().all(|file| !file.reason.is_empty()));

        let splits: Vec<_> = findings.duplicates[0].iter().map(|file| file.split).collect();
        assert_eq!((findings.duplicates.len(), splits), (1, vec!["train", "query"]));

        let remarks = findings.remarks.join("\n");
        assert!(remarks.contains("1 variety has only one training image"), "{remarks}");
        assert!(remarks.contains("1 kind has only one variety: Pear"), "{remarks}");
    }
}
