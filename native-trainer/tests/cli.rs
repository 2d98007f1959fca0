//! The binary as a user meets it: what goes to stdout, what to stderr, which exit code.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

/// What `akin` answered.
struct Answer {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn akin<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Answer {
    let Output { status, stdout, stderr } =
        Command::new(env!("CARGO_BIN_EXE_akin")).args(arguments).output().expect("cargo has built it");
    let text = |bytes| String::from_utf8(bytes).expect("akin writes UTF-8");
    Answer { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

fn in_folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    folder
}

fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_str().unwrap().to_owned()
}

fn png(grey: u8) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    image::GrayImage::from_pixel(1, 1, image::Luma([grey])).write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    bytes.into_inner()
}

#[test]
fn wrong_usage_ends_with_2_and_names_the_nearest_command() {
    let answer = akin(["evla"]);
    assert_eq!(answer.code, Some(2));
    assert!(answer.stderr.contains("'eval'"), "{}", answer.stderr);
    assert_eq!(akin(["eval"]).code, Some(2));
    assert_eq!(akin::<&str>([]).code, Some(2));
}

#[test]
fn an_error_goes_to_stderr_with_a_hint_and_ends_with_1() {
    let answer = akin(["data", "check", "nowhere.toml"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(1), ""));
    assert!(answer.stderr.starts_with("error: the config nowhere.toml cannot be read"), "{}", answer.stderr);
    assert!(answer.stderr.contains("\n  hint: "), "{}", answer.stderr);
}

#[test]
fn data_check_counts_what_is_there() {
    let folder = in_folder(&[
        ("data.toml", b"[data]\nkind = 'folder'\npath = 'images'\nlevels = ['kind', 'variety']\n"),
        ("images/train/Apple/Gala/1.png", &png(1)),
        ("images/train/Apple/Gala/2.png", &png(2)),
        ("images/test/Apple/Fuji/1.png", &png(3)),
        ("images/test/Apple/Fuji/2.png", &png(4)),
    ]);
    let answer = akin(["data", "check", &path(&folder, "data.toml")]);
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    assert!(answer.stdout.contains("train       2     1        1"), "{}", answer.stdout);

    fs::write(folder.path().join("images/test/Apple/Fuji/3.png"), &png(5)[..30]).unwrap();
    fs::write(folder.path().join("images/test/Apple/Fuji/4.heic"), b"\0\0\0\x18ftypheic\0\0\0\0mif1heic").unwrap();
    fs::write(folder.path().join("images/test/Apple/Fuji/5.png"), png(1)).unwrap();
    let answer = akin(["data", "check", &path(&folder, "data.toml")]);
    assert_eq!(answer.code, Some(1));
    for part in ["2 images cannot be read", "3.png: ", "4.heic: ", "HEIC", "in more than one split"] {
        assert!(answer.stdout.contains(part), "{part} in {}", answer.stdout);
    }
    assert!(answer.stderr.starts_with("error: 2 images cannot be read"), "{}", answer.stderr);

    let json = akin(["data", "check", "--json", &path(&folder, "data.toml")]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["unreadable"].as_array().unwrap().len(), 2);
}

#[test]
fn a_mistyped_key_is_named_with_its_place() {
    let folder = in_folder(&[("c.toml", b"[data]\nkind = 'csv'\npath = 'x.csv'\nlevles = ['a']\nlevels = ['b']\n")]);
    let answer = akin(["data", "check", &path(&folder, "c.toml")]);
    assert!(answer.stderr.contains("c.toml, line 4: unknown key `levles` in [data]"), "{}", answer.stderr);
    assert!(answer.stderr.contains("hint: did you mean `levels`?"), "{}", answer.stderr);
}

#[test]
fn serving_something_that_is_no_bundle_is_refused_before_anything_is_built() {
    let folder = in_folder(&[]);
    let answer = akin(["serve", folder.path().to_str().unwrap(), "--port", "0"]);
    assert_eq!(answer.code, Some(1));
    assert!(answer.stderr.contains("is not a bundle"), "{}", answer.stderr);
    assert!(Path::new(folder.path()).read_dir().unwrap().next().is_none());
}
