//! A sealed file: every byte of it is covered by a checksum.
//!
//! It is a line of JSON, the header, which names the format and its version and lists the parts with their lengths and
//! SHA-256; a line with the SHA-256 of the header; and the parts themselves.

use std::fmt;
use std::io::{self, Write};

use akin_core::digest::sha256;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The name and the version of a format.
#[derive(Clone, Copy)]
pub struct Format {
    /// The name.
    pub name: &'static str,
    /// The version that is written, and the only one that is read.
    pub version: u32,
}

/// Why a file cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub enum Flaw {
    /// It has another format.
    Foreign,
    /// It has another version of the format.
    OtherVersion(String),
    /// Its bytes are not those that were written; in words.
    Damaged(String),
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => f.write_str("its first line is not a header"),
            Self::OtherVersion(text) | Self::Damaged(text) => f.write_str(text),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Header<C> {
    format: String,
    version: u32,
    #[serde(flatten)]
    contents: C,
    parts: Vec<Part>,
}

/// The part of a [`Header`] that every version has.
#[derive(Deserialize)]
struct Version {
    format: String,
    version: u32,
}

#[derive(Serialize, Deserialize)]
struct Part {
    name: String,
    bytes: usize,
    sha256: String,
}

/// Writes a sealed file. `contents` becomes a part of the header; it must be a struct.
///
/// # Errors
///
/// The errors of `out`.
pub fn write(
    out: &mut dyn Write,
    format: Format,
    contents: impl Serialize,
    parts: &[(&str, &[u8])],
) -> io::Result<()> {
    let list = parts
        .iter()
        .map(|(name, bytes)| Part { name: (*name).to_owned(), bytes: bytes.len(), sha256: sha256(bytes) })
        .collect();
    let header = Header { format: format.name.into(), version: format.version, contents, parts: list };
    let header = serde_json::to_string(&header)?;
    writeln!(out, "{header}\n{}", sha256(header.as_bytes()))?;
    parts.iter().try_for_each(|(_, bytes)| out.write_all(bytes))
}

/// Reads a sealed file with parts of these names, in this order, and checks all of it.
///
/// # Errors
///
/// See [`Flaw`].
pub fn read<C: DeserializeOwned, const N: usize>(
    bytes: &[u8],
    format: Format,
    names: [&str; N],
) -> Result<(C, [Vec<u8>; N]), Flaw> {
    let damaged = |text: String| Flaw::Damaged(text);
    let mut lines = bytes.splitn(3, |&byte| byte == b'\n');
    let first = lines.next().unwrap_or_default();
    let Version { format: name, version } = serde_json::from_slice(first).map_err(|_| Flaw::Foreign)?;
    if name != format.name {
        return Err(Flaw::Foreign);
    }
    if version != format.version {
        return Err(Flaw::OtherVersion(format!(
            "it is {name} version {version}, and this akin reads version {}",
            format.version
        )));
    }
    if lines.next() != Some(sha256(first).as_bytes()) {
        return Err(damaged("the SHA-256 of its header does not match".into()));
    }
    let header: Header<C> = serde_json::from_slice(first)
        .map_err(|error| damaged(format!("its header is not valid: {error}")))?;
    if !header.parts.iter().map(|part| &*part.name).eq(names) {
        return Err(damaged(format!("it has {} parts instead of {}", header.parts.len(), names.len())));
    }
    let mut rest = lines.next().ok_or_else(|| damaged("it has no parts".into()))?;
    let mut parts = names.map(|_| Vec::new());
    for (part, read) in header.parts.iter().zip(&mut parts) {
        let Some((bytes, after)) = rest.split_at_checked(part.bytes) else {
            return Err(damaged(format!("the file ends in the middle of part {:?}", part.name)));
        };
        if sha256(bytes) != part.sha256 {
            return Err(damaged(format!("the SHA-256 of part {:?} does not match", part.name)));
        }
        *read = bytes.to_vec();
        rest = after;
    }
    if !rest.is_empty() {
        return Err(damaged(format!("{} bytes follow its last part", rest.len())));
    }
    Ok((header.contents, parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Contents {
        step: u64,
    }

    const FORMAT: Format = Format { name: "akin-test", version: 3 };

    fn sealed() -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes, FORMAT, Contents { step: 7 }, &[("a", b"first"), ("b", b"")]).unwrap();
        bytes
    }

    #[test]
    fn a_sealed_file_reads_back_what_was_written() {
        let (contents, parts) = read::<Contents, 2>(&sealed(), FORMAT, ["a", "b"]).unwrap();
        assert_eq!((contents, parts), (Contents { step: 7 }, [b"first".to_vec(), vec![]]));
    }

    #[test]
    fn every_changed_missing_or_added_byte_is_noticed() {
        let whole = sealed();
        let refused = |bytes: &[u8]| read::<Contents, 2>(bytes, FORMAT, ["a", "b"]).is_err();
        for place in 0..whole.len() {
            assert!(refused(&whole[..place]), "cut to {place} bytes");
            let mut changed = whole.clone();
            changed[place] ^= 1;
            assert!(refused(&changed), "byte {place}");
        }
        assert!(refused(&[&whole[..], b"x"].concat()));
    }

    #[test]
    fn another_format_and_another_version_are_told_apart() {
        let flaw = |bytes: &[u8], format| read::<Contents, 2>(bytes, format, ["a", "b"]).unwrap_err();
        assert_eq!(flaw(b"a,b\n1,2\n", FORMAT), Flaw::Foreign);
        assert_eq!(flaw(&sealed(), Format { name: "akin-other", version: 3 }), Flaw::Foreign);
        let other = flaw(&sealed(), Format { version: 4, ..FORMAT });
        assert_eq!(
            other,
            Flaw::OtherVersion("it is akin-test version 3, and this akin reads version 4".into())
        );
    }
}
