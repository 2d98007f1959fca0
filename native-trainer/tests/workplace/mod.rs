//! A folder in which a test runs `akin`, and the answer of `akin`.
#![allow(dead_code, reason = "no test file uses all of it")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A config whose training takes a moment.
const TINY: &str = include_str!("../../examples/tiny.toml");

/// [`TINY`] with some of its text replaced, such as `("steps = 2", "steps = 60")`.
pub(crate) fn tiny(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(TINY.to_owned(), |config, (before, after)| {
        assert!(config.contains(before), "{before} is not in\n{config}");
        config.replace(before, after)
    })
}

/// Copies what is in a folder into another one.
pub(crate) fn copy(from: &Path, to: &Path) {
    for entry in walkdir::WalkDir::new(from).min_depth(1) {
        let entry = entry.unwrap();
        let target = to.join(entry.path().strip_prefix(from).unwrap());
        if entry.file_type().is_dir() {
            fs::create_dir(target).unwrap();
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A temporary folder, usually with drawn creatures in `data` and a config `tiny.toml`.
pub(crate) struct Workplace {
    folder: TempDir,
}

/// The exit code and the output of one call of `akin`.
pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Workplace {
    /// Without any file.
    pub(crate) fn empty() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// With drawn creatures, and [`tiny`] as config.
    pub(crate) fn tiny() -> Self {
        Self::drawn(&tiny(&[]), "16")
    }

    /// With creatures of `side` × `side` pixels and this config.
    pub(crate) fn drawn(config: &str, side: &str) -> Self {
        Self::with_classes(config, "2,2,3", "4", side)
    }

    /// As [`Workplace::drawn`], with other numbers of classes and images.
    pub(crate) fn with_classes(config: &str, branching: &str, images_per_class: &str, side: &str) -> Self {
        let workplace = Self::empty();
        workplace.write("tiny.toml", config);
        let classes = ["biomorphs", "data", "--branching", branching, "--images-per-class", images_per_class];
        workplace.akin(&[&classes[..], &["--side", side]].concat()).expect_code(0);
        workplace
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file, and makes its folder.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).unwrap()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_akin"));
        command.args(arguments).current_dir(&self.folder);
        command
    }

    pub(crate) fn akin(&self, arguments: &[&str]) -> Answer {
        Answer::of(self.command(arguments).output().unwrap())
    }

    /// Runs `akin`, which trains in other processes, and kills the first of these.
    #[cfg(target_os = "linux")]
    pub(crate) fn with_a_killed_training(&self, arguments: &[&str]) -> Answer {
        let mut command = self.command(arguments);
        let process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let killed = Command::new("kill").args(["-KILL", &training_of(process.id())]).status().unwrap();
        assert!(killed.success());
        Answer::of(process.wait_with_output().unwrap())
    }

    /// Runs a line of the shell on a terminal, which `script` of util-linux gives it. The user types `keys`, which the
    /// terminal keeps until a program reads them, and then ends the input.
    pub(crate) fn on_a_terminal(&self, line: &str, keys: &str) -> Answer {
        let mut process = Command::new("script")
            .args(["--quiet", "--return", "--command", line, "/dev/null"])
            .current_dir(&self.folder)
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program `script` is there; it belongs to util-linux, in Debian to bsdutils");
        process.stdin.take().unwrap().write_all(keys.as_bytes()).unwrap();
        Answer::of(process.wait_with_output().unwrap())
    }

    /// Checks that what stands in a directory is finished and sound.
    pub(crate) fn sound(&self, directory: &str) {
        let answer = self.akin(&["verify", directory]);
        assert_eq!(answer.code, Some(0), "{}{}", answer.stdout, answer.stderr);
    }

    /// Checks that a run is sound, or at least has no fault if it is not finished.
    pub(crate) fn undamaged(&self, directory: &str) {
        let answer = self.akin(&["verify", directory]);
        if answer.code != Some(0) {
            let answer = answer.expect_code(1).expect_stderr("is not finished");
            assert!(!answer.stdout.contains("FAULTY"), "{}", answer.stdout);
        }
    }
}

/// The process that trains for another one, once there is one.
#[cfg(target_os = "linux")]
pub(crate) fn training_of(process: u32) -> String {
    loop {
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let read = |name: &str| fs::read_to_string(entry.path().join(name)).unwrap_or_default();
            // The name of the program, which is in brackets, may have spaces.
            let stat = read("stat");
            let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1));
            if parent == Some(&process.to_string()) && read("cmdline").contains("\0train\0") {
                return entry.file_name().into_string().unwrap();
            }
        }
    }
}

impl Answer {
    pub(crate) fn of(Output { status, stdout, stderr }: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
    }

    /// Fails the test unless `akin` ended with this exit code.
    pub(crate) fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// Fails the test unless stderr contains this text.
    pub(crate) fn expect_stderr(self, part: &str) -> Self {
        assert!(self.stderr.contains(part), "no {part:?} in {}", self.stderr);
        self
    }

    /// Fails the test unless stdout contains this text.
    pub(crate) fn expect_stdout(self, part: &str) -> Self {
        assert!(self.stdout.contains(part), "no {part:?} in {}", self.stdout);
        self
    }

    /// The events of `--progress json`.
    pub(crate) fn events(&self) -> Vec<Value> {
        let event = |line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        self.stderr.lines().map(event).collect()
    }

    /// The number of trainings that a comparison began.
    pub(crate) fn trainings(&self) -> usize {
        self.stderr.matches("    Training ").count()
    }
}

/// Numbers from −1 to 1.
pub(crate) fn noise(seed: u64) -> impl Iterator<Item = f64> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let x = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        ((x ^ (x >> 27)) >> 40) as f64 / f64::from(1 << 23) - 1.0
    })
}

/// A file of safetensors with random weights of a backbone, whose names and shapes a fixture of core has, and of more layers.
/// All names begin with `prefix`.
pub(crate) fn weights(fixture: &str, prefix: &str, more: &[(&str, &[usize])]) -> Vec<u8> {
    let fixture: Value = serde_json::from_str(fixture).unwrap();
    let mut shapes: BTreeMap<String, Vec<usize>> =
        serde_json::from_value(fixture["weights"].clone()).unwrap();
    shapes.extend(more.iter().map(|(name, shape)| ((*name).to_owned(), shape.to_vec())));
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (seed, (name, shape)) in (0..).zip(&shapes) {
        let (count, start) = (shape.iter().product::<usize>(), data.len());
        let (centre, scale) = match shape[..] {
            [_] if name.ends_with(".weight") => (1.0, 0.25),
            [_] => (0.0, 0.1),
            _ => (0.0, (6.0 / shape[1..].iter().product::<usize>() as f64).sqrt().min(0.5)),
        };
        let numbers = noise(seed).take(count).map(|number| (centre + scale * number) as f32);
        data.extend(numbers.flat_map(f32::to_le_bytes));
        let entry = json!({ "dtype": "F32", "shape": shape, "data_offsets": [start, data.len()] });
        header.insert(format!("{prefix}{name}"), entry);
    }
    let header = Value::Object(header).to_string();
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data[..]].concat()
}
