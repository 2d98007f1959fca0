//! The structure of a Protocol Buffers file, checked before a parser takes memory for it.
//!
//! The parser of `rten-onnx` descends into nested messages by recursion and makes a struct for every message, so a file of
//! a few megabytes could use up the stack or the memory. This module walks over the lengths alone.

use std::fmt;

/// The deepest nesting of messages that is read. A graph inside a graph takes three levels.
const MAX_DEPTH: usize = 64;
/// The largest number of messages. A vision transformer with 24 blocks has about 10,000.
const MAX_MESSAGES: usize = 1_000_000;

/// What is wrong with the structure of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// A field goes on after the end of the file or of its message.
    Cut { byte: usize },
    /// The bytes are not those of Protocol Buffers, or have no graph.
    Foreign,
    /// Messages are nested too deeply.
    Deep,
    /// There are too many messages.
    Many,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut { byte } => {
                write!(f, "it is cut off: the part that begins at byte {byte} is not whole")
            }
            Self::Foreign => write!(f, "it is not an ONNX file: it has no graph"),
            Self::Deep => write!(f, "its messages are nested more than {MAX_DEPTH} deep"),
            Self::Many => write!(f, "it has more than {MAX_MESSAGES} messages"),
        }
    }
}

/// The messages of `onnx.proto` that contain messages which the parser reads.
#[derive(Clone, Copy)]
enum Message {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
    Value,
    Type,
    TensorType,
    SequenceType,
    Shape,
    Leaf,
}

impl Message {
    /// The message in a field; none if the field holds bytes or numbers.
    fn field(self, number: u64) -> Option<Self> {
        Some(match (self, number) {
            (Self::Model, 7) | (Self::Attribute, 6) => Self::Graph,
            (Self::Graph, 1) => Self::Node,
            (Self::Graph, 5) | (Self::Attribute, 5) => Self::Tensor,
            (Self::Graph, 11..=13) => Self::Value,
            (Self::Node, 5) => Self::Attribute,
            (Self::Value, 2) | (Self::SequenceType, 1) => Self::Type,
            (Self::Type, 1) => Self::TensorType,
            (Self::Type, 4) => Self::SequenceType,
            (Self::TensorType, 2) => Self::Shape,
            (Self::Model, 8 | 14) | (Self::Tensor, 13) | (Self::Shape, 1) => Self::Leaf,
            _ => return None,
        })
    }
}

/// Checks that the bytes are a model with a graph, whose fields are all whole.
pub(crate) fn check(bytes: &[u8]) -> Result<(), Flaw> {
    let mut walk = Walk { bytes, messages: 0, has_graph: false };
    match walk.message(Message::Model, 0, bytes.len(), 0) {
        Err(Flaw::Cut { .. }) if !walk.has_graph => Err(Flaw::Foreign),
        Ok(()) if !walk.has_graph => Err(Flaw::Foreign),
        result => result,
    }
}

struct Walk<'a> {
    bytes: &'a [u8],
    messages: usize,
    has_graph: bool,
}

impl Walk<'_> {
    fn message(&mut self, message: Message, start: usize, end: usize, depth: usize) -> Result<(), Flaw> {
        self.messages += 1;
        if depth > MAX_DEPTH {
            return Err(Flaw::Deep);
        }
        if self.messages > MAX_MESSAGES {
            return Err(Flaw::Many);
        }
        let mut at = start;
        while at < end {
            let byte = at;
            let tag = self.varint(&mut at, end)?;
            let length = match tag & 7 {
                0 => {
                    self.varint(&mut at, end)?;
                    continue;
                }
                1 => 8,
                2 => self.varint(&mut at, end)?,
                5 => 4,
                _ => return Err(Flaw::Foreign),
            };
            let inner = usize::try_from(length).ok().and_then(|length| at.checked_add(length));
            let inside = message.field(tag >> 3).filter(|_| tag & 7 == 2);
            if let (Message::Model, Some(Message::Graph)) = (message, inside) {
                self.has_graph = true;
            }
            let Some(inner) = inner.filter(|&inner| inner <= end) else { return Err(Flaw::Cut { byte }) };
            if let Some(inside) = inside {
                self.message(inside, at, inner, depth + 1)?;
            }
            at = inner;
        }
        Ok(())
    }

    fn varint(&self, at: &mut usize, end: usize) -> Result<u64, Flaw> {
        let start = *at;
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            if *at >= end {
                return Err(Flaw::Cut { byte: start });
            }
            let byte = self.bytes[*at];
            *at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Flaw::Foreign)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field that holds `content`.
    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![number << 3 | 2];
        let mut length = content.len();
        while length >= 0x80 {
            bytes.push(length as u8 | 0x80);
            length >>= 7;
        }
        bytes.push(length as u8);
        bytes.extend(content);
        bytes
    }

    #[test]
    fn a_part_that_is_not_whole_is_found_at_every_length() {
        let node = field(1, &field(4, b"Relu"));
        let model = [field(2, b"akin"), field(7, &node)].concat();
        assert_eq!(check(&model), Ok(()));
        for length in 0..model.len() {
            let flaw = check(&model[..length]).unwrap_err();
            assert!(matches!(flaw, Flaw::Foreign | Flaw::Cut { .. }), "{length}: {flaw:?}");
        }
        assert_eq!(check(&model[..model.len() - 1]), Err(Flaw::Cut { byte: 6 }));
        assert_eq!(check(b"{\"kind\": \"text\"}"), Err(Flaw::Foreign));
    }

    #[test]
    fn graphs_nested_without_end_are_refused() {
        let nested = |graph: &[u8]| field(1, &field(5, &field(6, graph)));
        let graph = (0..100).fold(Vec::new(), |graph, _| nested(&graph));
        assert_eq!(check(&field(7, &graph)), Err(Flaw::Deep));
        assert_eq!(check(&field(7, &nested(&nested(&[])))), Ok(()));
    }

    #[test]
    fn a_length_beyond_every_memory_is_a_cut() {
        let huge = [7 << 3 | 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(check(&huge), Err(Flaw::Cut { byte: 0 }));
        let many = field(7, &[1 << 3 | 2, 0].repeat(MAX_MESSAGES));
        assert_eq!(check(&many), Err(Flaw::Many));
    }
}
