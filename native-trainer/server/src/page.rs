//! The page: inside this program, in a folder, or to be built from the source tree.

mod build;
mod embedded;

use std::borrow::Cow;
use std::env;
use std::io;
use std::path::{Path, PathBuf};

use akin_base::files::read_regular_file;
use akin_base::problem::{Advise, problem};
use akin_core::bundle::INDEX;
use anyhow::Result;

pub use self::build::Build;
pub use self::embedded::EmbeddedFile;

/// The built page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Page {
    /// The files of a folder.
    Folder(PathBuf),
    /// The files inside this program.
    Embedded,
    /// A single file of HTML.
    Single(&'static str),
}

impl Page {
    /// The page's Content-Security-Policy: that of the `<meta>` tag in its `index.html`, if it has one.
    ///
    /// # Errors
    ///
    /// An `index.html` that cannot be read.
    pub fn policy(&self) -> Result<Option<String>> {
        const INDEX: &str = "index.html";
        let bytes = match self {
            Self::Folder(folder) => read_regular_file(&folder.join(INDEX)).map(Cow::Owned),
            Self::Single(html) => Ok(Cow::Borrowed(html.as_bytes())),
            Self::Embedded => {
                EmbeddedFile::at(INDEX).map_or(Err(io::ErrorKind::NotFound.into()), EmbeddedFile::bytes)
            }
        };
        let bytes =
            bytes.advise(|| format!("{INDEX} of the page cannot be read"), "run `akin page --force`")?;
        Ok(policy_of(&String::from_utf8_lossy(&bytes)))
    }
}

/// The content of `<meta http-equiv="Content-Security-Policy" content="…">`.
fn policy_of(html: &str) -> Option<String> {
    let tag = html
        .split('<')
        .find(|tag| tag.starts_with("meta") && tag.contains("http-equiv=\"Content-Security-Policy\""))?;
    Some(tag.split_once("content=\"")?.1.split_once('"')?.0.to_owned())
}

/// A page that is there, or that has to be built.
#[derive(Debug, PartialEq, Eq)]
pub enum Plan {
    /// A page that is there.
    Show(Page),
    /// Build that of the source tree in this folder.
    Build(PathBuf, Build),
}

impl Plan {
    /// The page, which is built now if it has to be.
    pub fn carry_out(self) -> Result<Page> {
        match self {
            Self::Show(page) => Ok(page),
            Self::Build(root, build) => build.make(&root).map(Page::Folder),
        }
    }
}

/// Finds the page: the folder `given` with `--page`, the one inside this program, or that of the source tree around the
/// current directory. If the last one has to be built, this says what that installs and how long it takes. Commands call
/// it before long work.
///
/// # Errors
///
/// A folder without a page; no page and no source tree; a page that has to be built where Node is missing.
pub fn plan(given: Option<&Path>, build: Build) -> Result<Plan> {
    if let Some(folder) = given {
        if folder.join("index.html").is_file() {
            return Ok(Plan::Show(Page::Folder(folder.to_owned())));
        }
        return Err(problem(
            format!("{} is not a built page: it has no index.html", folder.display()),
            "run `akin page` in a clone of the repository, and give the folder that it prints",
        ));
    }
    if !EmbeddedFile::all().is_empty() {
        return Ok(Plan::Show(Page::Embedded));
    }
    let root = source_tree()?;
    if let Some(folder) = build.up_to_date(&root) {
        return Ok(Plan::Show(Page::Folder(folder)));
    }
    build.announce(&root)?;
    Ok(Plan::Build(root, build))
}

/// The page that there is.
#[derive(Debug, PartialEq, Eq)]
pub enum State {
    /// It is inside this program.
    Embedded,
    /// It is built, and up to date, in this folder.
    Built(PathBuf),
    /// The source tree in this folder has one that is not built, or older than its sources.
    Old(PathBuf),
    /// There is none, and no source tree.
    None,
}

/// Which page `akin serve` would show. Builds nothing.
pub fn state() -> State {
    if !EmbeddedFile::all().is_empty() {
        return State::Embedded;
    }
    match source_tree() {
        Ok(root) => Build::Quick.up_to_date(&root).map_or(State::Old(root), State::Built),
        Err(_) => State::None,
    }
}

/// What `akin serve` does with these folders, or what it lacks to do so: a sentence for what comes next.
pub fn next_serve(folders: &str, does: &str) -> String {
    match state() {
        State::None => format!(
            "`akin serve {folders}` needs a page, which this akin was built without: run it in a clone of the \
             repository, or add `--page DIR`"
        ),
        _ => format!("`akin serve {folders}` {does}"),
    }
}

/// Builds the small page of the source tree around the current directory, if it is not up to date or `force` is set, and
/// returns its folder.
pub fn build(force: bool) -> Result<PathBuf> {
    let root = source_tree()?;
    match Build::Small.up_to_date(&root) {
        Some(folder) if !force => Ok(folder),
        _ => {
            Build::Small.announce(&root)?;
            Build::Small.make(&root)
        }
    }
}

/// The folder of the galleries that come with akin, with their `bundles.json`, if the current directory is in the source
/// tree.
pub fn galleries() -> Option<PathBuf> {
    let folder = source_tree().ok()?.join("www/galleries");
    folder.join(INDEX).is_file().then_some(folder)
}

/// The root of the source tree that contains the current directory. Building runs programs of that tree, so it is never
/// one that the user is not in.
fn source_tree() -> Result<PathBuf> {
    let here = env::current_dir().ok();
    here.iter()
        .flat_map(|here| here.ancestors())
        .find(|root| root.join("www/index.html").is_file() && root.join("web/engine/Cargo.toml").is_file())
        .map(Path::to_owned)
        .ok_or_else(|| {
            problem(
                "this akin was built without the page, and the current directory is not in its source tree",
                "run akin in a clone of the repository, give a built page with `--page DIR`, or install akin with \
                 the page inside: `native-trainer/install`",
            )
        })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_folder_without_a_page_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = plan(Some(folder.path()), Build::Quick).unwrap_err();
        assert!(error.to_string().contains("no index.html"));
        fs::write(folder.path().join("index.html"), "").unwrap();
        let shown = plan(Some(folder.path()), Build::Quick).unwrap();
        assert_eq!(shown, Plan::Show(Page::Folder(folder.path().to_owned())));
    }

    #[test]
    fn the_policy_is_that_of_the_page() {
        let html = "<meta charset=\"utf-8\" />\n<meta\n  http-equiv=\"Content-Security-Policy\"\n  content=\"default-src 'none'\" />";
        assert_eq!(policy_of(html).unwrap(), "default-src 'none'");
        assert_eq!(policy_of("<meta name=\"Content-Security-Policy\" content=\"x\">"), None);
    }
}
