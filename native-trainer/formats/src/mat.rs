//! MATLAB files of version 5, as data: numbers, texts, cell arrays and structs, also inside compressed elements.
//!
//! A file is a header of 128 bytes and elements. An element is a tag (its type and its length) and data; an array is an
//! element that holds elements: flags, size, name, and then its values. See MathWorks' "MAT-File Format" (version 5).
//! Objects, function handles, sparse and complex arrays are skipped as [`Value::Other`].

pub mod fixtures;

use std::io::Read;

use akin_base::problem::problem;
use anyhow::Result;
use flate2::read::ZlibDecoder;

/// All compressed elements of a file together may grow to this number of bytes.
const DECOMPRESSED: u64 = 64 << 20;

/// Arrays may lie in one another this deep.
const DEPTH: usize = 16;

const HEADER: usize = 128;

/// The types of elements.
const COMPRESSED: u32 = 15;
const MATRIX: u32 = 14;

/// A value of a MATLAB file. The elements of an array stand in column-major order.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An array of numbers.
    Numbers(Vec<f64>),
    /// A row of characters.
    Text(String),
    /// An array of values.
    Cell(Vec<Value>),
    /// An array of structs.
    Structs(Structs),
    /// A value of another kind.
    Other,
}

/// An array of structs, which all have the same fields.
#[derive(Clone, Debug, PartialEq)]
pub struct Structs {
    fields: Vec<String>,
    /// The values of the first struct in the order of the fields, then those of the second, and so on.
    values: Vec<Value>,
}

impl Structs {
    /// The number of structs.
    pub fn count(&self) -> usize {
        self.values.len().checked_div(self.fields.len()).unwrap_or(0)
    }

    /// The value of a field of a struct; none if there is no such field or struct.
    pub fn get(&self, number: usize, field: &str) -> Option<&Value> {
        let place = self.fields.iter().position(|name| name == field)?;
        self.values.chunks_exact(self.fields.len()).nth(number)?.get(place)
    }
}

impl Value {
    /// A single number.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Numbers(values) if values.len() == 1 => Some(values[0]),
            _ => None,
        }
    }

    /// A text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// An array of structs.
    pub fn structs(&self) -> Option<&Structs> {
        match self {
            Self::Structs(structs) => Some(structs),
            _ => None,
        }
    }
}

/// The variables of a file by name, in the order of the file.
///
/// # Errors
///
/// Bytes that are no MATLAB file of version 5, or that end too early.
pub fn parse(bytes: &[u8]) -> Result<Vec<(String, Value)>> {
    if bytes.len() < HEADER {
        return Err(damaged("it has no header"));
    }
    let big_endian = match &bytes[HEADER - 2..HEADER] {
        b"IM" => false,
        b"MI" => true,
        _ => {
            return Err(problem(
                "it is not a MATLAB file of version 5",
                "save it in MATLAB with `save -v7`; files of version 7.3 are HDF5 and cannot be read",
            ));
        }
    };
    let mut reader = Reader { big_endian, left: DECOMPRESSED };
    let mut rest = &bytes[HEADER..];
    let mut variables = Vec::new();
    while !rest.is_empty() {
        let element = reader.element(&mut rest, true)?;
        if element.kind == COMPRESSED {
            let inner = reader.decompress(element.data)?;
            let mut rest = &inner[..];
            let element = reader.element(&mut rest, false)?;
            if element.kind == MATRIX {
                variables.push(reader.array(element.data, 0)?);
            }
        } else if element.kind == MATRIX {
            variables.push(reader.array(element.data, 0)?);
        }
    }
    Ok(variables)
}

struct Element<'a> {
    kind: u32,
    data: &'a [u8],
}

struct Reader {
    big_endian: bool,
    /// The bytes that compressed elements may still grow to.
    left: u64,
}

impl Reader {
    fn u16(&self, bytes: [u8; 2]) -> u16 {
        if self.big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
    }

    fn u32(&self, bytes: &[u8]) -> Result<u32> {
        let four: [u8; 4] =
            bytes.get(..4).and_then(|four| four.try_into().ok()).ok_or_else(|| damaged("it ends early"))?;
        Ok(if self.big_endian { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) })
    }

    /// Takes an element from the front of `rest`. At the top level a compressed element is not padded.
    fn element<'a>(&self, rest: &mut &'a [u8], top: bool) -> Result<Element<'a>> {
        let tag = self.u32(rest)?;
        // A short element has its length in the upper half of the tag and its data in the same eight bytes.
        let (kind, start, length, padded) = if tag >> 16 != 0 {
            (tag & 0xffff, 4, (tag >> 16) as usize, 8)
        } else {
            let length = self.u32(rest.get(4..).unwrap_or_default())? as usize;
            let end = length.checked_add(8).ok_or_else(|| damaged("an element is too long"))?;
            let padded = if tag == COMPRESSED && top { end } else { end.next_multiple_of(8) };
            (tag, 8, length, padded)
        };
        if start == 4 && length > 4 {
            return Err(damaged("a short element has more than four bytes"));
        }
        let data = rest.get(start..start + length).ok_or_else(|| damaged("it ends early"))?;
        // The padding of the last element may be missing.
        *rest = rest.get(padded..).unwrap_or_default();
        Ok(Element { kind, data })
    }

    fn decompress(&mut self, bytes: &[u8]) -> Result<Vec<u8>> {
        let mut inner = Vec::new();
        ZlibDecoder::new(bytes)
            .take(self.left + 1)
            .read_to_end(&mut inner)
            .map_err(|error| damaged(&format!("an element cannot be decompressed ({error})")))?;
        self.left = self
            .left
            .checked_sub(inner.len() as u64)
            .ok_or_else(|| damaged(&format!("its elements hold more than {} MB", DECOMPRESSED >> 20)))?;
        Ok(inner)
    }

    /// The name and the value of an array.
    fn array(&mut self, data: &[u8], depth: usize) -> Result<(String, Value)> {
        if depth > DEPTH {
            return Err(damaged(&format!("its arrays lie more than {DEPTH} deep in one another")));
        }
        // An empty place of a cell array or a struct.
        if data.is_empty() {
            return Ok((String::new(), Value::Numbers(Vec::new())));
        }
        let mut rest = data;
        let flags = self.u32(self.element(&mut rest, false)?.data)?;
        let (class, is_complex) = (flags & 0xff, flags & 0x0800 != 0);
        let dimensions = self.element(&mut rest, false)?;
        let count = dimensions.data.as_chunks::<4>().0.iter().try_fold(1usize, |count, four| {
            count.checked_mul(self.u32(four)? as usize).ok_or_else(|| damaged("an array is too large"))
        })?;
        let name = String::from_utf8_lossy(self.element(&mut rest, false)?.data).into_owned();
        let value = match class {
            1 => Value::Cell(self.arrays(&mut rest, count, depth)?),
            2 => self.structs(&mut rest, count, depth)?,
            4 => {
                let element = self.element(&mut rest, false)?;
                Value::Text(self.characters(&element)?)
            }
            6..=15 if !is_complex => {
                let element = self.element(&mut rest, false)?;
                let values = self.numbers(&element)?;
                if values.len() != count {
                    return Err(damaged(&format!("an array of {count} numbers has {}", values.len())));
                }
                Value::Numbers(values)
            }
            _ => Value::Other,
        };
        Ok((name, value))
    }

    /// The next arrays. Each takes at least the eight bytes of its tag, so a false count cannot fill the memory.
    fn arrays(&mut self, rest: &mut &[u8], count: usize, depth: usize) -> Result<Vec<Value>> {
        if count > rest.len() / 8 {
            return Err(damaged(&format!("there is no room for {count} arrays")));
        }
        let mut values = Vec::with_capacity(count);
        for _ in 0..count {
            let element = self.element(rest, false)?;
            values.push(if element.kind == MATRIX {
                self.array(element.data, depth + 1)?.1
            } else {
                Value::Other
            });
        }
        Ok(values)
    }

    fn structs(&mut self, rest: &mut &[u8], count: usize, depth: usize) -> Result<Value> {
        let length = self.u32(self.element(rest, false)?.data)? as usize;
        let names = self.element(rest, false)?.data;
        if length == 0 || !names.len().is_multiple_of(length) {
            return Err(damaged("the names of a struct's fields have no length"));
        }
        let name = |bytes: &[u8]| {
            let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
            String::from_utf8_lossy(&bytes[..end]).into_owned()
        };
        let fields: Vec<String> = names.chunks_exact(length).map(name).collect();
        let all = count.checked_mul(fields.len()).ok_or_else(|| damaged("a struct is too large"))?;
        let values = self.arrays(rest, all, depth)?;
        Ok(Value::Structs(Structs { fields, values }))
    }

    fn characters(&self, element: &Element) -> Result<String> {
        match element.kind {
            1 | 2 | 16 => Ok(String::from_utf8_lossy(element.data).into_owned()),
            4 | 17 => {
                let units: Vec<u16> = element.data.as_chunks().0.iter().map(|&two| self.u16(two)).collect();
                Ok(String::from_utf16_lossy(&units))
            }
            kind => Err(damaged(&format!("a text has the type {kind}"))),
        }
    }

    /// Numbers are stored in the smallest type that holds them, whatever the class of their array.
    fn numbers(&self, element: &Element) -> Result<Vec<f64>> {
        macro_rules! read {
            ($number:ty) => {{
                let read = if self.big_endian { <$number>::from_be_bytes } else { <$number>::from_le_bytes };
                #[allow(clippy::cast_lossless, reason = "one line for every type")]
                element.data.as_chunks().0.iter().map(|&bytes| read(bytes) as f64).collect()
            }};
        }
        Ok(match element.kind {
            1 => read!(i8),
            2 => read!(u8),
            3 => read!(i16),
            4 => read!(u16),
            5 => read!(i32),
            6 => read!(u32),
            7 => read!(f32),
            9 => read!(f64),
            12 => read!(i64),
            13 => read!(u64),
            kind => return Err(damaged(&format!("an array of numbers has the type {kind}"))),
        })
    }
}

fn damaged(why: &str) -> anyhow::Error {
    problem(format!("the MATLAB file is damaged: {why}"), "copy the file again")
}

#[cfg(test)]
mod tests {
    use akin_base::problem::parts;

    use super::fixtures::*;
    use super::*;

    fn refused(bytes: &[u8]) -> String {
        parts(&parse(bytes).unwrap_err()).0
    }

    #[test]
    fn numbers_texts_cells_and_structs_are_read() {
        let people = structs(
            "people",
            &["name", "age"],
            &[text("", "Åsa"), numbers("", &[7]), text("", "Bo"), numbers("", &[])],
        );
        let names = cell("names", &[text("", "x"), numbers("", &[1, 2])]);
        for bytes in
            [file(&[people.clone(), names.clone()]), file(&[compressed(&people), compressed(&names)])]
        {
            let variables = parse(&bytes).unwrap();
            assert_eq!([&*variables[0].0, &*variables[1].0], ["people", "names"]);
            let people = variables[0].1.structs().unwrap();
            assert_eq!(people.count(), 2);
            assert_eq!(people.get(0, "name").and_then(Value::text), Some("Åsa"));
            assert_eq!(people.get(0, "age").and_then(Value::number), Some(7.0));
            assert_eq!(people.get(1, "age").and_then(Value::number), None);
            assert_eq!((people.get(2, "age"), people.get(0, "height")), (None, None));
            assert_eq!(
                variables[1].1,
                Value::Cell(vec![Value::Text("x".into()), Value::Numbers(vec![1.0, 2.0])])
            );
        }
    }

    #[test]
    fn a_damaged_file_is_refused_wherever_it_is_cut() {
        let people = structs("people", &["name"], &[text("", "A"), text("", "B")]);
        let whole = file(std::slice::from_ref(&people));
        // The last bytes are padding.
        for length in 0..whole.len() - 7 {
            if length != 128 {
                assert!(parse(&whole[..length]).is_err(), "cut at {length}");
            }
        }
        let zipped = file(&[compressed(&people)]);
        assert!(refused(&zipped[..zipped.len() - 9]).contains("ends early"));
        assert!(refused(&[0; 200]).contains("not a MATLAB file of version 5"));
    }

    #[test]
    fn a_small_file_cannot_grow_without_bound() {
        let bomb = vec![0; (DECOMPRESSED + 1) as usize];
        assert!(refused(&file(&[compressed(&bomb)])).contains("more than 64 MB"));
        let mut deep = numbers("", &[1]);
        for _ in 0..20 {
            deep = cell("", &[deep]);
        }
        assert!(refused(&file(&[deep])).contains("16 deep"));
        // A cell array that claims four billion elements.
        let mut cells = cell("", &[numbers("", &[1])]);
        cells[36..40].copy_from_slice(&[255; 4]);
        assert!(refused(&file(&[cells])).contains("no room"),);
    }
}
