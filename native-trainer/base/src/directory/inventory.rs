//! What a directory of results holds besides akin's own bookkeeping.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::Result;

use super::{LOCK_FILE, MARK_FILE};
use crate::files::{PART_PREFIX, PART_SUFFIX, remove_file};

/// What a directory holds besides its mark, its lock and unfinished files: paths relative to it, sorted, with `/`. No
/// name that akin writes has characters that are lost here.
#[derive(Default)]
pub struct Inventory {
    /// Regular files.
    pub files: Vec<String>,
    /// Directories with a mark of their own. What is in them is not listed.
    pub directories: Vec<String>,
    /// Links, pipes and the like, which akin does not make.
    pub others: Vec<String>,
}

impl Inventory {
    /// Lists what a directory holds.
    pub fn take(directory: &Path) -> io::Result<Self> {
        Self::take_until(directory, |_| false)
    }

    /// Whether a directory holds something. Does not list it: this may be the root of a disk.
    pub fn is_of_something(directory: &Path) -> io::Result<bool> {
        Ok(!Self::take_until(directory, |inventory| !inventory.is_empty())?.is_empty())
    }

    /// Lists what a directory holds until that is enough.
    fn take_until(directory: &Path, is_enough: impl Fn(&Self) -> bool) -> io::Result<Self> {
        let mut inventory = Self::default();
        let mut folders = vec![(directory.to_owned(), String::new())];
        while let Some((folder, prefix)) = folders.pop() {
            for entry in fs::read_dir(folder)? {
                if is_enough(&inventory) {
                    return Ok(inventory);
                }
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned();
                if is_part(&name) || name == LOCK_FILE || prefix.is_empty() && name == MARK_FILE {
                    continue;
                }
                let (path, kind) = (format!("{prefix}{name}"), entry.file_type()?);
                if kind.is_file() {
                    inventory.files.push(path);
                } else if !kind.is_dir() {
                    inventory.others.push(path);
                } else if entry.path().join(MARK_FILE).is_file() {
                    inventory.directories.push(path);
                } else {
                    folders.push((entry.path(), format!("{path}/")));
                }
            }
        }
        inventory.files.sort();
        inventory.directories.sort();
        inventory.others.sort();
        Ok(inventory)
    }

    /// Whether the directory holds nothing.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.directories.is_empty() && self.others.is_empty()
    }
}

/// Removes the unfinished files that a killed process left.
pub(crate) fn remove_parts(directory: &Path) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if is_part(&entry.file_name().to_string_lossy()) {
            remove_file(&entry.path())?;
        }
    }
    Ok(())
}

/// Whether this is the name of a file that is not complete.
fn is_part(name: &str) -> bool {
    name.starts_with(PART_PREFIX) && name.ends_with(PART_SUFFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_a_directory_holds_something_is_known_by_its_first_file() {
        let directory = tempfile::tempdir().unwrap();
        let is_of_something = || Inventory::is_of_something(directory.path()).unwrap();
        fs::create_dir_all(directory.path().join("empty/inside")).unwrap();
        assert!(!is_of_something());
        for number in 0..9 {
            fs::write(directory.path().join(format!("empty/inside/{number}")), "").unwrap();
        }
        assert!(is_of_something());
        let first = Inventory::take_until(directory.path(), |inventory| !inventory.is_empty()).unwrap();
        assert_eq!(first.files.len(), 1);
        assert_eq!(Inventory::take(directory.path()).unwrap().files.len(), 9);
    }
}
