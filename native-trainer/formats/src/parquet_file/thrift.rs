//! Thrift's compact protocol, in which Parquet writes its footer and the header of each page.
//!
//! A struct is a list of fields, known by number. It is read as data, so that fields of later versions do no harm.

/// A value.
#[derive(Debug, PartialEq)]
pub(crate) enum Value<'a> {
    /// A whole number, or 0 or 1 for a flag.
    Number(i64),
    /// Bytes or a text.
    Bytes(&'a [u8]),
    /// A list or a set.
    List(Vec<Value<'a>>),
    /// A struct.
    Struct(Struct<'a>),
}

/// The fields of a struct that are there, with their numbers.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Struct<'a>(Vec<(i64, Value<'a>)>);

impl<'a> Struct<'a> {
    /// Reads a struct. Returns it with the number of its bytes; nothing for bytes that are no struct, or that hold more
    /// values than this. A value may be one byte long, and takes many times as much memory.
    pub(crate) fn read(bytes: &'a [u8], values: usize) -> Option<(Self, usize)> {
        let mut reader = Reader { rest: bytes, values };
        let value = reader.read_struct(DEPTH)?;
        Some((value, bytes.len() - reader.rest.len()))
    }

    fn get(&self, field: i64) -> Option<&Value<'a>> {
        self.0.iter().find(|(number, _)| *number == field).map(|(_, value)| value)
    }

    /// A field with a number.
    pub(crate) fn number(&self, field: i64) -> Option<i64> {
        if let Value::Number(number) = self.get(field)? { Some(*number) } else { None }
    }

    /// A field with a text.
    pub(crate) fn text(&self, field: i64) -> Option<&'a str> {
        if let Value::Bytes(bytes) = self.get(field)? { std::str::from_utf8(bytes).ok() } else { None }
    }

    /// A field with a struct.
    pub(crate) fn child(&self, field: i64) -> Option<&Self> {
        if let Value::Struct(child) = self.get(field)? { Some(child) } else { None }
    }

    /// A field with a list of structs.
    pub(crate) fn children(&self, field: i64) -> Option<Vec<&Self>> {
        let Value::List(values) = self.get(field)? else { return None };
        values.iter().map(|value| if let Value::Struct(child) = value { Some(child) } else { None }).collect()
    }
}

/// How deep values may be inside each other. Parquet has four.
const DEPTH: usize = 16;

// The types of values.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const INTEGERS: [u8; 3] = [4, 5, 6];
const DOUBLE: u8 = 7;
const BYTES: u8 = 8;
const LISTS: [u8; 2] = [9, 10];
const STRUCT: u8 = 12;

struct Reader<'a> {
    rest: &'a [u8],
    /// The number of values that may still come.
    values: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// A number in groups of seven bits, the lowest first.
    fn unsigned(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// A number whose lowest bit is its sign.
    fn signed(&mut self) -> Option<i64> {
        let number = self.unsigned()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn read_struct(&mut self, depth: usize) -> Option<Struct<'a>> {
        let depth = depth.checked_sub(1)?;
        let mut fields = Vec::new();
        let mut field = 0_i64;
        loop {
            let head = self.byte()?;
            if head == 0 {
                fields.shrink_to_fit();
                return Some(Struct(fields));
            }
            field = match head >> 4 {
                0 => self.signed()?,
                step => field.checked_add(step.into())?,
            };
            let value = match head & 0xf {
                TRUE | FALSE => {
                    self.values = self.values.checked_sub(1)?;
                    Value::Number((head & 0xf == TRUE).into())
                }
                kind => self.value(kind, depth)?,
            };
            fields.push((field, value));
        }
    }

    fn value(&mut self, kind: u8, depth: usize) -> Option<Value<'a>> {
        self.values = self.values.checked_sub(1)?;
        Some(match kind {
            // In a list, flags are bytes.
            TRUE | FALSE | BYTE => Value::Number(self.byte()?.into()),
            kind if INTEGERS.contains(&kind) => Value::Number(self.signed()?),
            DOUBLE => Value::Bytes(self.take(8)?),
            BYTES => {
                let length = usize::try_from(self.unsigned()?).ok()?;
                Value::Bytes(self.take(length)?)
            }
            kind if LISTS.contains(&kind) => {
                let head = self.byte()?;
                let length = match head >> 4 {
                    15 => self.unsigned()?,
                    length => length.into(),
                };
                let depth = depth.checked_sub(1)?;
                // No room is made for the number that the list states, which may be wrong.
                let mut values = Vec::new();
                for _ in 0..length {
                    values.push(self.value(head & 0xf, depth)?);
                }
                Value::List(values)
            }
            STRUCT => Value::Struct(self.read_struct(depth)?),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Option<(Struct<'_>, usize)> {
        Struct::read(bytes, 1 << 20)
    }

    #[test]
    fn a_struct_is_read_with_its_length() {
        // 1: 3, 2: -2, 4: "ab", 5: true, 25: [{1: 1}, {}], and a byte behind it.
        let bytes = [0x15, 6, 0x15, 3, 0x28, 2, b'a', b'b', 0x11, 0x09, 50, 0x2c, 0x15, 2, 0, 0, 0, 99];
        let (fields, length) = read(&bytes).unwrap();
        assert_eq!(length, bytes.len() - 1);
        assert_eq!((fields.number(1), fields.number(2), fields.number(5)), (Some(3), Some(-2), Some(1)));
        assert_eq!((fields.text(4), fields.text(1), fields.number(3)), (Some("ab"), None, None));
        let children = fields.children(25).unwrap();
        assert_eq!((children.len(), children[0].number(1), children[1].number(1)), (2, Some(1), None));
        for end in 0..length {
            assert_eq!(read(&bytes[..end]), None, "the first {end} bytes");
        }
    }

    #[test]
    fn a_length_beyond_the_end_and_values_that_are_too_deep_are_refused() {
        assert_eq!(read(&[0x19, 0xf5, 0xff, 0xff, 0xff, 0x7f, 1]), None);
        assert_eq!(read(&[0x18, 0xff, 0xff, 0xff, 0x7f, 1]), None);
        assert_eq!(read(&[0x1c; 100_000]), None);
        assert_eq!(read(&[0x19; 100_000]), None);
        assert_eq!(read(&[0xff; 20]), None, "a type that there is not");
    }

    #[test]
    fn a_struct_with_too_many_values_is_refused() {
        // A list of 100 structs with a flag each.
        let bytes = [vec![0x19, 0xfc, 100], [0x11, 0].repeat(100), vec![0]].concat();
        assert!(Struct::read(&bytes, 201).is_some());
        assert_eq!(Struct::read(&bytes, 200), None);
    }
}
