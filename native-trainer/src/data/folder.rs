//! A folder tree: each folder level is a level of the taxonomy, and a class is its whole path.
//!
//! `PATH/SPLIT/LEVEL 1/…/LEVEL L/image.jpg`, or without `SPLIT` if `split.test_fraction` splits the
//! classes. Hidden files, files without an image extension, and what akin itself wrote into the tree are skipped.

use std::io;
use std::path::Path;

use akin_base::directory::{Kind, Mark};
use akin_base::problem::{Advise, problem};
use akin_base::quantities::counted;
use akin_core::taxonomy::ClassIdentity;
use anyhow::Result;
use walkdir::{DirEntry, WalkDir};

use super::listing::{Entry, ListedImage, Listing, LocalCopy, Source, Split};
use super::missing::MissingLabels;
use crate::config::FolderConfig;

/// A folder tree of the user.
pub static ENTRY: Entry = Entry {
    title: "folder tree",
    layout: "SPLIT/LEVEL 1/…/LEVEL L/image.jpg",
    content: "a level per folder level; a class is its whole path",
    counts: None,
    licence: "yours",
    source: Source::Own,
};

/// Lists the images of the tree, sorted by path within each split.
pub fn list(copy: &LocalCopy<FolderConfig>) -> Result<Listing> {
    Ok(Listing::from_files(images(copy)?, ClassIdentity::Path))
}

fn images(copy: &LocalCopy<FolderConfig>) -> Result<Vec<ListedImage>> {
    let (root, names) = (copy.data_path, Split::named(&copy.settings.splits));
    root.read_dir().advise(
        || format!("the data folder {} cannot be read", root.display()),
        "give data.path a folder; for a CSV file, set data.kind = \"csv\"",
    )?;
    let settings = copy.settings;
    let missing = MissingLabels { policy: settings.missing, words: &settings.unknown_words };
    let mut tree = Tree { levels: &settings.levels, missing, no_labels: &[] };
    let mut images = Vec::new();
    if copy.draws_test {
        let no_labels = names.map(|(_, name)| name);
        tree.no_labels = &no_labels;
        tree.walk(root, None, &mut images)?;
        return Ok(images);
    }
    let mut found = false;
    for (split, name) in names {
        let folder = root.join(name);
        if folder.is_dir() {
            found = true;
            tree.walk(&folder, Some(split), &mut images)?;
        }
    }
    if !found {
        let names = names.map(|(_, name)| format!("`{name}`")).join(", ");
        return Err(problem(
            format!("{} has none of the folders {names}", root.display()),
            "move the images into such folders, give the names of yours in data.splits, or set \
             split.test_fraction = 0.5",
        ));
    }
    Ok(images)
}

/// A tree of folders whose names are labels.
pub struct Tree<'a> {
    /// A name for each level of folders, coarse → fine.
    pub levels: &'a [String],
    /// What to do with an image that has fewer folders above it.
    pub missing: MissingLabels<'a>,
    /// Names of folders at the top that are those of splits, and no labels.
    pub no_labels: &'a [&'a str],
}

impl Tree<'_> {
    /// Adds the images below `folder`.
    ///
    /// # Errors
    ///
    /// Folders that cannot be read, and an image with another number of folders above it.
    pub fn walk(&self, folder: &Path, split: Option<Split>, images: &mut Vec<ListedImage>) -> Result<()> {
        for entry in image_files(folder)? {
            let labels = self.labels(folder, entry.path())?;
            images.push(ListedImage::file(entry.into_path(), labels, split));
        }
        Ok(())
    }

    /// The labels of an image: the names of the folders between `folder` and the image.
    fn labels(&self, folder: &Path, image: &Path) -> Result<Vec<String>> {
        let between = image.strip_prefix(folder).ok().and_then(Path::parent).unwrap_or(Path::new(""));
        let mut labels = between
            .iter()
            .map(|name| name.to_str().map(str::to_owned))
            .collect::<Option<Vec<String>>>()
            .ok_or_else(|| {
                problem(
                    format!("a folder in the path {} has a name that is not UTF-8", image.display()),
                    "rename the folder",
                )
            })?;
        let depth = self.levels.len();
        let folders = labels.len();
        if (1..=depth).contains(&folders) && self.missing.apply(&mut labels, depth).is_ok() {
            return Ok(labels);
        }
        let hint = if labels.first().is_some_and(|label| self.no_labels.contains(&label.as_str())) {
            "remove split.test_fraction: the folders are already split"
        } else if folders > depth {
            "name every folder level in data.levels, or move the image up"
        } else if folders == 0 {
            "move the image into the folder of its class"
        } else {
            "move the image down, name fewer levels in data.levels, or set data.missing = \"unknown\""
        };
        Err(problem(
            format!(
                "{} is {} deep, but data.levels names {} ({})",
                image.display(),
                counted(folders, "folder", "folders"),
                counted(depth, "level", "levels"),
                self.levels.join(", ")
            ),
            hint,
        ))
    }
}

/// The images below `folder`, sorted by path, because the order of a directory depends on the file system. A pipe or device
/// with the name of an image is among them, so that it is reported instead of overlooked.
///
/// # Errors
///
/// A folder that cannot be read; a link that leads nowhere or in a circle.
pub fn image_files(folder: &Path) -> Result<Vec<DirEntry>> {
    let mut images = Vec::new();
    let entries = WalkDir::new(folder).follow_links(true).sort_by_file_name();
    for entry in entries.into_iter().filter_entry(may_be_data) {
        let entry = entry.map_err(|error| walk_error(folder, &error))?;
        if !entry.file_type().is_dir() && looks_like_an_image(entry.path()) {
            images.push(entry);
        }
    }
    Ok(images)
}

fn walk_error(folder: &Path, error: &walkdir::Error) -> anyhow::Error {
    let path = error.path().unwrap_or(folder).display();
    let is_absent = error.io_error().is_some_and(|error| error.kind() == io::ErrorKind::NotFound);
    if let Some(ancestor) = error.loop_ancestor() {
        problem(format!("the link {path} leads back to {}", ancestor.display()), "remove it")
    } else if is_absent {
        problem(format!("the link {path} leads nowhere"), "remove it, or mend what it leads to")
    } else {
        problem(format!("{path} cannot be read: {error}"), "check its permissions")
    }
}

/// Whether an entry of a tree may be, or hold, an image of the user: the root, or one that is neither hidden nor a
/// directory of akin other than a data set, such as a run or a bundle with its thumbnails.
fn may_be_data(entry: &DirEntry) -> bool {
    let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
    let is_of_akin = || match Mark::read(entry.path()) {
        Ok(mark) => mark.is_some_and(|mark| mark.kind != Kind::DataSet),
        // A damaged mark is akin's, too.
        Err(_) => true,
    };
    entry.depth() == 0 || !(is_hidden || entry.file_type().is_dir() && is_of_akin())
}

/// Whether a file is an image by its extension. Formats that akin cannot read are included, so that
/// they are reported instead of overlooked.
fn looks_like_an_image(path: &Path) -> bool {
    const EXTENSIONS: [&str; 11] =
        ["jpg", "jpeg", "png", "webp", "heic", "heif", "avif", "gif", "bmp", "tif", "tiff"];
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    EXTENSIONS.contains(&extension.as_str())
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::*;
    use super::super::*;

    #[test]
    fn each_folder_level_is_a_level_of_the_taxonomy() {
        let images = tree(&[
            "train/Apple/Gala/1.jpg",
            "train/Apple/Gala/2.PNG",
            "train/Pear/Gala/1.webp",
            "train/Pear/Gala/notes.txt",
            "train/.cache/x/y.jpg",
            "test/Apple/Fuji/1.jpg",
            "test/Apple/Fuji/2.jpg",
        ]);
        let dataset = Dataset::load(&folder(&images, "")).unwrap();
        assert_eq!(dataset.paths.len(), 5);
        assert_eq!((dataset.taxonomy.class_count(1), dataset.taxonomy.class_count(2)), (2, 3));
        assert_eq!((dataset.splits.train.len(), dataset.splits.query.len()), (3, 2));
    }

    #[test]
    fn an_image_at_the_wrong_depth_is_refused_filled_or_of_unknown_class() {
        let images = tree(&["train/Apple/1.jpg", "test/Pear/Conference/1.jpg", "test/Pear/Conference/2.jpg"]);
        let (message, hint) = refusal(Dataset::read(&folder(&images, "missing = 'refuse'")));
        assert!(
            message.contains("1.jpg is 1 folder deep, but data.levels names 2 levels (kind, variety)"),
            "{message}"
        );
        assert!(hint.contains("data.missing"));
        let dataset = Dataset::read(&folder(&images, "missing = 'parent'")).unwrap();
        let apple = dataset.labels.row(0)[1];
        assert_eq!(dataset.taxonomy.class_name(2, apple), "Apple");
        let dataset = Dataset::read(&folder(&images, "")).unwrap();
        assert_eq!((dataset.labels.known(0), dataset.labels.known(1)), (1, 2));
        assert_eq!((dataset.taxonomy.class_count(1), dataset.taxonomy.class_count(2)), (2, 1));

        let deep = tree(&["train/a/b/c/1.jpg"]);
        assert!(refusal(Dataset::read(&folder(&deep, "missing = 'parent'"))).0.contains("3 folders deep"));
        // With test_fraction the folders of splits would be labels.
        let split = tree(&["train/a/b/1.jpg", "test/a/c/1.jpg"]);
        let (_, hint) = refusal(Dataset::read(&folder(&split, "[split]\ntest_fraction = 0.5")));
        assert!(hint.starts_with("remove split.test_fraction"), "{hint}");
        let shallow = tree(&["train/1.jpg"]);
        assert!(refusal(Dataset::read(&folder(&shallow, ""))).1.contains("folder of its class"));
    }

    #[test]
    fn a_missing_empty_or_unsplit_folder_is_refused() {
        let images = tree(&["Apple/Gala/1.jpg"]);
        let (message, hint) = refusal(Dataset::read(&folder(&images, "")));
        assert!(
            message.ends_with("has none of the folders `train`, `test`, `query`, `gallery`"),
            "{message}"
        );
        assert!(hint.contains("split.test_fraction"));

        let empty = tree(&["train/notes.txt"]);
        assert!(refusal(Dataset::read(&folder(&empty, ""))).0.ends_with("has no images"));

        let mut nowhere = folder(&images, "");
        nowhere.data.set_path(images.path().join("nowhere"));
        assert!(refusal(Dataset::read(&nowhere)).0.contains("cannot be read"));
    }

    #[test]
    fn what_akin_wrote_into_the_tree_is_no_image_of_the_user() {
        let images =
            tree(&["train/a/b/1.jpg", "test/a/c/1.jpg", "test/a/c/2.jpg", "test/bundle/thumbnails.jpg"]);
        let mark = images.path().join("test/bundle/.akin.json");
        let refuse = "missing = 'refuse'";
        assert!(Dataset::load(&folder(&images, refuse)).is_err(), "the picture is one folder too high");
        std::fs::write(mark, "a damaged mark").unwrap();
        assert_eq!(Dataset::load(&folder(&images, "")).unwrap().paths.len(), 3);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_an_image_is_one_and_a_broken_link_is_refused() {
        use std::os::unix::fs::symlink;
        let images = tree(&["a/b/1.jpg"]);
        symlink("1.jpg", images.path().join("a/b/2.jpg")).unwrap();
        assert_eq!(super::image_files(images.path()).unwrap().len(), 2);

        let link = images.path().join("a/b/3.jpg");
        symlink("nowhere.jpg", &link).unwrap();
        let (message, _) = refusal(super::image_files(images.path()));
        assert!(message.ends_with("a/b/3.jpg leads nowhere"), "{message}");
        std::fs::remove_file(&link).unwrap();
        symlink("..", link).unwrap();
        let (message, _) = refusal(super::image_files(images.path()));
        assert!(message.contains("a/b/3.jpg leads back to "), "{message}");
    }

    #[test]
    fn splits_may_have_other_names() {
        let images = tree(&["learn/a/b/1.jpg", "ask/a/c/1.jpg", "shelf/a/c/2.jpg"]);
        let data = folder(&images, "splits = { train = 'learn', query = 'ask', gallery = 'shelf' }");
        let splits = Dataset::load(&data).unwrap().splits;
        assert_eq!((splits.query.len(), splits.gallery.len()), (1, 1));
    }
}
