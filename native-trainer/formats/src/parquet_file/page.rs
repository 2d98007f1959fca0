//! A page: a part of the cells of a column. It is checked before anything is unpacked, as its header may state anything.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use brotli_decompressor::Decompressor;
use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;

use super::thrift::Struct;

/// A page that is unpacked.
pub(crate) struct Page {
    /// Whether it holds the values to which the cells of later pages refer, and not cells.
    pub is_dictionary: bool,
    /// The number of its cells, empty ones included, or of the values of a dictionary.
    pub cells: u64,
    /// How its values are written.
    pub encoding: Encoding,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Where its repetition levels are, if the column has them.
    pub repetitions: Range<usize>,
    /// Where its definition levels are, if the column has them.
    pub levels: Range<usize>,
    /// Where its values begin.
    pub values: usize,
}

/// How values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// One after the other.
    Plain,
    /// As places in the dictionary.
    Dictionary,
    /// Numbers as differences.
    Deltas,
    /// The lengths of the values as differences, and the values one after the other.
    DeltaLengths,
    /// How many bytes each value takes over from the one before as differences, and the rest of them as `DeltaLengths`.
    DeltaBytes,
    /// The first bytes of all numbers, then their second bytes, and so on.
    Split,
    /// Truth values as runs.
    Runs,
}

/// Which levels stand before the values of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Levels {
    /// Which values begin a list.
    pub repetition: bool,
    /// Which values are there.
    pub definition: bool,
}

/// What is in a page that is not unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contents {
    /// This many cells.
    Cells(u64),
    Dictionary,
    Other,
}

/// Why a file cannot be read.
#[derive(Debug)]
pub(crate) enum Fault {
    /// It is something else.
    NoParquet,
    /// The file is not as it should be, for this reason.
    Damaged(String),
    /// It is written in a way that is not read here: how, and what to do.
    Foreign(String, &'static str),
    /// The system cannot read the file.
    System(io::Error),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// Damage, for this reason.
pub(crate) fn damaged<T>(reason: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Damaged(reason.into()))
}

/// The compressions by number. Those without a reader are named in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Codec(pub i64);

impl Codec {
    const NONE: Self = Self(0);
    const SNAPPY: Self = Self(1);
    const GZIP: Self = Self(2);
    const BROTLI: Self = Self(4);
    const LZ4_OF_HADOOP: Self = Self(5);
    const ZSTD: Self = Self(6);
    const LZ4: Self = Self(7);

    fn name(self) -> String {
        match self.0 {
            3 => "LZO".into(),
            number => format!("compression {number}"),
        }
    }

    /// Unpacks bytes to the length that the page states, and to nothing longer.
    fn unpack(self, packed: &[u8], length: usize) -> Result<Vec<u8>, Fault> {
        let mut bytes = Vec::new();
        // One more byte than there should be shows that there are too many.
        let limit = length as u64 + 1;
        let unpacked = match self {
            Self::NONE => {
                bytes = packed.to_vec();
                Ok(())
            }
            Self::SNAPPY => match snap::raw::decompress_len(packed) {
                Ok(stated) if stated == length => {
                    snap::raw::Decoder::new().decompress_vec(packed).map(|unpacked| bytes = unpacked)
                }
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            }
            .map_err(|error| error.to_string()),
            Self::GZIP => MultiGzDecoder::new(packed)
                .take(limit)
                .read_to_end(&mut bytes)
                .map(drop)
                .map_err(|error| error.to_string()),
            Self::ZSTD => {
                // The window of a frame is at most 8 MiB, or the whole content.
                let window = limit.max(8 << 20);
                StreamingDecoder::new_with_max_window_size(packed, window)
                    .map_err(|error| error.to_string())
                    .and_then(|decoder| {
                        decoder
                            .take(limit)
                            .read_to_end(&mut bytes)
                            .map(drop)
                            .map_err(|error| error.to_string())
                    })
            }
            Self::BROTLI => Decompressor::new(packed, 4096)
                .take(limit)
                .read_to_end(&mut bytes)
                .map(drop)
                .map_err(|error| error.to_string()),
            Self::LZ4 => {
                bytes = vec![0; length];
                lz4_flex::block::decompress_into(packed, &mut bytes)
                    .map(|unpacked| bytes.truncate(unpacked))
                    .map_err(|error| error.to_string())
            }
            Self::LZ4_OF_HADOOP => lz4_of_hadoop(packed, length).map(|unpacked| bytes = unpacked),
            other => {
                let how = format!("is compressed with {}", other.name());
                return Err(Fault::Foreign(how, "write it with Snappy, gzip, Zstandard or no compression"));
            }
        };
        match unpacked {
            Ok(()) if bytes.len() == length => Ok(bytes),
            Ok(()) => damaged("a page has another length than it states"),
            Err(reason) => damaged(format!("a page cannot be unpacked: {reason}")),
        }
    }
}

/// Unpacks blocks of LZ4 as Hadoop writes them: each begins with its lengths, unpacked and packed.
fn lz4_of_hadoop(mut packed: &[u8], length: usize) -> Result<Vec<u8>, String> {
    let (mut bytes, mut filled) = (vec![0; length], 0);
    while let Some((&[.., a, b, c, d], rest)) = packed.split_first_chunk::<8>() {
        let block = rest.split_at_checked(u32::from_be_bytes([a, b, c, d]) as usize);
        let (block, rest) = block.ok_or("a block ends early")?;
        let unpacked = lz4_flex::block::decompress_into(block, &mut bytes[filled..]);
        filled += unpacked.map_err(|error| error.to_string())?;
        packed = rest;
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// The bytes of a header that are read first, and the most. Its statistics may hold two whole images.
const FIRST_OF_HEADER: u64 = 512;
const HEADER: u64 = 64 << 20;

/// The most values in a header. The format has about 30.
const VALUES_OF_HEADER: usize = 1 << 12;

/// The most bytes of a page, packed or not. The format writes lengths in 32 bits with a sign.
const LONGEST: u64 = i32::MAX as u64;

/// A page may unpack to this number of bytes, and beyond it to [`RATIO`] times its packed bytes, so that a small file
/// cannot fill the memory.
const SMALL: u64 = 64 << 20;
const RATIO: u64 = 32;

/// The header of the page at a place of a file, inside a chunk that ends before `end`, which is inside the file.
fn read_head<F: Read + Seek>(file: &mut F, chunk: &Range<u64>) -> Result<Vec<u8>, Fault> {
    let mut head = Vec::new();
    file.seek(SeekFrom::Start(chunk.start))?;
    loop {
        let read = head.len() as u64;
        let wanted = (2 * read).clamp(FIRST_OF_HEADER, HEADER).min(chunk.end - chunk.start);
        file.by_ref().take(wanted - read).read_to_end(&mut head)?;
        if head.len() as u64 == read {
            return damaged("the header of a page cannot be read");
        }
        if let Some(length) = Struct::read(&head, VALUES_OF_HEADER).map(|(_, length)| length) {
            head.truncate(length);
            return Ok(head);
        }
    }
}

/// What the page at a place of a file holds, and the place after it.
pub(crate) fn skim_page<F: Read + Seek>(file: &mut F, chunk: &Range<u64>) -> Result<(Contents, u64), Fault> {
    let head = read_head(file, chunk)?;
    let Some((header, length)) = Struct::read(&head, VALUES_OF_HEADER) else {
        return damaged("the header of a page cannot be read");
    };
    let packed = header.number(3).and_then(|size| u64::try_from(size).ok());
    let end = packed.and_then(|packed| (chunk.start + length as u64).checked_add(packed));
    let Some(end) = end.filter(|&end| end <= chunk.end) else {
        return damaged("a page is longer than the file says");
    };
    let contents = match (header.number(1), header.child(5), header.child(8)) {
        (Some(0), Some(data), _) | (Some(3), _, Some(data)) => Contents::Cells(count(data, 1)?),
        (Some(2), ..) => Contents::Dictionary,
        _ => Contents::Other,
    };
    Ok((contents, end))
}

/// Reads the page at a place of a file, inside a chunk that ends before `end`, which is inside the file. Returns it with
/// the place after it; without the page if it holds something else than values. `levels` says which levels the column has.
pub(crate) fn read_page<F: Read + Seek>(
    file: &mut F,
    chunk: Range<u64>,
    codec: Codec,
    levels: Levels,
) -> Result<(Option<Page>, u64), Fault> {
    let head = read_head(file, &chunk)?;
    let Some((header, length)) = Struct::read(&head, VALUES_OF_HEADER) else {
        return damaged("the header of a page cannot be read");
    };
    let start = chunk.start + length as u64;
    let size = |field| header.number(field).and_then(|size| u64::try_from(size).ok());
    let (Some(unpacked), Some(packed)) = (size(2), size(3)) else {
        return damaged("a page has no length");
    };
    if unpacked.max(packed) > LONGEST {
        return damaged("a page is longer than a page can be");
    }
    if packed > chunk.end - start {
        return damaged("a page is longer than the file says");
    }
    if unpacked > SMALL && unpacked > RATIO * packed {
        return damaged(format!("a page of {packed} bytes would unpack to {unpacked} bytes"));
    }
    file.seek(SeekFrom::Start(start))?;
    // The file may have become shorter, so that no room is made before the bytes are there.
    let (mut stored, unpacked) = (Vec::new(), unpacked as usize);
    file.by_ref().take(packed).read_to_end(&mut stored)?;
    if stored.len() as u64 != packed {
        return damaged("a page ends behind the file");
    }
    let page = match header.number(1) {
        Some(0) => Some(cells(&header, codec.unpack(&stored, unpacked)?, levels)?),
        Some(2) => Some(dictionary(&header, codec.unpack(&stored, unpacked)?)?),
        Some(3) => Some(cells_of_version_2(&header, codec, stored, unpacked)?),
        _ => None,
    };
    Ok((page, start + packed))
}

fn dictionary(header: &Struct, bytes: Vec<u8>) -> Result<Page, Fault> {
    let Some(header) = header.child(7) else { return damaged("a dictionary has no header") };
    let cells = count(header, 1)?;
    Ok(Page {
        is_dictionary: true,
        cells,
        encoding: Encoding::Plain,
        bytes,
        repetitions: 0..0,
        levels: 0..0,
        values: 0,
    })
}

/// A page of cells in the first version of the format: the length of the repetition levels, these, the length of the
/// definition levels, these, the values.
fn cells(header: &Struct, bytes: Vec<u8>, levels: Levels) -> Result<Page, Fault> {
    let Some(data) = header.child(5) else { return damaged("a page of cells has no header") };
    let mut values = 0_usize;
    let mut next = |there: bool, encoding: i64| -> Result<Range<usize>, Fault> {
        if !there {
            return Ok(values..values);
        }
        if data.number(encoding) != Some(3) {
            return damaged("the empty cells of a page are not written as runs");
        }
        let length = bytes.get(values..).and_then(|rest| rest.first_chunk());
        let Some(length) = length.map(|length| u32::from_le_bytes(*length) as usize) else {
            return damaged("a page of cells is too short");
        };
        let start = values + 4;
        values = start.saturating_add(length);
        Ok(start..values)
    };
    let (repetitions, levels) = (next(levels.repetition, 4)?, next(levels.definition, 3)?);
    if values > bytes.len() {
        return damaged("a page of cells is too short");
    }
    let encoding = encoding(data.number(2))?;
    Ok(Page { is_dictionary: false, cells: count(data, 1)?, encoding, bytes, repetitions, levels, values })
}

/// A page of cells in the second version: the levels, which are never compressed, and the values.
fn cells_of_version_2(
    header: &Struct,
    codec: Codec,
    stored: Vec<u8>,
    unpacked: usize,
) -> Result<Page, Fault> {
    let Some(data) = header.child(8) else { return damaged("a page of cells has no header") };
    let length = |field| count(data, field).map(|length| usize::try_from(length).unwrap_or(usize::MAX));
    let (repetition, definition) = (length(6)?, length(5)?);
    let values = repetition.saturating_add(definition);
    if values > stored.len() || values > unpacked {
        return damaged("a page of cells is too short");
    }
    let bytes = match data.number(7) {
        Some(0) => stored,
        _ if unpacked == values => stored[..values].to_vec(),
        _ => [&stored[..values], &codec.unpack(&stored[values..], unpacked - values)?].concat(),
    };
    let encoding = encoding(data.number(4))?;
    let (repetitions, levels) = (0..repetition, repetition..values);
    Ok(Page { is_dictionary: false, cells: count(data, 1)?, encoding, bytes, repetitions, levels, values })
}

fn count(header: &Struct, field: i64) -> Result<u64, Fault> {
    match header.number(field).map(u64::try_from) {
        Some(Ok(count)) => Ok(count),
        _ => damaged("a page lacks a number in its header"),
    }
}

fn encoding(number: Option<i64>) -> Result<Encoding, Fault> {
    Ok(match number {
        Some(0) => Encoding::Plain,
        Some(2 | 8) => Encoding::Dictionary,
        Some(3) => Encoding::Runs,
        Some(5) => Encoding::Deltas,
        Some(6) => Encoding::DeltaLengths,
        Some(7) => Encoding::DeltaBytes,
        Some(9) => Encoding::Split,
        _ => {
            let how = format!("has the encoding {}", number.unwrap_or(-1));
            return Err(Fault::Foreign(how, "write it with the encoding PLAIN"));
        }
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use super::*;
    use crate::tensorboard::varint;

    /// A number in a header.
    fn number(number: u64) -> Vec<u8> {
        varint(2 * number)
    }

    /// A page of one cell in a column without empty cells.
    fn page(unpacked: u64, packed: &[u8]) -> Vec<u8> {
        let kind = [0x15, 0, 0x15].to_vec();
        let cells = [0x2c, 0x15, 2, 0x15, 0, 0, 0].to_vec();
        [kind, number(unpacked), vec![0x15], number(packed.len() as u64), cells, packed.to_vec()].concat()
    }

    fn read(page: &[u8], codec: Codec) -> Result<Page, Fault> {
        let (page, end) = read_page(&mut Cursor::new(page), 0..page.len() as u64, codec, Levels::default())?;
        assert!(end > 0);
        page.ok_or(Fault::NoParquet)
    }

    fn damage(page: &[u8], codec: Codec) -> String {
        match read(page, codec) {
            Err(Fault::Damaged(reason)) => reason,
            _ => panic!("the page is not damaged"),
        }
    }

    #[test]
    fn a_page_that_would_fill_the_memory_is_refused() {
        let gzip = |bytes: &[u8]| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        };
        assert_eq!(read(&page(3, &gzip(b"abc")), Codec::GZIP).unwrap().bytes, b"abc");
        let zeros = gzip(&vec![0; 100 << 20]);
        assert!(damage(&page(100 << 20, &zeros), Codec::GZIP).contains("would unpack to 104857600 bytes"));
        // A lie about the length does not help: no more is unpacked than it states.
        assert!(damage(&page(1000, &zeros), Codec::GZIP).contains("another length"));
        for codec in (0..8).map(Codec) {
            assert!(damage(&page(1 << 30, b"a"), codec).contains("would unpack to 1073741824 bytes"));
        }
        // Snappy states the length once more.
        assert!(
            damage(&page(1 << 20, &[0xff, 0xff, 0xff, 0x7f, 0]), Codec::SNAPPY).contains("another length")
        );
    }

    /// A page whose header has a statistic of this many bytes, as some programs write the largest image.
    fn page_with_statistics(length: usize) -> Vec<u8> {
        let statistics = [vec![0x18], varint(length as u64), vec![7; length], vec![0]].concat();
        let head = [0x15, 0, 0x15, 6, 0x15, 6, 0x2c, 0x15, 2, 0x15, 0, 0x15, 6, 0x15, 6, 0x1c].to_vec();
        [head, statistics, b"\0\0abc".to_vec()].concat()
    }

    #[test]
    fn a_header_may_hold_whole_images() {
        for length in [0, 480, 1000, 100_000, 3 << 20] {
            assert_eq!(read(&page_with_statistics(length), Codec::NONE).unwrap().bytes, b"abc", "{length}");
        }
        let page = page_with_statistics(100_000);
        assert!(damage(&page[..99_999], Codec::NONE).contains("header of a page cannot be read"));
    }

    #[test]
    fn only_the_beginning_of_a_chunk_is_read_for_a_short_header() {
        let file = [page(3, b"abc"), vec![0; 1 << 20]].concat();
        let mut file = Counting { file: Cursor::new(file), bytes: 0 };
        read_page(&mut file, 0..1 << 20, Codec::NONE, Levels::default()).unwrap();
        assert_eq!(file.bytes, FIRST_OF_HEADER + 3);
    }

    /// Counts the bytes that are read.
    struct Counting {
        file: Cursor<Vec<u8>>,
        bytes: u64,
    }

    impl Read for Counting {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            let length = self.file.read(bytes)?;
            self.bytes += length as u64;
            Ok(length)
        }
    }

    impl Seek for Counting {
        fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
            self.file.seek(position)
        }
    }

    #[test]
    fn blocks_of_hadoop_are_unpacked() {
        // Blocks of LZ4 that hold three letters each, as they are.
        let block = |text: &[u8]| [&[0, 0, 0, 3, 0, 0, 0, 4, 0x30][..], text].concat();
        let blocks = [block(b"abc"), block(b"def")].concat();
        assert_eq!(read(&page(6, &blocks), Codec::LZ4_OF_HADOOP).unwrap().bytes, b"abcdef");
        assert!(damage(&page(6, &blocks[..22]), Codec::LZ4_OF_HADOOP).contains("ends early"));
        assert!(damage(&page(7, &blocks), Codec::LZ4_OF_HADOOP).contains("another length"));
        assert!(read(&page(5, &blocks), Codec::LZ4_OF_HADOOP).is_err());
    }

    #[test]
    fn an_unknown_compression_is_named() {
        let Err(Fault::Foreign(how, hint)) = read(&page(3, b"abc"), Codec(3)) else { panic!("it is read") };
        assert!(how.contains("compressed with LZO") && hint.contains("Snappy"), "{how}");
    }

    #[test]
    fn a_length_that_the_format_cannot_have_is_refused() {
        assert!(damage(&page(1 << 31, b"a"), Codec::NONE).contains("longer than a page can be"));
        assert!(damage(&page(1 << 40, b"a"), Codec::GZIP).contains("longer than a page can be"));
    }

    #[test]
    fn a_page_that_is_cut_off_is_refused() {
        let page = page(4, &[0, 0, 0, 0]);
        assert_eq!(read(&page, Codec::NONE).unwrap().cells, 1);
        for end in 0..page.len() {
            assert!(read(&page[..end], Codec::NONE).is_err(), "the first {end} bytes");
        }
        assert!(damage(&page[..page.len() - 1], Codec::NONE).contains("longer than the file says"));
    }
}
