//! Text files in the encodings that spreadsheets write: UTF-8, UTF-16 and Windows-1252.

use std::io::{self, Read, Seek};

use encoding_rs::{Encoding, WINDOWS_1252};
use encoding_rs_io::DecodeReaderBytesBuilder;

/// A text file that is read as UTF-8, whatever its encoding.
pub struct TextFile {
    reader: Box<dyn Read>,
    /// The name of its encoding, if that is not UTF-8.
    pub encoding: Option<&'static str>,
}

impl TextFile {
    /// Finds the encoding of a file, and reads it from the beginning. A byte order mark says it. A file without one is UTF-8 or, if it has a byte that
    /// UTF-8 does not allow and no character of several bytes that it does, Windows-1252, which contains Latin-1. A file
    /// with both is damaged UTF-8, and is read as it is.
    ///
    /// # Errors
    ///
    /// The errors of the system.
    pub fn new(mut file: impl Read + Seek + 'static) -> io::Result<Self> {
        file.rewind()?;
        let encoding = encoding_of(&mut file)?;
        file.rewind()?;
        let mut reader: Box<dyn Read> = Box::new(file);
        if let Some(encoding) = encoding {
            reader = Box::new(DecodeReaderBytesBuilder::new().encoding(Some(encoding)).build(reader));
        }
        Ok(Self { reader, encoding: encoding.map(Encoding::name) })
    }
}

impl Read for TextFile {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.reader.read(bytes)
    }
}

/// The encoding of a text; none for UTF-8.
fn encoding_of(text: &mut impl Read) -> io::Result<Option<&'static Encoding>> {
    const BLOCK: u64 = 1 << 16;
    let (mut bytes, mut is_first) = (Vec::new(), true);
    let (mut has_characters, mut has_faults) = (false, false);
    loop {
        let read = text.by_ref().take(BLOCK).read_to_end(&mut bytes)?;
        if is_first && let Some((encoding, _)) = Encoding::for_bom(&bytes) {
            return Ok(Some(encoding).filter(|encoding| *encoding != encoding_rs::UTF_8));
        }
        is_first = false;
        let is_last = read == 0;
        let mut rest = 0;
        for chunk in bytes.utf8_chunks() {
            has_characters |= !chunk.valid().is_ascii();
            let is_cut = bytes.len() - rest - chunk.valid().len() == chunk.invalid().len();
            rest += chunk.valid().len();
            if is_cut && !is_last && is_beginning(chunk.invalid()) {
                break;
            }
            rest += chunk.invalid().len();
            has_faults |= !chunk.invalid().is_empty();
        }
        bytes.drain(..rest);
        if is_last {
            return Ok((has_faults && !has_characters).then_some(WINDOWS_1252));
        }
    }
}

/// Whether bytes may be the beginning of a character that the next block ends.
fn is_beginning(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> (Option<&'static str>, Vec<u8>) {
        let mut file = TextFile::new(io::Cursor::new(bytes.to_vec())).unwrap();
        let mut text = Vec::new();
        file.read_to_end(&mut text).unwrap();
        (file.encoding, text)
    }

    #[test]
    fn a_text_is_the_same_in_every_encoding() {
        let text = "path,Art\n1.jpg,Bärenklau\n";
        assert_eq!(read(text.as_bytes()), (None, text.into()));
        let utf16 = |bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
            "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(bytes).collect()
        };
        assert_eq!(read(&utf16(u16::to_le_bytes)), (Some("UTF-16LE"), text.into()));
        assert_eq!(read(&utf16(u16::to_be_bytes)), (Some("UTF-16BE"), text.into()));
        let latin: Vec<u8> = text.chars().map(|letter| letter as u8).collect();
        assert_eq!(read(&latin), (Some("windows-1252"), text.into()));
    }

    #[test]
    fn damaged_utf8_is_left_as_it_is() {
        let damaged = ["Bärenklau".as_bytes(), b"\xff"].concat();
        assert_eq!(read(&damaged), (None, damaged));
        assert_eq!(read(b""), (None, Vec::new()));
    }

    #[test]
    fn a_character_may_stand_across_two_blocks() {
        for ahead in (1 << 16) - 4..=1 << 16 {
            let text = "x".repeat(ahead) + "€ö";
            assert_eq!(read(text.as_bytes()), (None, text.clone().into()));
        }
        let cut = ["x".repeat(9).as_bytes(), &"€".as_bytes()[..2]].concat();
        assert_eq!(read(&cut).0, Some("windows-1252"));
    }
}
