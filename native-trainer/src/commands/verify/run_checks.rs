//! The checks of a run, beyond the checksums of its files.

use std::io;
use std::path::Path;

use akin_base::files::read_regular_file;
use akin_base::problem::a_few;
use akin_base::progress::Progress;
use akin_base::quantities::counted;
use akin_core::evaluate::Report;
use anyhow::{Context, Result};
use burn::tensor::Device;
use serde_json::Value;

use super::check::Checks;
use crate::config::device;
use crate::config::{Config, DeviceName};
use crate::data::Dataset;
use crate::runs::run::{CONFIG_FILE, Run, Which};
use crate::training::changed_keys;
use crate::training::checkpoint::{Checkpoint, Origin};

/// Checks what the files of a run say, and that they agree. The mark tells which of them a complete run must have.
pub fn check(directory: &Path, checks: &mut Checks) {
    let run = checks.result(CONFIG_FILE, Run::open(directory), |_| "a valid config".into());
    let Some(run) = run else { return };
    let origin = check_checkpoint(&run, checks);
    check_log(&run, checks);
    if is_there(&run, "report.json", checks) {
        let report = json::<Report>(&run, "report.json");
        checks.result("report.json", report, |report| counted(report.queries, "query", "queries"));
    }
    if is_there(&run, "run.json", checks) {
        checks.result("run.json", json::<Value>(&run, "run.json"), |_| "a summary".into());
        check_encoders(&run, checks);
    }
    match origin {
        Some(origin) => check_data(&run.config, &origin, checks),
        None => checks.note("data", "not checked, because their digest is in the checkpoint"),
    }
}

/// Checks the checkpoint, and the config against the one in it.
fn check_checkpoint(run: &Run, checks: &mut Checks) -> Option<Origin> {
    let name = "checkpoint.akin";
    match run.file(name).try_exists() {
        Ok(true) => {}
        Ok(false) => {
            checks.note(name, "there is none");
            return None;
        }
        Err(error) => {
            checks.faulty(name, format!("it cannot be read: {error}"));
            return None;
        }
    }
    let checkpoint = checks.result(name, Checkpoint::load(&run.file(name)), |checkpoint| {
        format!("after step {}", checkpoint.step)
    })?;
    let origin = checkpoint.origin;
    let what = "config and checkpoint";
    match toml::from_str::<Config>(&origin.config) {
        Err(error) => checks.faulty(what, format!("the config in the checkpoint cannot be read: {error}")),
        Ok(begun) => {
            let changed = changed_keys(&begun, &run.config);
            match changed.is_empty() {
                true => checks.sound(what, "they agree"),
                false => checks.faulty(what, format!("{CONFIG_FILE} has changed: {}", a_few(&changed))),
            }
        }
    }
    Some(origin)
}

/// Whether a run has a file. That the system cannot tell is a fault.
fn is_there(run: &Run, name: &str, checks: &mut Checks) -> bool {
    run.file(name).try_exists().unwrap_or_else(|error| {
        checks.faulty(name, format!("it cannot be read: {error}"));
        false
    })
}

fn check_log(run: &Run, checks: &mut Checks) {
    let name = "log.jsonl";
    let bytes = match read_regular_file(&run.file(name)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return checks.note(name, "there is none"),
        Err(error) => return checks.faulty(name, format!("it cannot be read: {error}")),
    };
    let lines: Vec<&[u8]> = bytes.split_inclusive(|&byte| byte == b'\n').collect();
    let whole = lines.iter().filter(|line| line.ends_with(b"\n"));
    let damaged = whole.clone().position(|line| serde_json::from_slice::<Value>(line).is_err());
    match damaged {
        Some(line) => checks.faulty(name, format!("line {} is damaged", line + 1)),
        None if whole.clone().count() < lines.len() => {
            checks.note(name, "its last line is not complete; `akin resume` removes it");
        }
        None => checks.sound(name, counted(lines.len(), "line", "lines")),
    }
}

/// Loads the encoders, on the CPU if this akin can.
fn check_encoders(run: &Run, checks: &mut Checks) {
    let device = match device::open(DeviceName::Cpu).or_else(|_| device::open(DeviceName::Auto)) {
        Ok(device) => device,
        Err(_) => return checks.note("weights", "not loaded, because there is no device"),
    };
    let load = |which, device: &Device| run.encoder(which, device).map(drop);
    checks.result("encoder.bpk", load(Which::Last, &device), |_| "the weights fit and are finite".into());
    match run.best() {
        Ok(None) => {}
        Ok(Some((best, _))) => {
            let detail = format!("after step {}, {} {:.4}", best.step, best.metric, best.score);
            checks.result("best.akin", load(Which::Best, &device), |_| detail);
        }
        Err(error) => checks.faulty("best.akin", akin_base::problem::parts(&error).0),
    }
}

fn check_data(config: &Config, origin: &Origin, checks: &mut Checks) {
    let path = config.data.path().display();
    match config.data.path().try_exists() {
        Ok(true) => {}
        Ok(false) => return checks.note("data", format!("not checked: {path} is not there")),
        Err(error) => return checks.faulty("data", format!("{path} cannot be read: {error}")),
    }
    let dataset = Dataset::load(&config.selection());
    match dataset.and_then(|dataset| dataset.digest_with_pictures(Progress::None)) {
        Err(error) => checks.faulty("data", akin_base::problem::parts(&error).0),
        Ok(digest) => match &digest.changes(&origin.data)[..] {
            [] => checks.sound("data", format!("those of the training, in {path}")),
            changes => checks.faulty("data", format!("{path} has changed: {}", changes.join(", "))),
        },
    }
}

fn json<T: serde::de::DeserializeOwned>(run: &Run, name: &str) -> Result<T> {
    let bytes = read_regular_file(&run.file(name)).context("it cannot be read")?;
    serde_json::from_slice(&bytes).context("it is damaged")
}
