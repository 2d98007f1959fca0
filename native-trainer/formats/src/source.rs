//! A file that is read, or what came from standard input.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use akin_base::files::{InputFile, Scratch};
use akin_base::problem::Advise;
use anyhow::Result;
use sha2::{Digest, Sha256};

/// The path that stands for standard input.
pub const STANDARD_INPUT: &str = "-";

/// See the [module](self). Standard input is kept in a temporary file without a name, because formats are read by position.
#[derive(Debug)]
pub struct Source {
    path: PathBuf,
    bytes: Bytes,
}

#[derive(Debug)]
enum Bytes {
    Named(InputFile),
    /// Several sources may share the file, each with its own position.
    Piped {
        file: Arc<Mutex<File>>,
        position: u64,
    },
}

impl Source {
    /// Opens a file, or reads standard input to its end if the path is `-`.
    ///
    /// # Errors
    ///
    /// A file that cannot be read; a disk without space for what comes.
    pub fn open(path: &Path) -> Result<Self> {
        let bytes = match path == Path::new(STANDARD_INPUT) {
            true => {
                let piped = keep(io::stdin().lock()).advise(
                    || "standard input cannot be read".into(),
                    "check the command before the pipe, and the space in the folder for temporary files",
                )?;
                Bytes::Piped { file: Arc::new(Mutex::new(piped)), position: 0 }
            }
            false => {
                let cannot = || format!("{} cannot be read", path.display());
                Bytes::Named(InputFile::open(path).advise(cannot, "check the path")?)
            }
        };
        Ok(Self { path: path.to_owned(), bytes })
    }

    /// Its path, or `standard input`.
    pub fn name(&self) -> PathBuf {
        if self.path == Path::new(STANDARD_INPUT) { "standard input".into() } else { self.path.clone() }
    }

    /// The same bytes, read from the beginning.
    ///
    /// # Errors
    ///
    /// The file cannot be opened again.
    pub fn again(&self) -> Result<Self> {
        match &self.bytes {
            Bytes::Named(_) => Self::open(&self.path),
            Bytes::Piped { file, .. } => {
                let bytes = Bytes::Piped { file: file.clone(), position: 0 };
                Ok(Self { path: self.path.clone(), bytes })
            }
        }
    }

    /// The number of bytes.
    ///
    /// # Errors
    ///
    /// The system does not tell.
    pub fn length(&mut self) -> Result<u64> {
        let name = self.name();
        let length = self.seek(SeekFrom::End(0)).and_then(|length| self.rewind().map(|()| length));
        length.advise(|| format!("{} cannot be read", name.display()), "check the file")
    }

    /// The first bytes, at most `count`. The next bytes read are these again.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn first(&mut self, count: u64) -> Result<Vec<u8>> {
        let name = self.name();
        let mut bytes = Vec::new();
        let mut read = || -> io::Result<()> {
            self.rewind()?;
            self.take(count).read_to_end(&mut bytes)?;
            self.rewind()
        };
        read().advise(|| format!("{} cannot be read", name.display()), "check the file")?;
        Ok(bytes)
    }

    /// SHA-256 of all bytes. `read` is called with numbers of bytes that are read.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn digest(&self, read: impl Fn(u64)) -> Result<[u8; 32]> {
        let mut source = self.again()?;
        let (mut digest, mut bytes) = (Sha256::new(), vec![0; 1 << 20]);
        loop {
            let cannot = || format!("{} cannot be read", self.name().display());
            let length = source.read(&mut bytes).advise(cannot, "try again")?;
            if length == 0 {
                return Ok(digest.finalize().into());
            }
            digest.update(&bytes[..length]);
            read(length as u64);
        }
    }

    /// Checks that the file is as it was when it was opened.
    ///
    /// # Errors
    ///
    /// Its length or its time of modification is another.
    pub fn check_unchanged(&self) -> Result<()> {
        match &self.bytes {
            Bytes::Named(file) => file.check_unchanged(),
            Bytes::Piped { .. } => Ok(()),
        }
    }
}

/// Keeps what comes in a temporary file.
fn keep(mut from: impl Read) -> io::Result<File> {
    let (mut scratch, mut bytes) = (Scratch::new()?, vec![0; 1 << 20]);
    loop {
        match from.read(&mut bytes)? {
            0 => return Ok(scratch.into_file()),
            length => scratch.add(&bytes[..length])?,
        };
    }
}

impl Read for Source {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match &mut self.bytes {
            Bytes::Named(file) => file.read(bytes),
            Bytes::Piped { file, position } => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                file.seek(SeekFrom::Start(*position))?;
                let length = file.read(bytes)?;
                *position += length as u64;
                Ok(length)
            }
        }
    }
}

impl Seek for Source {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match &mut self.bytes {
            Bytes::Named(file) => file.seek(to),
            Bytes::Piped { file, position } => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                let from = if let SeekFrom::Current(_) = to {
                    SeekFrom::Start(*position)
                } else {
                    SeekFrom::Start(0)
                };
                file.seek(from)?;
                *position = file.seek(to)?;
                Ok(*position)
            }
        }
    }
}
