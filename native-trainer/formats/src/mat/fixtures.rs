//! Small MATLAB files for tests.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// An element with its tag and padding.
pub fn element(kind: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = [kind.to_le_bytes(), (data.len() as u32).to_le_bytes()].concat();
    bytes.extend_from_slice(data);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

/// An array of a class with a size and a name, before its values.
fn array(class: u32, size: [u32; 2], name: &str, values: &[u8]) -> Vec<u8> {
    let flags = element(6, &[class.to_le_bytes(), [0; 4]].concat());
    let size = element(5, &size.map(u32::to_le_bytes).concat());
    element(14, &[flags, size, element(1, name.as_bytes()), values.to_vec()].concat())
}

/// An array of numbers that are stored as bytes.
pub fn numbers(name: &str, values: &[u8]) -> Vec<u8> {
    array(6, [1, values.len() as u32], name, &element(2, values))
}

/// A text.
pub fn text(name: &str, text: &str) -> Vec<u8> {
    let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    array(4, [1, text.len() as u32], name, &element(4, &units))
}

/// A cell array.
pub fn cell(name: &str, values: &[Vec<u8>]) -> Vec<u8> {
    array(1, [1, values.len() as u32], name, &values.concat())
}

/// Structs with these fields. `values` are those of the first, then those of the second.
pub fn structs(name: &str, fields: &[&str], values: &[Vec<u8>]) -> Vec<u8> {
    let names: Vec<u8> = fields
        .iter()
        .flat_map(|field| {
            let mut name = field.as_bytes().to_vec();
            name.resize(32, 0);
            name
        })
        .collect();
    // A short element: the length and the data share a tag.
    let length = [((4u32 << 16) | 5).to_le_bytes(), 32u32.to_le_bytes()].concat();
    let size = [1, (values.len() / fields.len()) as u32];
    array(2, size, name, &[length, element(1, &names), values.concat()].concat())
}

/// A file with these variables.
pub fn file(variables: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = vec![b' '; 124];
    bytes.extend([0, 1, b'I', b'M']);
    bytes.extend(variables.concat());
    bytes
}

/// A variable in a compressed element.
pub fn compressed(variable: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(variable).expect("memory can be written");
    let data = encoder.finish().expect("memory can be written");
    let mut bytes = [15u32.to_le_bytes(), (data.len() as u32).to_le_bytes()].concat();
    bytes.extend(data);
    bytes
}
