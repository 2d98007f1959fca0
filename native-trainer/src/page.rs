//! The page: where it is, and how it is built from the source tree.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;
use std::{env, io};

use anyhow::Result;
use walkdir::WalkDir;

use crate::problem::{Advise, problem};

/// Must be what www/Trunk.toml and the workspace's Cargo.toml name.
const TOOLS: [Tool; 2] = [
    Tool { name: "trunk", package: "trunk", version: "0.21.14", locked: true },
    Tool { name: "wasm-bindgen", package: "wasm-bindgen-cli", version: "0.2.130", locked: false },
];
const TARGET: &str = "wasm32-unknown-unknown";

/// A program that comes through cargo.
struct Tool {
    name: &'static str,
    package: &'static str,
    version: &'static str,
    /// Whether it builds with the versions of its own lock file.
    locked: bool,
}

/// The page given by `--page`, else the one of the source tree, built if need be.
pub fn find_or_build(given: Option<&Path>) -> Result<PathBuf> {
    let Some(folder) = given else { return build(false) };
    if folder.join("index.html").is_file() {
        return Ok(folder.to_owned());
    }
    Err(problem(
        format!("{} is not a built page: it has no index.html", folder.display()),
        "give the folder `www/dist` of a source tree in which `akin page` ran",
    ))
}

/// Builds the page if it is not newer than everything that it is made of, or if `force` is set.
pub fn build(force: bool) -> Result<PathBuf> {
    let root = source_tree()?;
    let www = root.join("www");
    let dist = www.join("dist");
    if !force && up_to_date(&root) {
        return Ok(dist);
    }
    eprintln!("building the page in {} (the first time takes some minutes)", www.display());
    provide_target(&root)?;
    let tools = provide_tools()?;
    provide_packages(&www)?;

    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([tools.join("bin")].into_iter().chain(env::split_paths(&path))).advise(
        || format!("{} cannot be put on the PATH", tools.display()),
        "set AKIN_CACHE to a path without `:`",
    )?;
    let mut trunk = Command::new(tools.join("bin/trunk"));
    trunk.args(["build", "--release"]).current_dir(&www).env("PATH", path);
    // Flags for native code would break the wasm build, and this trunk stumbles over NO_COLOR=1.
    trunk.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS").env_remove("NO_COLOR");
    run(&mut trunk, "see what it said above; `akin page --force` tries again")?;
    Ok(dist)
}

/// The folder that holds core, web and www: where this binary was built, or around the current directory.
fn source_tree() -> Result<PathBuf> {
    let built_in = Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned);
    let here = env::current_dir().ok();
    let around = here.iter().flat_map(|here| here.ancestors().map(Path::to_owned));
    built_in
        .into_iter()
        .chain(around)
        .find(|root| root.join("www/Trunk.toml").is_file() && root.join("web/Cargo.toml").is_file())
        .ok_or_else(|| {
            problem(
                "there is no page here, and no source tree to build it from",
                "run in a clone of the repository, or give a page built before with `--page DIR`",
            )
        })
}

/// Whether www/dist is newer than all sources.
fn up_to_date(root: &Path) -> bool {
    let modified = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let Some(built) = modified(&root.join("www/dist/index.html")) else { return false };
    newest_source(root).is_some_and(|newest| newest < built)
}

fn newest_source(root: &Path) -> Option<SystemTime> {
    let made = ["node_modules", "build", "dist", "target"];
    let source = |entry: &walkdir::DirEntry| {
        entry.depth() == 0 || !made.iter().any(|name| entry.file_name().to_str() == Some(name))
    };
    ["core", "web", "www", "Cargo.toml", "Cargo.lock"]
        .iter()
        .flat_map(|part| WalkDir::new(root.join(part)).into_iter().filter_entry(source))
        .filter_map(|entry| entry.ok()?.metadata().ok().filter(fs::Metadata::is_file)?.modified().ok())
        .max()
}

/// The wasm target of the toolchain.
fn provide_target(root: &Path) -> Result<()> {
    let output = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", TARGET])
        .current_dir(root)
        .output()
        .advise(|| "rustc cannot be started".into(), "install Rust from https://rustup.rs")?;
    if Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir() {
        return Ok(());
    }
    eprintln!("installing the Rust target {TARGET} (rustup target add)");
    run(
        Command::new("rustup").args(["target", "add", TARGET]).current_dir(root),
        "install the target with the means of your Rust, or install Rust from https://rustup.rs",
    )
}

/// The folder whose `bin` has the tools, each in its version.
fn provide_tools() -> Result<PathBuf> {
    let tools = cache()?.join("tools");
    for tool in &TOOLS {
        let program = tools.join("bin").join(tool.name);
        if version_of(&program).as_deref() == Some(tool.version) {
            continue;
        }
        eprintln!("installing {} {} into {} (cargo install)", tool.name, tool.version, tools.display());
        let mut install = Command::new("cargo");
        install.args(["install", tool.package, "--version", tool.version, "--force", "--root"]).arg(&tools);
        if tool.locked {
            install.arg("--locked");
        }
        // A tool is no part of a project: its flags and its target folder are its own.
        install.env_remove("RUSTFLAGS").env_remove("CARGO_TARGET_DIR").current_dir(cache()?);
        run(&mut install, "see what it said above; it needs a C compiler and the registry of Rust crates")?;
    }
    Ok(tools)
}

/// `trunk 0.21.14` → `0.21.14`.
fn version_of(program: &Path) -> Option<String> {
    let output =
        Command::new(program).arg("--version").env_remove("NO_COLOR").stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.split_whitespace().nth(1)?.to_owned())
}

/// The page's packages, as its lock file names them.
fn provide_packages(www: &Path) -> Result<()> {
    let hint =
        "install Node 18 or newer, which brings npm: https://nodejs.org, or your system's package `npm`";
    for program in ["node", NPM] {
        let answer = Command::new(program).arg("--version").output();
        let answer = answer.advise(|| format!("{program} cannot be started, and the page needs it"), hint)?;
        if !answer.status.success() {
            return Err(problem(format!("{program} does not work, and the page needs it"), hint));
        }
    }
    let modified = |name: &str| fs::metadata(www.join(name)).and_then(|metadata| metadata.modified()).ok();
    // npm writes this file at the end of an installation.
    let installed = modified("node_modules/.package-lock.json");
    if installed.is_some() && installed >= modified("package-lock.json") {
        return Ok(());
    }
    eprintln!("installing the page's packages into {} (npm ci)", www.join("node_modules").display());
    run(
        Command::new(NPM).args(["ci", "--no-audit", "--no-fund"]).current_dir(www),
        "see what it said above; it needs the npm registry",
    )
}

/// npm is a script on Windows, which goes by another name.
const NPM: &str = if cfg!(windows) { "npm.cmd" } else { "npm" };

/// Where tools are kept: $AKIN_CACHE, or `akin` in the user's cache folder. Made if it is not there.
fn cache() -> Result<PathBuf> {
    let given =
        |name: &str| env::var_os(name).filter(|value: &OsString| !value.is_empty()).map(PathBuf::from);
    let home = || given("HOME").or_else(|| given("USERPROFILE"));
    let cache = given("AKIN_CACHE")
        .or_else(|| Some(given("XDG_CACHE_HOME")?.join("akin")))
        .or_else(|| Some(home()?.join(".cache/akin")))
        .ok_or_else(|| problem("there is no folder to keep tools in", "set AKIN_CACHE to one"))?;
    let made = fs::create_dir_all(&cache).and_then(|()| std::path::absolute(&cache));
    made.advise(
        || format!("{} cannot be used to keep tools in", cache.display()),
        "set AKIN_CACHE to another folder",
    )
}

/// Runs a program whose talk, on stdout too, belongs on stderr.
fn run(command: &mut Command, hint: &str) -> Result<()> {
    let name =
        Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let status = command
        .stdout(io::stderr())
        .status()
        .advise(|| format!("{name} cannot be started"), "install it, or check the PATH")?;
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
    fn the_page_is_built_anew_only_when_a_source_is_newer() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        for source in ["core/src/lib.rs", "web/src/lib.rs", "www/src/page.ts", "Cargo.lock"] {
            write(root, source, 100);
        }
        assert!(!up_to_date(root), "there is none yet");
        write(root, "www/dist/index.html", 50);
        assert!(up_to_date(root));
        for made in ["www/node_modules/lit/index.js", "www/build/page.js", "www/dist/page.js"] {
            write(root, made, 0);
        }
        assert!(up_to_date(root), "what is made is no source");
        write(root, "core/src/lib.rs", 10);
        assert!(!up_to_date(root));
    }

    #[test]
    fn a_folder_that_is_no_page_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = find_or_build(Some(folder.path())).unwrap_err();
        assert!(error.to_string().contains("no index.html"));
        fs::write(folder.path().join("index.html"), "").unwrap();
        assert_eq!(find_or_build(Some(folder.path())).unwrap(), folder.path());
    }
}
