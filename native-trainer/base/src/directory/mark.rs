//! The mark of a directory of results: what it is, and which files akin wrote into it.

use std::collections::HashSet;
use std::io;
use std::path::Path;

use akin_core::bundle::FileEntry;
use akin_core::digest::sha256;
use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::MARK_FILE;
use super::inventory::Inventory;
use super::kind::Kind;
use crate::files::{read_regular_file, write_atomic};
use crate::problem::{Advise, problem};

const VERSION: u32 = 2;

/// The contents of the file [`MARK_FILE`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Mark {
    /// What the directory holds.
    #[serde(rename = "akin")]
    pub kind: Kind,
    version: u32,
    /// Whether this is a draft that stands beside the results that it is to replace.
    #[serde(default)]
    pub beside: bool,
    /// The paths of the files that akin is about to write, see [`Draft::plan`](super::Draft::plan).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub planned: Vec<String>,
    /// What akin wrote, once the directory is complete. Directories with a mark of their own are apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<FileEntry>>,
    /// The directories inside that have a mark of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<String>,
    /// The SHA-256 of this mark without this field.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    sha256: String,
}

/// The part of a [`Mark`] that every version has.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

impl Mark {
    /// The mark of a directory that is begun.
    pub fn new(kind: Kind, beside: bool) -> Self {
        Self {
            kind,
            version: VERSION,
            beside,
            planned: Vec::new(),
            files: None,
            directories: Vec::new(),
            sha256: String::new(),
        }
    }

    /// The mark of a directory; none if it has no mark.
    ///
    /// # Errors
    ///
    /// A mark that cannot be read, is damaged, or is of another version.
    pub fn read(directory: &Path) -> Result<Option<Self>> {
        let path = directory.join(MARK_FILE);
        let bytes = match read_regular_file(&path) {
            Ok(bytes) => bytes,
            Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) => {
                return Ok(None);
            }
            Err(error) => {
                return Err(error)
                    .advise(|| format!("{} cannot be read", path.display()), "check its permissions");
            }
        };
        Self::parse(&path, &bytes).map(Some)
    }

    /// The mark in the bytes of a file.
    ///
    /// # Errors
    ///
    /// A mark that is damaged, or of another version.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self> {
        let damaged = || {
            problem(
                format!("{} is damaged", path.display()),
                "akin no longer knows what it wrote there: use another directory, or remove this one yourself",
            )
        };
        let Version { version } = serde_json::from_slice(bytes).map_err(|_| damaged())?;
        if version != VERSION {
            return Err(problem(
                format!("{} is of version {version}, but this akin knows version {VERSION}", path.display()),
                "use the akin that wrote it, or another directory",
            ));
        }
        let mut mark: Self = serde_json::from_slice(bytes).map_err(|_| damaged())?;
        let stated = std::mem::take(&mut mark.sha256);
        if stated != sha256(&serde_json::to_vec(&mark)?) {
            return Err(damaged());
        }
        Ok(mark)
    }

    /// Writes the mark, with its checksum.
    ///
    /// # Errors
    ///
    /// A file that cannot be written.
    pub fn write(&mut self, directory: &Path) -> Result<()> {
        self.sha256 = String::new();
        self.sha256 = sha256(&serde_json::to_vec(self)?);
        let json = serde_json::to_vec(self)?;
        write_atomic(&directory.join(MARK_FILE), |file| file.write_all(&json))
    }

    /// Whether akin writes a file of this path into the directory.
    pub fn writes(&self, path: &str) -> bool {
        self.kind.writes(path) || self.planned.iter().any(|planned| planned == path)
    }

    /// The paths of the files and directories inside that akin did not write.
    ///
    /// # Errors
    ///
    /// A directory inside that cannot be read, or whose mark cannot.
    pub fn foreign(&self, directory: &Path, inventory: &Inventory) -> Result<Vec<String>> {
        let known: Option<HashSet<&str>> = self.files.as_ref().map(|files| {
            files.iter().map(|file| &*file.path).chain(self.directories.iter().map(String::as_str)).collect()
        });
        let is_own = |path: &str, by_name: bool| match &known {
            Some(known) => known.contains(path),
            None => by_name,
        };
        let files = inventory.files.iter().filter(|path| !is_own(path, self.writes(path)));
        let mut foreign: Vec<String> = files.chain(&inventory.others).cloned().collect();
        for path in &inventory.directories {
            if !is_own(path, self.kind.has_directories()) {
                foreign.push(path.clone());
                continue;
            }
            let inner = directory.join(path);
            if let Some(mark) = Mark::read(&inner)? {
                let inside = mark.foreign(&inner, &Inventory::take(&inner)?)?;
                foreign.extend(inside.into_iter().map(|inside| format!("{path}/{inside}")));
            }
        }
        Ok(foreign)
    }
}

/// What is wrong with a file that a mark lists, in words.
pub enum Flaw {
    /// It is missing or cannot be read.
    Unreadable(String),
    /// It was read, and is not as akin wrote it.
    Changed(String),
}

impl Flaw {
    /// The words.
    pub fn why(self) -> String {
        match self {
            Self::Unreadable(why) | Self::Changed(why) => why,
        }
    }
}

/// Reads a file that a mark lists.
///
/// # Errors
///
/// A file that is missing, has another length or another SHA-256, or cannot be read.
pub fn check_file(directory: &Path, file: &FileEntry) -> std::result::Result<Vec<u8>, Flaw> {
    let bytes = read_regular_file(&directory.join(&file.path))
        .map_err(|error| Flaw::Unreadable(format!("it cannot be read: {error}")))?;
    if bytes.len() as u64 != file.bytes {
        return Err(Flaw::Changed(format!("it has {} bytes instead of {}", bytes.len(), file.bytes)));
    }
    match sha256(&bytes) == file.sha256 {
        true => Ok(bytes),
        false => Err(Flaw::Changed("its SHA-256 is not the one in the mark of the directory".into())),
    }
}

/// Reads a file of a complete directory, and checks that it is as akin wrote it.
///
/// # Errors
///
/// A directory without a mark, or one that is not complete; a file that the mark does not list, or that has changed.
pub fn read_checked(directory: &Path, name: &str) -> Result<Vec<u8>> {
    let path = directory.join(name);
    let again = "restore the directory from a copy, or make it again";
    let files = Mark::read(directory)?.and_then(|mark| mark.files);
    let Some(file) = files.iter().flatten().find(|file| file.path == name) else {
        return Err(problem(format!("{} is not complete: it has no {name}", directory.display()), again));
    };
    check_file(directory, file)
        .map_err(|flaw| problem(format!("{} is damaged: {}", path.display(), flaw.why()), again))
}

/// Whether a directory is complete and still has every file that akin wrote. Their contents are not checked.
///
/// # Errors
///
/// The errors of [`Mark::read`].
pub fn is_complete(kind: Kind, directory: &Path) -> Result<bool> {
    let mark = Mark::read(directory)?.filter(|mark| mark.kind == kind);
    let files = mark.and_then(|mark| mark.files);
    Ok(files.is_some_and(|files| files.iter().all(|file| directory.join(&file.path).is_file())))
}

/// The paths of the files and directories inside a complete directory that akin did not write.
///
/// # Errors
///
/// A directory that cannot be read.
pub fn foreign(mark: &Mark, directory: &Path) -> Result<Vec<String>> {
    let inventory = Inventory::take(directory)
        .advise(|| format!("{} cannot be read", directory.display()), "check its permissions")?;
    mark.foreign(directory, &inventory)
}

/// The paths of the directories inside one that have a mark of their own, sorted. What is in these is not listed.
///
/// # Errors
///
/// A directory that cannot be read.
pub fn directories_in(directory: &Path) -> Result<Vec<String>> {
    let inventory = Inventory::take(directory)
        .advise(|| format!("{} cannot be read", directory.display()), "check its permissions")?;
    Ok(inventory.directories)
}
