//! Builds the page from the source tree.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use akin_base::problem::{Advise, problem};
use akin_base::terminal;
use anyhow::Result;
use walkdir::WalkDir;

/// Their versions must be those in www/Trunk.toml and the workspace's Cargo.toml.
const TOOLS: [Tool; 2] = [
    Tool { name: "trunk", package: "trunk", version: "0.21.14", locked: true },
    Tool { name: "wasm-bindgen", package: "wasm-bindgen-cli", version: "0.2.130", locked: false },
];
const TARGET: &str = "wasm32-unknown-unknown";

/// The settings of cargo with which a tool is built. It runs for seconds, so that minutes of optimising, which trunk's own
/// settings ask for, never pay.
const QUICK_BUILD: [(&str, &str); 3] = [
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"),
];

/// How long the build takes.
pub(crate) const DURATION: &str = "about 3 minutes on two cores, and up to half an hour the first time";

/// A program that cargo installs.
struct Tool {
    name: &'static str,
    package: &'static str,
    version: &'static str,
    /// Whether to build it with its own lock file.
    locked: bool,
}

impl Tool {
    /// Whether the folder `tools` has this version.
    fn is_installed(&self, tools: &Path) -> bool {
        version_of(&tools.join("bin").join(self.name)).as_deref() == Some(self.version)
    }
}

/// Builds the page of a source tree if a source is newer than it or `force` is set, and returns its folder.
pub(crate) fn build(root: &Path, force: bool) -> Result<PathBuf> {
    let www = root.join("www");
    let dist = www.join("dist");
    if !force && is_up_to_date(root) {
        return Ok(dist);
    }
    terminal::say(format_args!("building the page in {} ({DURATION})", www.display()));
    provide_target(root)?;
    let tools = provide_tools()?;
    provide_packages(&www)?;

    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([tools.join("bin")].into_iter().chain(env::split_paths(&path))).advise(
        || format!("{} cannot be added to PATH", tools.display()),
        "set AKIN_CACHE to a path without `:`",
    )?;
    let mut trunk = Command::new(tools.join("bin/trunk"));
    trunk.args(["build", "--release"]).current_dir(&www).env("PATH", path);
    // Flags for native code would break the wasm build, and this version of trunk refuses NO_COLOR=1.
    trunk.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS").env_remove("NO_COLOR");
    run(&mut trunk, "see its messages above; `akin page --force` tries again")?;
    Ok(dist)
}

/// What building the page would install first, each with its place.
pub(crate) fn missing(root: &Path) -> Result<Vec<String>> {
    let mut missing = Vec::new();
    if !has_target(root)? {
        missing.push(format!("the Rust target {TARGET}, with rustup"));
    }
    let tools = cache()?.join("tools");
    for tool in TOOLS.iter().filter(|tool| !tool.is_installed(&tools)) {
        let Tool { name, version, .. } = tool;
        missing.push(format!("{name} {version} into {}, with cargo", tools.display()));
    }
    let www = root.join("www");
    if !has_packages(&www) {
        missing.push(format!("the page's packages into {}, with npm", www.join("node_modules").display()));
    }
    Ok(missing)
}

/// Whether www/dist is newer than all sources.
pub(crate) fn is_up_to_date(root: &Path) -> bool {
    let modified = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let Some(built) = modified(&root.join("www/dist/index.html")) else { return false };
    newest_source(root).is_some_and(|newest| newest < built)
}

fn newest_source(root: &Path) -> Option<SystemTime> {
    let generated = ["node_modules", "build", "dist", "galleries", "target"];
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

/// Installs the wasm target of the toolchain if it is missing.
fn provide_target(root: &Path) -> Result<()> {
    if has_target(root)? {
        return Ok(());
    }
    terminal::say(format_args!("installing the Rust target {TARGET} (rustup target add)"));
    run(
        Command::new("rustup").args(["target", "add", TARGET]).current_dir(root),
        "install the target with the package manager that installed Rust, or install Rust from https://rustup.rs",
    )
}

/// Installs the tools that are missing or have another version. Returns the folder that contains `bin`.
fn provide_tools() -> Result<PathBuf> {
    let cache = cache()?;
    fs::create_dir_all(&cache).advise(
        || format!("{} cannot be used as the folder for build tools", cache.display()),
        "set AKIN_CACHE to another folder",
    )?;
    let tools = cache.join("tools");
    for tool in &TOOLS {
        if tool.is_installed(&tools) {
            continue;
        }
        let Tool { name, version, .. } = tool;
        terminal::say(format_args!("installing {name} {version} into {} (cargo install)", tools.display()));
        let mut install = Command::new("cargo");
        install.args(["install", tool.package, "--version", tool.version, "--force", "--root"]).arg(&tools);
        if tool.locked {
            install.arg("--locked");
        }
        install.envs(QUICK_BUILD);
        // The flags and the target folder of this project must not apply to a tool.
        install.env_remove("RUSTFLAGS").env_remove("CARGO_TARGET_DIR").current_dir(&cache);
        run(&mut install, "see its messages above; cargo needs a C compiler and access to crates.io")?;
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

/// Installs the npm packages in the page's lock file if they are missing or older than it.
fn provide_packages(www: &Path) -> Result<()> {
    let hint =
        "install Node 20.15 or newer, which brings npm: https://nodejs.org, or your system's package `npm`";
    for program in ["node", NPM] {
        let answer = Command::new(program).arg("--version").output();
        let answer =
            answer.advise(|| format!("{program} cannot be started, and building the page needs it"), hint)?;
        if !answer.status.success() {
            return Err(problem(
                format!("`{program} --version` failed, and building the page needs {program}"),
                hint,
            ));
        }
    }
    if has_packages(www) {
        return Ok(());
    }
    terminal::say(format_args!(
        "installing the page's packages into {} (npm ci)",
        www.join("node_modules").display()
    ));
    run(
        Command::new(NPM).args(["ci", "--no-audit", "--no-fund"]).current_dir(www),
        "see its messages above; npm needs access to its registry",
    )
}

/// Whether the packages of the lock file are installed.
fn has_packages(www: &Path) -> bool {
    let modified = |name: &str| fs::metadata(www.join(name)).and_then(|metadata| metadata.modified()).ok();
    // npm writes this file last.
    let installed = modified("node_modules/.package-lock.json");
    installed.is_some() && installed >= modified("package-lock.json")
}

/// On Windows npm is a script.
const NPM: &str = if cfg!(windows) { "npm.cmd" } else { "npm" };

/// The folder for tools: $AKIN_CACHE, or `akin` in the user's cache folder.
fn cache() -> Result<PathBuf> {
    let given =
        |name: &str| env::var_os(name).filter(|value: &OsString| !value.is_empty()).map(PathBuf::from);
    let home = || given("HOME").or_else(|| given("USERPROFILE"));
    let cache = given("AKIN_CACHE")
        .or_else(|| Some(given("XDG_CACHE_HOME")?.join("akin")))
        .or_else(|| Some(home()?.join(".cache/akin")))
        .ok_or_else(|| {
            problem(
                "no folder for build tools was found: neither AKIN_CACHE nor HOME is set",
                "set AKIN_CACHE to a folder",
            )
        })?;
    std::path::absolute(&cache).advise(
        || format!("{} cannot be used as the folder for build tools", cache.display()),
        "set AKIN_CACHE to another folder",
    )
}

/// Runs a program. Its output goes to stderr.
fn run(command: &mut Command, hint: &str) -> Result<()> {
    let name =
        Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
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
        assert!(!is_up_to_date(root), "there is no page yet");
        write(root, "www/dist/index.html", 50);
        assert!(is_up_to_date(root));
        for generated in [
            "www/node_modules/lit/a.js",
            "www/build/page.js",
            "www/dist/page.js",
            "www/galleries/a/labels.bin",
        ] {
            write(root, generated, 0);
        }
        assert!(is_up_to_date(root), "generated files and galleries are not sources of the page");
        write(root, "core/src/lib.rs", 10);
        assert!(!is_up_to_date(root));
    }
}
