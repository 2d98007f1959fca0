//! What the compiler does not hold: which room of the trainer imports which, and that all writing goes through one module.

use std::fs;
use std::path::{Path, PathBuf};

/// The rooms of `src`, each above those that it may import. The page of `src/lib.rs` says what they are.
const ROOMS: [&str; 10] = [
    "cli",
    "commands",
    "comparison",
    "training",
    "exchange",
    "evaluation",
    "pictures",
    "runs",
    "data",
    "config",
];

#[test]
fn no_room_imports_one_above_it() {
    let mut found = Vec::new();
    for (place, room) in ROOMS.iter().enumerate() {
        for (file, text) in sources("src").filter(|(file, _)| file.starts_with(Path::new("src").join(room))) {
            for above in &ROOMS[..place] {
                let import = format!("crate::{above}::");
                let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
                let lines = lines.filter(|line| line.contains(&import));
                found.extend(lines.map(|line| format!("{} imports {above}: {line}", file.display())));
            }
        }
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn every_folder_of_the_source_is_a_room() {
    let folders = fs::read_dir(root().join("src")).unwrap().map(|entry| entry.unwrap().path());
    for folder in folders.filter(|path| path.is_dir()) {
        let name = folder.file_name().unwrap().to_str().unwrap();
        assert!(ROOMS.contains(&name), "`{name}` needs a place in `ROOMS`");
    }
}

/// So that a test can make every write fail, see `base/src/faults.rs`. The folder of build tools in `page/build` holds no
/// results.
#[test]
fn only_one_module_writes() {
    let writes = [
        "fs::write",
        "fs::copy",
        "fs::rename",
        "fs::remove",
        "fs::create_dir",
        "File::create",
        "OpenOptions",
    ];
    let writers = ["base/src/files.rs", "base/src/faults.rs", "server/src/page/build.rs", "src/config_md.rs"];
    let rooms = ["src", "base/src", "figures/src", "formats/src", "server/src"];
    for (file, text) in rooms.into_iter().flat_map(sources) {
        if writers.iter().any(|writer| file == Path::new(writer))
            || file.ends_with("tests.rs")
            || file.ends_with("fixtures.rs")
        {
            continue;
        }
        // The tests of a module write as they like.
        let text = text.split("#[cfg(test)]").next().unwrap();
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let found: Vec<&str> = code.filter(|line| writes.iter().any(|write| line.contains(write))).collect();
        assert!(found.is_empty(), "{}: {found:?}", file.display());
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The Rust files below a folder of the trainer, with their texts.
fn sources(folder: &str) -> impl Iterator<Item = (PathBuf, String)> {
    let files =
        walkdir::WalkDir::new(root().join(folder)).into_iter().map(|entry| entry.unwrap().into_path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    files.map(|path| (path.strip_prefix(root()).unwrap().to_owned(), fs::read_to_string(&path).unwrap()))
}
