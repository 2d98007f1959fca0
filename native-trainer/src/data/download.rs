//! Downloads of large files: with resume, and only if the file on the server is still the one that was begun.
//!
//! The bytes of a file that is not complete are in `.akin-NAME.part` beside it, and what the server said about it in
//! `.akin-NAME.part.json`. A later download asks for the missing bytes on condition that the server's file is unchanged
//! (`If-Range` with its strong ETag, or else its date). If it has changed, the download starts again from the beginning.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use akin_base::files::{self, PART_PREFIX, PART_SUFFIX, write_atomic};
use akin_base::problem::{Advise, problem};
use akin_base::terminal;
use anyhow::Result;
use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};
use ureq::http::{HeaderMap, Response};
use ureq::{Agent, Body};

/// How often a download that was cut is continued before the command gives up.
const ATTEMPTS: u32 = 4;

/// The time before a download is continued.
const PAUSE: Duration = Duration::from_secs(1);

/// A server that sends nothing for this time is taken for gone.
const SILENCE: Duration = Duration::from_secs(60);

const RESUME: &str = "the same command continues where it stopped";

/// What a server says about a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remote {
    /// Its address.
    pub address: String,
    /// Its size in bytes, if the server says so.
    pub bytes: Option<u64>,
    /// Tells this version of the file from others: a strong ETag or a date.
    version: Option<String>,
}

impl Remote {
    fn of(address: &str, headers: &HeaderMap, bytes: Option<u64>) -> Self {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        // A weak ETag may stay the same when bytes change.
        let tag = header("etag").filter(|tag| !tag.starts_with("W/"));
        Self { address: address.to_owned(), bytes, version: tag.or_else(|| header("last-modified")) }
    }
}

/// Downloads files.
pub struct Downloader {
    agent: Agent,
}

impl Downloader {
    /// A downloader that follows links from one address to another.
    pub fn new() -> Self {
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .user_agent(concat!("akin/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(SILENCE))
            .timeout_recv_response(Some(SILENCE))
            .timeout_per_read(Some(SILENCE))
            .build()
            .into();
        Self { agent }
    }

    /// Asks a server about a file.
    ///
    /// # Errors
    ///
    /// An address that cannot be reached, or at which there is no file.
    pub fn ask(&self, address: &str) -> Result<Remote> {
        let response = self.agent.head(address).call().advise(
            || format!("{address} cannot be reached"),
            "check the connection to the network, or set HTTPS_PROXY",
        )?;
        check_status(address, &response)?;
        let bytes =
            response.headers().get("content-length").and_then(|value| value.to_str().ok()?.parse().ok());
        Ok(Remote::of(address, response.headers(), bytes))
    }

    /// Downloads a file to `target`, after the bytes that an earlier download left. Calls `done` with the number of bytes
    /// that are there, and returns only when the file is complete and has the checksum `md5`.
    ///
    /// # Errors
    ///
    /// A server that stops sending, a file with another checksum, a full disk. What was downloaded stays for the next
    /// time, except for a whole file with another checksum.
    pub fn fetch(
        &self,
        remote: &Remote,
        target: &Path,
        md5: Option<&str>,
        mut done: impl FnMut(u64),
    ) -> Result<()> {
        let mut part = Part::open(remote, target)?;
        let mut failures = 0;
        loop {
            let before = part.file.length();
            done(before);
            let cut = match self.receive(&mut part, md5.is_some(), &mut done)? {
                Piece::Complete => break,
                Piece::Cut(reason) => reason,
            };
            // A download that advances may be cut as often as it likes.
            failures = if part.file.length() > before { 1 } else { failures + 1 };
            if failures >= ATTEMPTS {
                return Err(problem(
                    format!(
                        "the download of {} was cut after {} bytes: {cut}",
                        remote.address,
                        part.file.length()
                    ),
                    RESUME,
                ));
            }
            terminal::warn(format_args!("the download was cut ({cut}); continuing it"));
            sleep(PAUSE);
        }
        part.finish(target, md5)
    }

    /// Receives the missing bytes of a file. Without a checksum that tells whether all have come, the server has to say
    /// where the file ends.
    fn receive(&self, part: &mut Part, has_checksum: bool, done: &mut impl FnMut(u64)) -> Result<Piece> {
        let address = part.remote.address.clone();
        let mut request = self.agent.get(&address);
        let have = part.file.length();
        if have > 0 {
            if part.remote.bytes == Some(have) {
                return Ok(Piece::Complete);
            }
            // Without a version nobody can tell whether the rest belongs to what is there.
            match &part.remote.version {
                Some(version) => {
                    request = request.header("range", format!("bytes={have}-")).header("if-range", version);
                }
                None => part.restart(None)?,
            }
        }
        let response = match request.call() {
            Ok(response) => response,
            Err(error) => return Ok(Piece::Cut(error.to_string())),
        };
        check_status(&address, &response)?;
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let is_chunked =
            header("transfer-encoding").is_some_and(|coding| coding.to_ascii_lowercase().contains("chunked"));
        let mut expected = response.body().content_length();
        if response.status().as_u16() == 206 {
            let range = header("content-range").unwrap_or_default();
            let all = range.rsplit_once('/').and_then(|(_, all)| all.parse().ok());
            expected = expected.map(|rest| have + rest).or(all).or(part.remote.bytes);
            if !range.starts_with(&format!("bytes {have}-")) {
                return Err(problem(
                    format!("{address} was asked for the bytes from {have} and sent others"),
                    "try again later, or download the file in another way",
                ));
            }
        } else {
            if have > 0 && part.file.length() > 0 {
                terminal::warn(format_args!("{address} has changed on the server; starting again"));
            }
            let mut remote = Remote::of(&address, response.headers(), expected);
            if remote.bytes.is_none() && remote.version == part.remote.version {
                // The server said the size when it was asked about the file.
                remote.bytes = part.remote.bytes;
                expected = remote.bytes;
            }
            part.restart(Some(remote))?;
        }
        // Chunks have an end of their own. Without them, a connection that breaks looks like the end of the file.
        if expected.is_none() && !is_chunked && !has_checksum {
            return Err(problem(
                format!(
                    "{address} does not say how large the file is, so nobody could tell whether all of it has come"
                ),
                "take the file from a server that says it, with `--from URL`, or download it in another way and compare \
                 it with another copy",
            ));
        }
        let mut body = response.into_body().into_reader();
        let mut buffer = vec![0; 1 << 16];
        loop {
            match body.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => part.add(&buffer[..count])?,
                Err(error) => return Ok(Piece::Cut(error.to_string())),
            }
            done(part.file.length());
        }
        Ok(match expected {
            Some(expected) if part.file.length() < expected => {
                Piece::Cut("the server closed the connection".into())
            }
            Some(expected) if part.file.length() > expected => {
                let length = part.file.length();
                part.restart(None)?;
                return Err(problem(
                    format!("{address} said that the file has {expected} bytes, and sent {length}"),
                    "try again later, or download the file in another way",
                ));
            }
            _ => Piece::Complete,
        })
    }
}

/// How a piece of a download went.
enum Piece {
    Complete,
    /// It was cut, for this reason.
    Cut(String),
}

/// A file that is not complete.
struct Part {
    remote: Remote,
    file: files::Growing,
    path: PathBuf,
    notes: PathBuf,
}

impl Part {
    /// Opens what an earlier download left of the same version of a file, or starts a new one.
    fn open(remote: &Remote, target: &Path) -> Result<Self> {
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let path = target.with_file_name(format!("{PART_PREFIX}{name}{PART_SUFFIX}"));
        let notes = target.with_file_name(format!("{PART_PREFIX}{name}{PART_SUFFIX}.json"));
        let noted: Option<Remote> = files::read_regular_file(&notes)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .filter(|noted: &Remote| noted.address == remote.address);
        let file = files::Growing::open(&path).advise(|| cannot_write(&path), FREE_SPACE)?;
        let is_known = noted.is_some();
        // The version that was begun decides, so that the server is asked whether it still has that one.
        let mut part = Self { remote: noted.unwrap_or_else(|| remote.clone()), file, path, notes };
        if !is_known {
            part.restart(Some(remote.clone()))?;
        }
        Ok(part)
    }

    /// Empties the file, for another version if one is given.
    fn restart(&mut self, remote: Option<Remote>) -> Result<()> {
        self.file.clear().advise(|| cannot_write(&self.path), FREE_SPACE)?;
        if let Some(remote) = remote {
            self.remote = remote;
        }
        let notes = serde_json::to_vec(&self.remote)?;
        write_atomic(&self.notes, |file| file.write_all(&notes))
    }

    fn add(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.add(bytes).advise(|| cannot_write(&self.path), &format!("free some space; {RESUME}"))
    }

    /// Checks the file and gives it its name.
    fn finish(self, target: &Path, md5: Option<&str>) -> Result<()> {
        if let Some(published) = md5 {
            let found = checksum(&self.path)?;
            if found != published {
                for path in [&self.path, &self.notes] {
                    files::remove_file(path).advise(|| cannot_write(path), "check the permissions")?;
                }
                return Err(problem(
                    format!("{} has the MD5 {found}, and not {published} as published", self.remote.address),
                    "it was damaged on the way or has changed on the server; the copy was removed, so fetch it again",
                ));
            }
        }
        self.file.sync().advise(|| cannot_write(&self.path), FREE_SPACE)?;
        files::rename(&self.path, target).advise(|| cannot_write(target), FREE_SPACE)?;
        files::remove_file(&self.notes).advise(|| cannot_write(&self.notes), "check the permissions")
    }
}

const FREE_SPACE: &str = "free some space or check the permissions";

fn cannot_write(path: &Path) -> String {
    format!("{} cannot be written", path.display())
}

/// The MD5 of a file in hexadecimal digits.
fn checksum(path: &Path) -> Result<String> {
    let cannot = || format!("{} cannot be read", path.display());
    let mut file = std::fs::File::open(path).advise(cannot, "check the disk")?;
    let mut digest = Md5::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).advise(cannot, "check the disk")? {
            0 => break,
            count => digest.update(&buffer[..count]),
        }
    }
    Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn check_status(address: &str, response: &Response<Body>) -> Result<()> {
    match response.status().as_u16() {
        200 | 206 => Ok(()),
        404 | 410 => Err(problem(
            format!("there is no file at {address} any more"),
            "download the data set in another way; `akin list datasets --show NAME` says what belongs to it",
        )),
        status => Err(problem(format!("{address} answers with the status {status}"), "try again later")),
    }
}
