//! With the feature `page`, lists the files of the built page for `src/page/embedded.rs`.

use std::fs;
use std::path::{Path, PathBuf};
use std::{env, error::Error};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_PAGE").is_none() {
        return Ok(());
    }
    let page = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../www/dist");
    println!("cargo::rerun-if-changed={}", page.display());
    if !page.join("index.html").is_file() {
        println!(
            "cargo::error=there is no page in www/dist: build it first with `akin page`, or run native-trainer/install"
        );
        return Ok(());
    }
    let page = page.canonicalize()?;
    let mut files = Vec::new();
    list(&page, &mut files)?;
    files.sort();
    let mut text = String::from("const FILES: &[(&str, bool, &[u8])] = &[\n");
    for file in files.iter().filter(|file| file.extension().is_none_or(|extension| extension != "gz")) {
        let path =
            file.strip_prefix(&page)?.to_str().ok_or("a file name that is not Unicode")?.replace('\\', "/");
        // The compressed copy stands for its file.
        let copy = PathBuf::from(format!("{}.gz", file.display()));
        let is_compressed = files.contains(&copy);
        let stored = if is_compressed { &copy } else { file };
        text += &format!(
            "    ({path:?}, {is_compressed}, include_bytes!({:?})),\n",
            stored.display().to_string()
        );
    }
    text += "];\n";
    fs::write(Path::new(&env::var("OUT_DIR")?).join("page.rs"), text)?;
    Ok(())
}

/// The files below a folder, except the hidden ones and ONNX Runtime.
fn list(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // ONNX Runtime is larger than the whole program.
        if entry.file_name().to_string_lossy().starts_with('.') || entry.file_name() == "onnxruntime" {
            continue;
        }
        if entry.file_type()?.is_dir() {
            list(&entry.path(), files)?;
        } else {
            files.push(entry.path());
        }
    }
    Ok(())
}
