//! ONNX Runtime for the page, in the folder `onnxruntime` beside it: the page runs encoders that are ONNX files with it. It is
//! larger than the page, so that it is in no program, and on a site only if a bundle needs it.

use std::env;
use std::path::{Path, PathBuf};

use akin_base::files::read_regular_file;
use akin_base::problem::problem;
use akin_core::digest::sha256;
use anyhow::Result;
use serde_json::Value;

use crate::bundles::Bundles;
use crate::page::Page;

/// The folder on a site.
pub const FOLDER: &str = "onnxruntime";

/// The list of its files, and its licence, which every akin has.
const OWN: [(&str, &[u8]); 2] = [
    ("akin-files.json", include_bytes!("../../../www/onnxruntime/akin-files.json")),
    ("LICENCE.txt", include_bytes!("../../../www/onnxruntime/LICENCE.txt")),
];

/// The version of the package onnxruntime-web.
const VERSION: &str = "1.30.0";

/// The folder of ONNX Runtime on this machine, whose files are checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnnxRuntime {
    folder: PathBuf,
}

impl OnnxRuntime {
    /// Checks a folder that was given, before long work.
    ///
    /// # Errors
    ///
    /// The folder has other files.
    pub fn check(given: Option<&Path>) -> Result<()> {
        match given.and_then(check) {
            Some(fault) => Err(problem(format!("this is not ONNX Runtime for the page: {fault}"), hint())),
            None => Ok(()),
        }
    }

    /// Finds it for bundles that need it: in the folder `given`, else in that of the page, else in `share/akin` beside the
    /// folder of this program. None if no bundle needs it.
    ///
    /// # Errors
    ///
    /// It is nowhere, or the folder `given` has other files.
    pub fn find(given: Option<&Path>, page: &Page, bundles: &Bundles) -> Result<Option<Self>> {
        let Some(bundle) = bundles.with_onnx() else { return Ok(None) };
        let beside_page = match page {
            Page::Folder(page) => Some(page.join(FOLDER)),
            Page::Embedded | Page::Single(_) => None,
        };
        let program = env::current_exe().ok();
        let shared =
            program.and_then(|program| Some(program.parent()?.parent()?.join("share/akin").join(FOLDER)));
        let places = match given {
            Some(folder) => vec![folder.to_owned()],
            None => beside_page.into_iter().chain(shared).collect(),
        };
        let mut fault = String::new();
        for folder in places {
            match check(&folder) {
                None => return Ok(Some(Self { folder })),
                Some(found) if fault.is_empty() => fault = found,
                Some(_) => {}
            }
        }
        Err(problem(
            format!(
                "the bundle {bundle} has an encoder that is an ONNX file, and ONNX Runtime for the page is missing: {fault}"
            ),
            hint(),
        ))
    }

    /// The paths of all files, relative to the folder on a site: copies of a file, or bytes.
    pub fn files(&self) -> impl Iterator<Item = (String, RuntimeFile)> {
        let own = OWN.iter().map(|&(name, bytes)| (format!("{FOLDER}/{name}"), RuntimeFile::Bytes(bytes)));
        let copies = listed()
            .into_iter()
            .map(|(name, _)| (format!("{FOLDER}/{name}"), RuntimeFile::CopyOf(self.folder.join(name))));
        own.chain(copies)
    }

    /// The bytes of a file that every akin has, by its path on a site.
    pub(crate) fn own(path: &str) -> Option<&'static [u8]> {
        let name = path.strip_prefix(FOLDER)?.strip_prefix('/')?;
        OWN.iter().find(|(own, _)| *own == name).map(|(_, bytes)| *bytes)
    }

    /// Its folder on this machine.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

fn hint() -> String {
    format!(
        "run `npm pack onnxruntime-web@{VERSION}`, unpack it, and add `--onnxruntime package/dist`; \
         `native-trainer/install` and `akin page` in a clone of the repository bring it, too"
    )
}

/// A file of ONNX Runtime.
pub enum RuntimeFile {
    /// The same as the file at this path.
    CopyOf(PathBuf),
    /// These bytes.
    Bytes(&'static [u8]),
}

/// The names of the files from the package, each with its SHA-256.
fn listed() -> Vec<(String, String)> {
    let list: Value = serde_json::from_slice(OWN[0].1).unwrap_or_default();
    let text = |file: &Value, key: &str| file[key].as_str().map(str::to_owned);
    let files = list["files"].as_array().cloned().unwrap_or_default();
    files.iter().filter_map(|file| Some((text(file, "path")?, text(file, "sha256")?))).collect()
}

/// What is wrong with a folder; none if it has every file.
fn check(folder: &Path) -> Option<String> {
    listed().into_iter().find_map(|(name, digest)| match read_regular_file(&folder.join(&name)) {
        Ok(bytes) if sha256(&bytes) == digest => None,
        Ok(_) => Some(format!("{} is not that of onnxruntime-web {VERSION}", folder.join(name).display())),
        Err(_) => Some(format!("{} cannot be read", folder.join(name).display())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_the_files_of_both_builds() {
        let names: Vec<String> = listed().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), 6);
        for part in ["ort.wasm", "ort.webgpu", "threaded.wasm", "asyncify.wasm"] {
            assert!(names.iter().any(|name| name.contains(part)), "{part}");
        }
    }

    #[test]
    fn a_folder_with_other_files_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        assert!(check(folder.path()).unwrap().contains("ort.wasm.min.mjs cannot be read"));
        std::fs::write(folder.path().join("ort.wasm.min.mjs"), "other").unwrap();
        assert!(check(folder.path()).unwrap().contains("not that of onnxruntime-web"));
    }
}
