//! `akin data fetch`: downloads the files of a data set that anyone may download.

use std::io::{self, BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use akin_base::directory::Lock;
use akin_base::files::create_folder;
use akin_base::problem::problem;
use akin_base::progress::Progress;
use akin_base::quantities::counted;
use akin_base::{shell, terminal};
use anyhow::Result;
use clap::Args;

use crate::config::DataKind;
use crate::data::download::{Downloader, Remote};
use crate::data::entry;
use crate::data::listing::{Download, Entry, Source};

/// Download a data set that anyone may download.
///
/// Says first how large the files are, and asks on a terminal. A download that was cut is continued by the same command;
/// a file that has changed on the server meanwhile is downloaded again. Published checksums are compared. A data set
/// with a licence to accept is refused, with the page on which it can be accepted.
#[derive(Debug, Args)]
pub struct DataFetchArgs {
    /// The name of a data set from `akin list datasets`.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The folder to download to.
    #[arg(long, value_name = "DIR", default_value = "data")]
    pub out: PathBuf,
    /// Take the files from this address instead of the published one, for example from a mirror.
    #[arg(long, value_name = "URL")]
    pub from: Option<String>,
    /// Download without asking.
    #[arg(long)]
    pub yes: bool,
    /// How to show progress.
    #[arg(long, value_enum, default_value_t)]
    pub progress: Progress,
}

/// A file that is not there: what its server says about it, where it belongs, and its published MD5.
type Missing = (Remote, PathBuf, Option<&'static str>);

/// Downloads the files of a data set.
pub fn run(args: &DataFetchArgs) -> Result<()> {
    let name = &args.name;
    let entry = entry(DataKind::named(name)?);
    let files = match &entry.source {
        Source::Public(files) => *files,
        Source::Page(page) => {
            return Err(problem(
                format!(
                    "akin does not fetch {}, whose files have to be downloaded in a browser",
                    entry.title
                ),
                format!(
                    "download it at {page} (licence: {}); then `akin data verify {name} PATH`",
                    entry.licence
                ),
            ));
        }
        Source::Own => {
            return Err(problem(
                format!("a {} is your own data, which is nowhere to be fetched", entry.title),
                "`akin list datasets` lists the data sets",
            ));
        }
    };
    if let Some(from) = &args.from
        && !["http://", "https://"].iter().any(|scheme| from.starts_with(scheme))
    {
        return Err(problem(
            format!("`--from {from}` is not an address"),
            "write an address that starts with https:// or http://",
        ));
    }
    let folder = args.out.join(name);
    let unpack = fetch_data_set(entry, files, &folder, args.from.as_deref(), args.yes, args.progress)?;
    let shown = shell::path(&folder);
    terminal::say(format_args!("\nNext: {unpack}, then `akin data verify {name} {shown}`"));
    Ok(())
}

/// Downloads the files of a data set that are not in a folder yet, after asking unless `yes`. Returns the command that
/// unpacks them.
///
/// # Errors
///
/// A download that is not wanted or does not succeed.
pub fn fetch_data_set(
    entry: &Entry,
    files: &[Download],
    folder: &Path,
    from: Option<&str>,
    yes: bool,
    progress: Progress,
) -> Result<String> {
    let downloader = Downloader::new();
    let mut missing: Vec<Missing> = Vec::new();
    for file in files {
        let file_name = file.address.rsplit('/').next().unwrap_or(file.address);
        let target = folder.join(file_name);
        if target.is_file() {
            progress.say("Found", &target.display().to_string());
            continue;
        }
        let address = match from {
            None => file.address.to_owned(),
            Some(mirror) => format!("{}/{file_name}", mirror.trim_end_matches('/')),
        };
        missing.push((downloader.ask(&address)?, target, file.md5));
    }
    if !missing.is_empty() && !yes {
        let sizes: Vec<Option<u64>> = missing.iter().map(|(remote, _, _)| remote.bytes).collect();
        ask(&format!("{}.\nLicence: {}.", cost(entry.title, &sizes), entry.licence))?;
    }
    fetch_locked(&downloader, &missing, folder, progress)?;
    let archives: Vec<String> = files
        .iter()
        .map(|file| {
            let name = file.address.rsplit('/').next().unwrap_or(file.address);
            let tool = if name.ends_with(".zip") { "unzip -q" } else { "tar -xzf" };
            format!("{tool} {name}")
        })
        .collect();
    Ok(format!("(cd {} && {})", shell::path(folder), archives.join(" && ")))
}

/// Downloads one file, after asking unless `yes`.
///
/// # Errors
///
/// A download that is not wanted or does not succeed.
pub fn fetch_file(address: &str, target: &Path, yes: bool, progress: Progress) -> Result<()> {
    let downloader = Downloader::new();
    let remote = downloader.ask(address)?;
    if !yes {
        let size = remote.bytes.map_or("a size that the server does not say".to_owned(), human);
        ask(&format!("{address} is a file of {size}, which belongs to {}.", target.display()))?;
    }
    let folder = target.parent().unwrap_or(Path::new(""));
    fetch_locked(&downloader, &[(remote, target.to_owned(), None)], folder, progress)
}

/// Downloads files into a folder while no other command does.
fn fetch_locked(
    downloader: &Downloader,
    missing: &[Missing],
    folder: &Path,
    progress: Progress,
) -> Result<()> {
    create_folder(folder.parent().unwrap_or(Path::new("")))?;
    // Two commands would write the same parts of files.
    let lock = Lock::beside(folder)?;
    let fetched = fetch(downloader, missing, folder, progress);
    lock.release();
    fetched
}

/// Downloads these files into a folder, unless another process has done so meanwhile.
fn fetch(downloader: &Downloader, missing: &[Missing], folder: &Path, progress: Progress) -> Result<()> {
    create_folder(folder)?;
    for (remote, target, md5) in missing {
        if target.is_file() {
            progress.say("Found", &target.display().to_string());
            continue;
        }
        let bar = progress.byte_bar("Fetching", remote.bytes);
        downloader.fetch(remote, target, *md5, |bytes| bar.set(bytes))?;
        drop(bar);
        let checked = if md5.is_some() { ", whose checksum is the published one" } else { "" };
        progress.say("Fetched", &format!("{}{checked}", target.display()));
    }
    Ok(())
}

/// What a download costs, in words.
fn cost(title: &str, sizes: &[Option<u64>]) -> String {
    let known: u64 = sizes.iter().flatten().sum();
    let unknown = sizes.iter().filter(|size| size.is_none()).count();
    let files = counted(sizes.len(), "file", "files");
    let size = match unknown {
        0 => human(known),
        _ if known == 0 => "a size that the server does not say".to_owned(),
        _ => format!("at least {}", human(known)),
    };
    // Images hardly get smaller in an archive.
    format!(
        "{title} is {files} of {size} to download; unpacked beside its archives it takes about twice that on the disk"
    )
}

/// A number of bytes in words.
fn human(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{} kB", bytes.div_ceil(1_000)),
        1_000_000..1_000_000_000 => format!("{:.0} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// Says what is to be downloaded, and asks on a terminal whether to do so.
fn ask(what: &str) -> Result<()> {
    terminal::say(what);
    if !io::stdin().is_terminal() {
        return Err(problem("nothing is downloaded without being asked for", "pass `--yes` to download it"));
    }
    terminal::say("Download it? [y/N]");
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    if ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()) {
        return Ok(());
    }
    Err(problem("nothing was downloaded", "answer `y`, or pass `--yes`"))
}
