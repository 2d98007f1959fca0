//! What identifies a data set.

use std::path::{Path, PathBuf};

use akin_base::files;
use akin_base::progress::Progress;
use akin_base::quantities::count;
use akin_core::digest::sha256;
use anyhow::Result;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::Dataset;

/// What identifies a data set: the names and sizes of its images, their labels and splits, each as a SHA-256. Where every
/// image is read, also their contents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataDigest {
    /// The number of images.
    pub images: usize,
    names: String,
    sizes: String,
    /// The images that were unpacked from a larger file. Empty if there are none.
    contents: String,
    /// Every image as it is stored. None if the images were not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pictures: Option<String>,
    labels: String,
    /// The names of the classes.
    classes: String,
    splits: String,
}

impl DataDigest {
    /// What has changed since an earlier digest, in words; empty if nothing has. The contents of the images count if both
    /// digests have them.
    pub fn changes(&self, before: &Self) -> Vec<String> {
        let pictures_differ =
            self.pictures.as_ref().zip(before.pictures.as_ref()).is_some_and(|(a, b)| a != b);
        let mut changes = Vec::new();
        if self.images != before.images {
            changes.push(format!(
                "there are {} images instead of {}",
                count(self.images),
                count(before.images)
            ));
        } else if self.names != before.names {
            changes.push("images have other names".into());
        } else if self.sizes != before.sizes {
            changes.push("image files have other sizes".into());
        } else if self.contents != before.contents || pictures_differ {
            changes.push("images differ".into());
        }
        if self.images == before.images && self.labels != before.labels {
            changes.push("labels differ".into());
        } else if self.classes != before.classes {
            changes.push("classes have other names".into());
        }
        if self.images == before.images && self.splits != before.splits {
            changes.push("splits differ".into());
        }
        changes
    }
}

impl Dataset {
    /// As [`Dataset::digest`], with the contents of every image, each of which is read for it. An image that is missing or
    /// no file counts as an empty one.
    ///
    /// # Errors
    ///
    /// An image that the system cannot read.
    pub fn digest_with_pictures(&self, progress: Progress) -> Result<DataDigest> {
        let bar = progress.bar("Hashing", self.paths.len() as u64);
        let digest = |(item, path): (usize, &PathBuf)| -> Result<String> {
            let bytes = match self.storage.bytes(item, path) {
                Err(error) if files::is_fault_of_file(&error) => Vec::new(),
                bytes => bytes.map_err(|error| files::system_fault(path, &error))?,
            };
            bar.advance(1);
            Ok(sha256(&bytes))
        };
        let digests = self.paths.par_iter().enumerate().map(digest).collect::<Result<Vec<String>>>()?;
        Ok(DataDigest { pictures: Some(sha256(digests.concat().as_bytes())), ..self.digest() })
    }

    /// The digest of the data set by the names and the sizes of its images. Folders that all images are in do not count, so
    /// that a data set may be moved.
    pub fn digest(&self) -> DataDigest {
        let shared = self.paths.first().and_then(|path| path.parent()).map_or(0, |parent| {
            let depth =
                |path: &Path| path.components().zip(parent.components()).take_while(|(a, b)| a == b).count();
            self.paths.iter().map(|path| depth(path)).min().unwrap_or(0)
        });
        let (mut names, mut sizes, mut labels) = (String::new(), String::new(), String::new());
        for (item, path) in self.paths.iter().enumerate() {
            let name: PathBuf = path.components().skip(shared).collect();
            names += &format!("{}\n", name.display());
            sizes += &format!("{}\n", self.storage.length(item, path));
            labels += &format!("{:?}\n", self.labels.row(item));
        }
        if let Some((kinship, kinds)) = self.labels.kinship() {
            labels += &format!("{kinship:?}{kinds:?}");
        }
        labels += &format!("{:?}", self.taxonomy.level_names());
        let class_names = |level| {
            (0..self.taxonomy.class_count(level))
                .map(move |class| self.taxonomy.class_name(level, class as u32))
        };
        let classes: Vec<_> = (1..=self.taxonomy.depth()).flat_map(class_names).collect();
        let contents: Vec<u8> = self.storage.contents().flatten().collect();
        let contents = if contents.is_empty() { String::new() } else { sha256(&contents) };
        let sha256 = |text: &str| sha256(text.as_bytes());
        DataDigest {
            images: self.paths.len(),
            names: sha256(&names),
            sizes: sha256(&sizes),
            contents,
            pictures: None,
            labels: sha256(&labels),
            classes: sha256(&format!("{classes:?}")),
            splits: sha256(&format!("{:?}", self.splits)),
        }
    }
}
