//! What every data set states about itself, and what its reader returns.

use std::path::{Path, PathBuf};

use akin_base::files::read_regular_file;
use akin_base::problem::{Advise, problem};
use akin_core::pickle::{self, Fault, Pickle, Value};
use akin_core::taxonomy::ClassIdentity;
use akin_formats::csv_file::CsvFile;
use anyhow::Result;

use super::storage::{Container, Part};
use crate::config::{CopyConfig, DataKind, SplitNames};

/// What is published about a data set that akin can read.
pub struct Entry {
    /// Its name in prose.
    pub title: &'static str,
    /// What a copy of it looks like, in a line: the files that are read, relative to `data.path`.
    pub layout: &'static str,
    /// What its levels, splits and classes are, in a sentence.
    pub content: &'static str,
    /// The published counts; none for a layout that holds any data.
    pub counts: Option<Counts>,
    /// The licence, in a sentence.
    pub licence: &'static str,
    /// Where it can be had.
    pub source: Source,
}

/// The published counts of a data set.
pub struct Counts {
    /// The images and the classes of each split.
    pub splits: &'static [SplitCounts],
    /// The number of classes of some levels in all splits together.
    pub classes: &'static [(&'static str, usize)],
    /// Where these numbers are published.
    pub published_in: &'static str,
}

/// The published counts of a split.
pub struct SplitCounts {
    /// `train`, `test`, `query` or `gallery`. Of a data set with a test set for each level: the level.
    pub split: &'static str,
    /// The number of images.
    pub images: Count,
    /// The number of classes of some levels.
    pub classes: &'static [(&'static str, usize)],
}

/// A published number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// The number itself.
    Exactly(usize),
    /// A number that is published in thousands with one decimal, such as 343.1 K.
    About(usize),
}

impl Count {
    /// Whether a count agrees with the published one.
    pub fn agrees(self, count: usize) -> bool {
        match self {
            Self::Exactly(published) => count == published,
            Self::About(published) => count.abs_diff(published) <= 50,
        }
    }

    /// The published number.
    pub fn published(self) -> usize {
        match self {
            Self::Exactly(count) | Self::About(count) => count,
        }
    }
}

/// Where a data set can be had.
pub enum Source {
    /// It is the user's own.
    Own,
    /// Files that anyone may download.
    Public(&'static [Download]),
    /// The page on which its licence has to be accepted, or on which there are only links that a program cannot follow.
    Page(&'static str),
}

/// A file that anyone may download.
pub struct Download {
    /// Its address.
    pub address: &'static str,
    /// Its MD5 in hexadecimal digits, if its publishers give one.
    pub md5: Option<&'static str>,
}

/// The split of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// Training images.
    Train,
    /// Images that are both queries and gallery.
    Test,
    /// Queries.
    Query,
    /// Gallery images.
    Gallery,
}

/// Common names of splits, by the key of `[data]` that names the split. Of several that are present the first is used.
pub const SPLIT_NAMES: [(&str, &[&str]); 4] = [
    ("train", &["train", "training"]),
    ("test", &["test", "testing", "val", "valid", "validation"]),
    ("query", &["query", "queries", "probe"]),
    ("gallery", &["gallery", "index"]),
];

/// Whether a text is one of these names, in small or capital letters.
pub fn is_named(text: &str, names: &[&str]) -> bool {
    names.iter().any(|name| name.eq_ignore_ascii_case(text))
}

/// Whether a text is a common name of a split, in small or capital letters.
pub fn is_split_name(text: &str) -> bool {
    SPLIT_NAMES.iter().any(|(_, names)| is_named(text, names))
}

/// Whether a text is a common name of the split that is evaluated, in small or capital letters.
pub fn is_evaluation_name(text: &str) -> bool {
    let [_, (_, names), ..] = SPLIT_NAMES;
    is_named(text, names)
}

impl Split {
    /// Every split with its name in the data.
    pub fn named(names: &SplitNames) -> [(Self, &str); 4] {
        let SplitNames { train, test, query, gallery } = names;
        [(Self::Train, train), (Self::Test, test), (Self::Query, query), (Self::Gallery, gallery)]
    }
}

/// An image as a data set lists it.
#[derive(Debug)]
pub struct ListedImage {
    /// The file, or, inside a larger file, the name of the image: that file and the number of the image in it.
    pub path: PathBuf,
    /// The part of the file that is the image.
    pub part: Part,
    /// Label names, coarse → fine.
    pub labels: Vec<String>,
    /// The finest classes whose queries leave this gallery image out of their rankings.
    pub junk: Vec<String>,
    /// Ignored if `test_fraction` splits the data. Otherwise an image without a split is not used.
    pub split: Option<Split>,
}

impl ListedImage {
    /// An image that is a file of its own, and junk for no query.
    pub fn file(path: PathBuf, labels: Vec<String>, split: impl Into<Option<Split>>) -> Self {
        Self { path, part: Part::Whole, labels, junk: Vec::new(), split: split.into() }
    }
}

/// The images of a data set.
#[derive(Debug)]
pub struct Listing {
    /// The images, in an order that depends only on the data set.
    pub images: Vec<ListedImage>,
    /// Whether a class is its name or its whole path.
    pub identity: ClassIdentity,
    /// The files with many images, to which the parts of the images refer.
    pub containers: Vec<Container>,
}

impl Listing {
    /// Images that are files of their own.
    pub fn from_files(images: Vec<ListedImage>, identity: ClassIdentity) -> Self {
        Self { images, identity, containers: Vec::new() }
    }
}

/// A copy of a data set on this machine.
pub struct LocalCopy<'a, Settings = CopyConfig> {
    /// `[data]` of the config, without its kind.
    pub settings: &'a Settings,
    /// `data.path`.
    pub data_path: &'a Path,
    /// Which data set it is.
    pub kind: DataKind,
    /// The layout that a copy has.
    pub layout: &'static str,
    /// Whether `split.test_fraction` draws the splits, so that the data need none.
    pub draws_test: bool,
}

impl<Settings> LocalCopy<'_, Settings> {
    /// A path inside the copy.
    pub fn path(&self, name: &str) -> PathBuf {
        self.data_path.join(name)
    }

    /// The folder that a file of the copy is in: `data.path`, or one of these folders inside it. `data.path` if it is in
    /// none, so that an error names that place.
    pub fn root(&self, file: &str, folders: &[&str]) -> PathBuf {
        let inside = folders.iter().map(|folder| self.path(folder));
        let mut roots = std::iter::once(self.data_path.to_owned()).chain(inside);
        roots.find(|root| root.join(file).exists()).unwrap_or_else(|| self.data_path.to_owned())
    }

    /// What to do if a file is missing.
    pub fn layout_hint(&self) -> String {
        format!("check data.path; a copy of `{}` holds {}", self.kind.name(), self.layout)
    }

    /// The bytes of a file.
    ///
    /// # Errors
    ///
    /// A file that cannot be read.
    pub fn bytes(&self, file: &Path) -> Result<Vec<u8>> {
        read_regular_file(file).advise(|| format!("{} cannot be read", file.display()), &self.layout_hint())
    }

    /// The text of a file.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or that is not UTF-8.
    pub fn text(&self, file: &Path) -> Result<String> {
        String::from_utf8(self.bytes(file)?).map_err(|_| {
            problem(
                format!("{} is not a text in UTF-8", file.display()),
                "copy the file from the data set again",
            )
        })
    }

    /// A CSV file of the copy.
    ///
    /// # Errors
    ///
    /// A file that cannot be read.
    pub fn csv(&self, name: &str) -> Result<CsvFile> {
        let file = self.path(name);
        file.metadata().advise(|| format!("{} cannot be read", file.display()), &self.layout_hint())?;
        CsvFile::open(&file)
    }

    /// The cells of these columns of a CSV file, with the number of each row.
    ///
    /// # Errors
    ///
    /// A file that cannot be read or lacks a column.
    pub fn rows<const N: usize>(&self, name: &str, columns: [&str; N]) -> Result<Vec<(usize, [String; N])>> {
        let mut table = self.csv(name)?;
        let columns = table.columns(&columns.map(str::to_owned), "take the file of the data set as it is")?;
        let mut rows = Vec::new();
        while let Some((row, record)) = table.next_row()? {
            rows.push((row as usize, std::array::from_fn(|place| record[columns[place]].trim().to_owned())));
        }
        Ok(rows)
    }

    /// The lines of a text as their words, without empty lines, after `skipped` lines at the start.
    ///
    /// # Errors
    ///
    /// As [`LocalCopy::text`], and a line with fewer than N words.
    pub fn lines<const N: usize>(&self, file: &Path, skipped: usize) -> Result<Vec<[String; N]>> {
        let text = self.text(file)?;
        let lines = text.lines().enumerate().skip(skipped).filter(|(_, line)| !line.trim().is_empty());
        lines
            .map(|(number, line)| {
                // The last word takes the rest of the line: names and paths may have spaces.
                let mut rest = line.trim();
                let mut words: [String; N] = std::array::from_fn(|_| String::new());
                for (place, word) in words.iter_mut().enumerate() {
                    let end = rest.find(char::is_whitespace).filter(|_| place + 1 < N).unwrap_or(rest.len());
                    *word = rest[..end].to_owned();
                    rest = rest[end..].trim_start();
                }
                if words[N - 1].is_empty() {
                    return Err(damaged(file, number + 1, &format!("{line:?} has fewer than {N} words")));
                }
                Ok(words)
            })
            .collect()
    }
}

/// Reads a pickle: its arenas and its value. `instead` says what to do with one that holds more than plain data.
///
/// # Errors
///
/// A pickle that is damaged, or that would run code.
pub fn unpickle<'a>(bytes: &'a [u8], file: &Path, instead: &str) -> Result<(Pickle<'a>, Value<'a>)> {
    let (pickle, root, _) = pickle::read(bytes).map_err(|fault| match fault {
        Fault::Damaged(why) => problem(format!("the pickle {} {why}", file.display()), "copy the file again"),
        Fault::Code(why) => {
            problem(format!("the pickle {} {why}, and only plain data is read", file.display()), instead)
        }
    })?;
    Ok((pickle, root))
}

/// The error for a line that the data set's own files would not have.
pub fn damaged(file: &Path, line: usize, why: &str) -> anyhow::Error {
    problem(
        format!("{}, line {line}: {why}", file.display()),
        "copy the file from the data set again, or use a CSV file (data.kind = \"csv\")",
    )
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::*;
    use super::*;

    #[test]
    fn the_last_word_of_a_line_is_its_rest() {
        let directory = files(&[("a.txt", b"header\n1  x y z\n\n 2\tw\n"), ("bad.txt", b"1 2\n3\n")]);
        let copy = LocalCopy {
            settings: &(),
            data_path: directory.path(),
            kind: DataKind::Sop,
            layout: "a.txt",
            draws_test: false,
        };
        let lines = copy.lines::<2>(&copy.path("a.txt"), 1).unwrap();
        assert_eq!(lines, [["1", "x y z"], ["2", "w"]]);
        let (message, hint) = refusal(copy.lines::<2>(&copy.path("bad.txt"), 0));
        assert!(message.ends_with("bad.txt, line 2: \"3\" has fewer than 2 words"), "{message}");
        assert!(hint.contains("again"));
        let (message, hint) = refusal(copy.text(&copy.path("b.txt")));
        assert!(message.contains("b.txt cannot be read"), "{message}");
        assert!(hint.contains("a copy of `sop` holds a.txt"), "{hint}");
    }

    #[test]
    fn a_rounded_count_agrees_with_what_rounds_to_it() {
        assert!(Count::About(343_100).agrees(343_060) && !Count::About(343_100).agrees(343_200));
        assert!(Count::Exactly(5).agrees(5) && !Count::Exactly(5).agrees(6));
    }
}
