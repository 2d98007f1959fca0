//! The page inside this program, with the feature `page`.

use std::borrow::Cow;
use std::io::{self, Read};
use std::sync::LazyLock;

use akin_core::digest::sha256;
use flate2::read::GzDecoder;

#[cfg(feature = "page")]
include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// The files of the page: their path, whether they are compressed with gzip, and their bytes. `build.rs` lists them.
#[cfg(not(feature = "page"))]
const FILES: &[(&str, bool, &[u8])] = &[];

/// A file of the page inside this program.
#[derive(Debug)]
pub struct EmbeddedFile {
    path: &'static str,
    is_compressed: bool,
    stored: &'static [u8],
    /// Of the stored bytes.
    sha256: String,
}

static ALL: LazyLock<Vec<EmbeddedFile>> = LazyLock::new(|| {
    let file = |&(path, is_compressed, stored): &(&'static str, bool, &'static [u8])| EmbeddedFile {
        path,
        is_compressed,
        stored,
        sha256: sha256(stored),
    };
    FILES.iter().map(file).collect()
});

impl EmbeddedFile {
    /// All files, or none if this program was built without the page.
    pub fn all() -> &'static [Self] {
        &ALL
    }

    /// The file at a path.
    pub fn at(path: &str) -> Option<&'static Self> {
        ALL.iter().find(|file| file.path == path)
    }

    /// The path below the page, with `/` between its parts.
    pub fn path(&self) -> &'static str {
        self.path
    }

    /// The SHA-256 of the bytes as they are stored.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// The bytes as they are stored, if that is compressed with gzip.
    pub fn gzipped(&self) -> Option<&'static [u8]> {
        self.is_compressed.then_some(self.stored)
    }

    /// The bytes of the file.
    ///
    /// # Errors
    ///
    /// A damaged program.
    pub fn bytes(&self) -> io::Result<Cow<'static, [u8]>> {
        if !self.is_compressed {
            return Ok(Cow::Borrowed(self.stored));
        }
        let mut bytes = Vec::new();
        GzDecoder::new(self.stored).read_to_end(&mut bytes)?;
        Ok(Cow::Owned(bytes))
    }
}
