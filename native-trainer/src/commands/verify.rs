//! `akin verify`: checks what akin wrote.

mod bundle_checks;
mod check;
mod run_checks;

use std::path::{Path, PathBuf};

use akin_core::bundle::{INDEX, Index, MANIFEST};
use anyhow::Result;
use clap::Args;
use rayon::prelude::*;
use serde_json::json;

use self::check::{Check, Checks, State};
use crate::columns::align_words;
use crate::counts::{count, counted};
use crate::directory::{self, Flaw, Kind, MARK_FILE, Mark, check_file, foreign};
use crate::files::read_regular_file;
use crate::problem::{Advise, parts, problem};
use crate::run::CONFIG_FILE;
use crate::terminal;

/// Check every file of a run, a bundle or another directory that akin wrote.
///
/// Checks lengths and SHA-256, that every file can be read and says what it should, and that files agree with each
/// other. For a run: its config, checkpoint, log, results and weights, and whether its data have changed. For a bundle:
/// its manifest, labels, embeddings, maps, thumbnails and weights. For a data set, a comparison, a tuning, a demo and a
/// site: all of their files, and the directories in them. Exits with 1 if anything is damaged, missing or changed.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The directories to check.
    #[arg(value_name = "RUN|BUNDLE", required = true)]
    pub directories: Vec<PathBuf>,
    /// Print the checks as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Checks the directories and prints what was found.
pub fn run(args: VerifyArgs) -> Result<()> {
    let mut verified = Vec::new();
    for directory in &args.directories {
        verify(directory, false, &mut verified)?;
    }
    if args.json {
        let directories = verified.iter().map(|Verified { directory, what, checks, .. }| {
            json!({ "directory": directory, "kind": what, "sound": faults(checks) == 0, "checks": checks })
        });
        let sound = verified.iter().all(|verified| faults(&verified.checks) == 0);
        let all = json!({ "sound": sound, "directories": directories.collect::<Vec<_>>() });
        terminal::print(&serde_json::to_string_pretty(&all)?)?;
    } else {
        terminal::print(&tables(&verified).join("\n\n"))?;
    }
    let faulty: Vec<&Verified> = verified.iter().filter(|verified| faults(&verified.checks) > 0).collect();
    match &faulty[..] {
        [] => Ok(()),
        [Verified { directory, checks, .. }, rest @ ..] => {
            let more = match rest.len() {
                0 => String::new(),
                more => {
                    format!(", and so are parts of {}", counted(more, "other directory", "other directories"))
                }
            };
            let count = counted(faults(checks), "part", "parts");
            let are = if faults(checks) == 1 { "is" } else { "are" };
            Err(problem(
                format!("{count} of {} {are} damaged, missing or changed{more}", directory.display()),
                "restore them from a copy, or make the directory again",
            ))
        }
    }
}

/// A directory and what its checks found.
struct Verified {
    directory: PathBuf,
    /// The name of its kind.
    what: &'static str,
    /// Whether it is inside another one.
    is_inside: bool,
    checks: Vec<Check>,
}

/// If a directory holds more sound directories than this, they are counted in one line.
const FEW_INSIDE: usize = 3;
/// If more checks than this in a row have the same result, they are counted.
const FEW_ALIKE: usize = 10;

/// A table for each directory. Where many are inside another one, those without a fault or a note are counted.
fn tables(verified: &[Verified]) -> Vec<String> {
    let mut tables = Vec::new();
    for group in verified.chunk_by(|_, next| next.is_inside) {
        let is_sound = |one: &Verified| one.checks.iter().all(|check| check.state == State::Sound);
        let inside = group.iter().filter(|one| one.is_inside);
        let counts_sound = inside.clone().filter(|one| is_sound(one)).count() > FEW_INSIDE;
        let shown = group.iter().filter(|one| !(counts_sound && one.is_inside && is_sound(one)));
        tables.extend(shown.map(Verified::table));
        if counts_sound {
            let mut kinds: Vec<(&str, usize)> = Vec::new();
            for one in inside.filter(|one| is_sound(one)) {
                match kinds.iter_mut().find(|(what, _)| *what == one.what) {
                    Some((_, count)) => *count += 1,
                    None => kinds.push((one.what, 1)),
                }
            }
            let kinds: Vec<String> =
                kinds.into_iter().map(|(what, number)| counted(number, what, &format!("{what}s"))).collect();
            tables.push(format!("inside: {} ok", kinds.join(", ")));
        }
    }
    tables
}

fn faults(checks: &[Check]) -> usize {
    checks.iter().filter(|check| check.state == State::Faulty).count()
}

impl Verified {
    fn table(&self) -> String {
        let row = |check: &Check| {
            let state = match check.state {
                State::Sound => "ok",
                State::Note => "note",
                State::Faulty => "FAULTY",
            };
            vec![check.what.clone(), state.to_owned(), check.detail.clone()]
        };
        let header = format!("{} {}", self.what, self.directory.display());
        let alike = self.checks.chunk_by(|one, next| (one.state, &one.detail) == (next.state, &next.detail));
        let mut rows = Vec::new();
        for checks in alike {
            rows.extend(checks.iter().take(FEW_ALIKE).map(row));
            if let Some(more @ 1..) = checks.len().checked_sub(FEW_ALIKE) {
                rows.push(vec![format!("… and {} more", count(more)), String::new(), String::new()]);
            }
        }
        format!("{header}\n{}", align_words(&["", "state", ""], &rows, None))
    }
}

/// Checks a directory, and those inside it that have a mark of their own.
fn verify(path: &Path, is_inside: bool, verified: &mut Vec<Verified>) -> Result<()> {
    directory::recover(path)?;
    let mut checks = Checks::default();
    let Some(mark) = Mark::read(path)? else {
        return verify_unmarked(path, is_inside, verified);
    };
    let complete = mark.files.is_some();
    let mut directories = mark.directories.clone();
    if complete {
        checks.sound(MARK_FILE, "complete");
        directories.extend(check_files(path, &mark, &mut checks)?);
    } else {
        checks.note(MARK_FILE, "not complete: it is being written, or was interrupted");
    }
    match mark.kind {
        Kind::Run => run_checks::check(path, &mut checks),
        Kind::Bundle => bundle_checks::check(path, &mut checks),
        Kind::DataSet | Kind::Comparison | Kind::Tuning | Kind::Demo | Kind::Site => {}
    }
    verified.push(Verified {
        directory: path.to_owned(),
        what: mark.kind.name(),
        is_inside,
        checks: checks.0,
    });
    directories.iter().try_for_each(|inner| verify(&path.join(inner), true, verified))
}

/// Checks a directory without a mark, such as a bundle that was downloaded.
fn verify_unmarked(path: &Path, is_inside: bool, verified: &mut Vec<Verified>) -> Result<()> {
    if path.join(MANIFEST).is_file() {
        let mut checks = Checks::default();
        bundle_checks::check(path, &mut checks);
        let what = Kind::Bundle.name();
        verified.push(Verified { directory: path.to_owned(), what, is_inside, checks: checks.0 });
        return Ok(());
    }
    let index = path.join(INDEX);
    if index.is_file() {
        let bytes = read_regular_file(&index)
            .advise(|| format!("{} cannot be read", index.display()), "check its permissions")?;
        return Index::parse(&bytes)?
            .bundles
            .iter()
            .try_for_each(|entry| verify(&path.join(&entry.path), is_inside, verified));
    }
    let why = match path.exists() {
        true => format!("has neither {MARK_FILE} nor {MANIFEST}"),
        false => "does not exist".into(),
    };
    Err(problem(
        format!("{} {why}", path.display()),
        "give a directory that akin wrote: a run, a bundle, a data set, a comparison, a tuning, a demo or a site",
    ))
}

/// Checks the files that the mark lists, and names what it does not list. Returns the directories that it does not list but
/// that have a mark of their own: akin wrote them there later.
fn check_files(path: &Path, mark: &Mark, checks: &mut Checks) -> Result<Vec<String>> {
    let files = mark.files.as_deref().unwrap_or_default();
    let faults: Vec<(&str, Flaw)> =
        files.par_iter().filter_map(|file| Some((&*file.path, check_file(path, file).err()?))).collect();
    let sound = files.len() - faults.len();
    let files = counted(files.len(), "file has", "files have");
    checks.sound("files", format!("{sound} of {files} the length and SHA-256 that akin wrote"));
    for (name, flaw) in faults {
        match flaw {
            // The config is compared with the one in the checkpoint: paths in it may be changed.
            Flaw::Changed(_) if mark.kind == Kind::Run && name == CONFIG_FILE => {
                checks.note(name, "edited since the training");
            }
            flaw => checks.faulty(name, flaw.why()),
        }
    }
    let unknown = foreign(mark, path)?;
    let mut later = Vec::new();
    for name in unknown {
        match Mark::read(&path.join(&name)) {
            Ok(Some(_)) => later.push(name),
            Ok(None) => checks.note(name, "akin did not write it"),
            Err(error) => checks.faulty(name, parts(&error).0),
        }
    }
    Ok(later)
}
