//! `akin verify`: checks what akin wrote.

mod bundle_checks;
mod check;
mod gallery_checks;
mod run_checks;

use std::path::{Path, PathBuf};

use akin_base::directory::{self, Flaw, Kind, MARK_FILE, Mark, check_file, directories_in, foreign};
use akin_base::files::read_regular_file;
use akin_base::problem::{Advise, parts, problem};
use akin_base::quantities::{count, counted};
use akin_base::text_table::align_words;
use akin_base::{shell, terminal};
use akin_core::bundle::{INDEX, Index, MANIFEST};
use anyhow::Result;
use clap::Args;
use rayon::prelude::*;
use serde_json::json;

use self::check::{Check, Checks, State};
use crate::runs::run::CONFIG_FILE;

/// Check every file of a run, a bundle or another directory that akin wrote.
///
/// Checks lengths and SHA-256, that every file can be read and says what it should, and that files agree with each
/// other. For a run: its config, checkpoint, log, results and weights, and whether its data have changed: every image is read. For a bundle:
/// its manifest, labels, embeddings, maps, thumbnails and weights. For a gallery: its segments and encoder. For a data set, a comparison, a tuning, a demo and a
/// site: all of their files, and the directories in them. Exits with 1 if anything is damaged, missing or changed, or not
/// finished: then it says how to go on. What an unfinished directory holds is checked as far as it can be.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The directories to check.
    #[arg(value_name = "RUN|BUNDLE|GALLERY", required = true)]
    pub directories: Vec<PathBuf>,
    /// Print the checks as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Checks the directories and prints what was found.
pub fn run(args: VerifyArgs) -> Result<()> {
    let mut verified = Vec::new();
    for directory in &args.directories {
        verify(directory, Place::Given, &mut verified)?;
    }
    if args.json {
        let directories = verified.iter().map(|Verified { directory, what, checks, .. }| {
            json!({ "directory": directory, "kind": what.name(), "sound": is_sound(checks), "checks": checks })
        });
        let sound = verified.iter().all(|verified| is_sound(&verified.checks));
        let all = json!({ "sound": sound, "directories": directories.collect::<Vec<_>>() });
        terminal::print(&serde_json::to_string_pretty(&all)?)?;
    } else {
        terminal::print(&tables(&verified).join("\n\n"))?;
    }
    let faulty: Vec<&Verified> = verified.iter().filter(|verified| faults(&verified.checks) > 0).collect();
    match &faulty[..] {
        [] => refuse_unfinished(&verified),
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
                format!(
                    "{count} of {} {are} damaged, missing, changed or cannot be read{more}",
                    directory.display()
                ),
                "restore them from a copy, or make the directory again; but where the system cannot read a file, mend \
                 that first",
            ))
        }
    }
}

/// A directory and what its checks found.
struct Verified {
    directory: PathBuf,
    /// What it holds.
    what: Kind,
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
            let mut kinds: Vec<(Kind, usize)> = Vec::new();
            for one in inside.filter(|one| is_sound(one)) {
                match kinds.iter_mut().find(|(what, _)| *what == one.what) {
                    Some((_, count)) => *count += 1,
                    None => kinds.push((one.what, 1)),
                }
            }
            let kinds: Vec<String> = kinds
                .into_iter()
                .map(|(what, number)| counted(number, what.name(), &format!("{}s", what.name())))
                .collect();
            tables.push(format!("inside: {} ok", kinds.join(", ")));
        }
    }
    tables
}

fn faults(checks: &[Check]) -> usize {
    checks.iter().filter(|check| check.state == State::Faulty).count()
}

fn is_unfinished(checks: &[Check]) -> bool {
    checks.iter().any(|check| check.state == State::Unfinished)
}

fn is_sound(checks: &[Check]) -> bool {
    faults(checks) == 0 && !is_unfinished(checks)
}

/// The error for directories without a fault of which some are not finished. The first is the outermost: what is inside it
/// is finished by the same command.
fn refuse_unfinished(verified: &[Verified]) -> Result<()> {
    let unfinished: Vec<&Verified> = verified.iter().filter(|one| is_unfinished(&one.checks)).collect();
    let Some(first) = unfinished.first() else { return Ok(()) };
    let place = shell::path(&first.directory);
    let more = match unfinished.len() - 1 {
        0 => String::new(),
        more => {
            let others = counted(more, "directory more is", "directories more are");
            format!(", and {others} not; the tables above name them")
        }
    };
    let name = first.what.name();
    let how = match first.what {
        Kind::Run => format!("continue it with `akin resume {place}`"),
        Kind::Comparison => format!("continue it with `akin compare CONFIG --out {place}`"),
        Kind::Tuning => format!("continue it with `akin tune CONFIG --out {place}`"),
        Kind::Bundle => format!("write it again with `akin export RUN --out {place} --overwrite`"),
        Kind::Site => {
            format!("write it again with `akin export RUN --out BUNDLE --site {place} --overwrite`")
        }
        Kind::Encoder => {
            format!("write it again with `akin export RUN --to FORMAT --out {place} --overwrite`")
        }
        Kind::DataSet => format!("draw it again with `akin biomorphs {place} --overwrite`"),
        Kind::Demo => format!("make it again with `akin demo --out {place} --overwrite`"),
        Kind::Gallery => format!("continue it with the same `akin index`, or with `akin index {place} --add PICTURES`"),
    };
    Err(problem(
        format!("the {name} {} is not finished{more}", first.directory.display()),
        format!("{how}, unless a process is writing it now"),
    ))
}

impl Verified {
    fn table(&self) -> String {
        let row = |check: &Check| {
            let state = match check.state {
                State::Sound => "ok",
                State::Note => "note",
                State::Unfinished => "UNFINISHED",
                State::Faulty => "FAULTY",
            };
            vec![check.what.clone(), state.to_owned(), check.detail.clone()]
        };
        let header = format!("{} {}", self.what.name(), self.directory.display());
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

/// Where a directory was found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The user gave it.
    Given,
    /// It is inside another one.
    Inside,
    /// It is inside another one, which was completed with it.
    InsideComplete,
}

/// Checks a directory, and those inside it that have a mark of their own.
fn verify(path: &Path, place: Place, verified: &mut Vec<Verified>) -> Result<()> {
    directory::recover(path)?;
    let mut checks = Checks::default();
    let Some(mark) = Mark::read(path)? else {
        return verify_unmarked(path, place, verified);
    };
    let complete = mark.files.is_some();
    if mark.kind == Kind::Gallery {
        // Its manifest says what it has.
    } else if complete {
        checks.sound(MARK_FILE, "complete");
    } else if place == Place::InsideComplete {
        checks
            .note(MARK_FILE, "not complete: its training failed, and what it is in was completed without it");
    } else {
        checks.unfinished(MARK_FILE, "not complete: it is being written, or was interrupted");
    }
    let later = check_files(path, &mark, &mut checks)?;
    let (listed, inside) = match complete {
        true => (mark.directories.clone(), Place::InsideComplete),
        false => (directories_in(path)?, Place::Inside),
    };
    match mark.kind {
        Kind::Run => run_checks::check(path, &mut checks),
        Kind::Bundle => bundle_checks::check(path, &mut checks),
        Kind::Gallery => gallery_checks::check(path, &mut checks),
        Kind::DataSet | Kind::Comparison | Kind::Tuning | Kind::Demo | Kind::Encoder | Kind::Site => {}
    }
    verified.push(Verified {
        directory: path.to_owned(),
        what: mark.kind,
        is_inside: place != Place::Given,
        checks: checks.0,
    });
    listed.iter().try_for_each(|inner| verify(&path.join(inner), inside, verified))?;
    later.iter().try_for_each(|inner| verify(&path.join(inner), Place::Inside, verified))
}

/// Checks a directory without a mark, such as a bundle that was downloaded.
fn verify_unmarked(path: &Path, place: Place, verified: &mut Vec<Verified>) -> Result<()> {
    if path.join(MANIFEST).is_file() {
        let mut checks = Checks::default();
        bundle_checks::check(path, &mut checks);
        let (what, is_inside) = (Kind::Bundle, place != Place::Given);
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
            .try_for_each(|entry| verify(&path.join(&entry.path), place, verified));
    }
    let why = match path.exists() {
        true => format!("has neither {MARK_FILE} nor {MANIFEST}"),
        false => "does not exist".into(),
    };
    Err(problem(
        format!("{} {why}", path.display()),
        "give a directory that akin wrote: a run, a bundle, a gallery, a data set, a comparison, a tuning, a demo or a site",
    ))
}

/// Checks the files that the mark of a complete directory lists, and names what akin did not write there. Returns the
/// directories that the mark does not list but that have a mark of their own: akin wrote them there later.
fn check_files(path: &Path, mark: &Mark, checks: &mut Checks) -> Result<Vec<String>> {
    let files = mark.files.as_deref().unwrap_or_default();
    let faults: Vec<(&str, Flaw)> =
        files.par_iter().filter_map(|file| Some((&*file.path, check_file(path, file).err()?))).collect();
    if mark.files.is_some() {
        let sound = files.len() - faults.len();
        let files = counted(files.len(), "file has", "files have");
        checks.sound("files", format!("{sound} of {files} the length and SHA-256 that akin wrote"));
    }
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
