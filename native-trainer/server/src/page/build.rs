//! Builds the page from the source tree.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use akin_base::problem::{Advise, problem};
use akin_base::terminal;
use anyhow::Result;
use walkdir::WalkDir;

const TARGET: &str = "wasm32-unknown-unknown";

/// The version of Node that the scripts of the page need.
const NODE: (u32, u32) = (20, 15);

/// How the page is built. Both ways give the same page to its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Build {
    /// For this machine: it is there much sooner, and its modules are larger.
    Quick,
    /// For others: as small as it gets.
    Small,
}

impl Build {
    /// The folder of the built page.
    fn folder(self, root: &Path) -> PathBuf {
        root.join(match self {
            Self::Quick => "www/dist-quick",
            Self::Small => "www/dist",
        })
    }

    fn duration(self) -> &'static str {
        match self {
            Self::Quick => "about 7 minutes on two cores the first time, and 2 minutes after a change",
            Self::Small => "about 12 minutes on two cores the first time, and 3 minutes after a change",
        }
    }

    /// The folder of a built page that is newer than all sources. The small page serves this machine, too.
    pub(crate) fn up_to_date(self, root: &Path) -> Option<PathBuf> {
        let newest = newest_source(root)?;
        let folders = [Self::Small, self].map(|build| build.folder(root));
        folders
            .into_iter()
            .find(|folder| modified(&folder.join("index.html")).is_some_and(|built| newest < built))
    }

    /// Says how long the build takes, and what it installs where.
    ///
    /// # Errors
    ///
    /// A program that is missing and that akin does not install.
    pub(crate) fn announce(self, root: &Path) -> Result<()> {
        check_node()?;
        let www = root.join("www");
        terminal::say(format_args!("Building the page of {} takes {}.", www.display(), self.duration()));
        let target =
            (!has_target(root)?).then(|| format!("the Rust target {TARGET} into the toolchain, with rustup"));
        let packages = (!has_packages(&www))
            .then(|| format!("the page's packages into {}, with npm", www.join("node_modules").display()));
        let missing: Vec<String> = target.into_iter().chain(packages).collect();
        if !missing.is_empty() {
            terminal::say(format_args!("First it installs {}.", missing.join(", and ")));
        }
        Ok(())
    }

    /// Installs what is missing, builds the page, and returns its folder.
    pub(crate) fn make(self, root: &Path) -> Result<PathBuf> {
        let www = root.join("www");
        if !has_target(root)? {
            run(
                Command::new("rustup").args(["target", "add", TARGET]).current_dir(root),
                "install the target with the package manager that installed Rust, or install Rust from https://rustup.rs",
            )?;
        }
        if !has_packages(&www) {
            run(
                Command::new(NPM).args(["ci", "--no-audit", "--no-fund"]).current_dir(&www),
                "see its messages above; npm needs access to its registry",
            )?;
        }
        let mut node = Command::new("node");
        node.arg("scripts/page.mjs").current_dir(&www);
        if self == Self::Quick {
            node.arg("--quick");
        }
        // Flags for native code would break the wasm build.
        node.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
        run(&mut node, "see its messages above; the same command tries again")?;
        Ok(self.folder(root))
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

fn newest_source(root: &Path) -> Option<SystemTime> {
    let generated = [
        "node_modules",
        "build",
        "dist",
        "dist.draft",
        "dist-quick",
        "dist-quick.draft",
        "galleries",
        "out",
        "target",
    ];
    let source = |entry: &walkdir::DirEntry| {
        entry.depth() == 0 || !generated.iter().any(|name| entry.file_name().to_str() == Some(name))
    };
    ["core", "web", "www", "Cargo.toml", "Cargo.lock"]
        .iter()
        .flat_map(|part| WalkDir::new(root.join(part)).into_iter().filter_entry(source))
        .filter_map(|entry| entry.ok()?.metadata().ok().filter(fs::Metadata::is_file)?.modified().ok())
        .max()
}

/// Whether the toolchain has the wasm target.
fn has_target(root: &Path) -> Result<bool> {
    let output = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", TARGET])
        .current_dir(root)
        .output()
        .advise(|| "rustc cannot be started".into(), "install Rust from https://rustup.rs")?;
    Ok(Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}

/// Whether the packages of the lock file are installed.
fn has_packages(www: &Path) -> bool {
    // npm writes this file last.
    let installed = modified(&www.join("node_modules/.package-lock.json"));
    installed.is_some() && installed >= modified(&www.join("package-lock.json"))
}

/// Refuses to go on without Node and npm.
fn check_node() -> Result<()> {
    let hint =
        "install Node 20.15 or newer, which brings npm: https://nodejs.org, or your system's package `npm`";
    let mut versions = [String::new(), String::new()];
    for (program, version) in ["node", NPM].into_iter().zip(&mut versions) {
        let answer = Command::new(program).arg("--version").output();
        let answer =
            answer.advise(|| format!("{program} cannot be started, and building the page needs it"), hint)?;
        if !answer.status.success() {
            return Err(problem(
                format!("`{program} --version` failed, and building the page needs {program}"),
                hint,
            ));
        }
        *version = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
    }
    let [node, _] = versions;
    match parse_version(&node).is_some_and(|version| version >= NODE) {
        true => Ok(()),
        false => Err(problem(format!("Node is {node}, which is too old to build the page"), hint)),
    }
}

/// `v20.15.1` → (20, 15).
fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.strip_prefix('v')?.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

/// On Windows npm is a script.
const NPM: &str = if cfg!(windows) { "npm.cmd" } else { "npm" };

/// Runs a program, and says so. Its output goes to stderr.
fn run(command: &mut Command, hint: &str) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
    terminal::say(format_args!("running {name} {}", arguments.join(" ")));
    let status = command
        .stdout(terminal::stderr_of_child())
        .status()
        .advise(|| format!("{name} cannot be started"), "install it, or check PATH")?;
    if status.success() { Ok(()) } else { Err(problem(format!("{name} failed ({status})"), hint)) }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::Duration;

    use super::*;

    fn write(root: &Path, name: &str, age: u64) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        File::create(&path).unwrap().set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
    }

    #[test]
    fn the_page_is_outdated_when_a_source_is_newer() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        for source in ["core/src/lib.rs", "web/engine/src/lib.rs", "www/src/page.ts", "Cargo.lock"] {
            write(root, source, 100);
        }
        assert_eq!(Build::Small.up_to_date(root), None, "there is no page yet");
        write(root, "www/dist-quick/index.html", 60);
        assert_eq!(Build::Small.up_to_date(root), None, "a quick page is not for others");
        assert_eq!(Build::Quick.up_to_date(root), Some(root.join("www/dist-quick")));
        write(root, "www/dist/index.html", 50);
        for build in [Build::Quick, Build::Small] {
            assert_eq!(build.up_to_date(root), Some(root.join("www/dist")));
        }
        for generated in [
            "www/node_modules/lit/a.js",
            "www/build/page.js",
            "www/dist/page.js",
            "www/dist-quick/page.js",
            "www/galleries/a/labels.bin",
        ] {
            write(root, generated, 0);
        }
        assert!(Build::Small.up_to_date(root).is_some(), "generated files and galleries are no sources");
        write(root, "core/src/lib.rs", 10);
        assert_eq!(Build::Quick.up_to_date(root), None);
    }

    #[test]
    fn the_version_of_node_is_read() {
        assert_eq!(parse_version("v20.15.1"), Some((20, 15)));
        assert!(parse_version("v18.19.0") < Some(NODE) && parse_version("v22.1.0") > Some(NODE));
        assert_eq!(parse_version("nonsense"), None);
    }
}
