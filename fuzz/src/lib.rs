//! What the fuzz targets share.
#![forbid(unsafe_code)]

/// A valid file with some bytes changed, so that the fuzzer gets behind checks of lengths and names: each five bytes of
/// `changes` are a place and the byte that is put there.
pub fn patched(valid: &[u8], changes: &[u8]) -> Vec<u8> {
    let mut bytes = valid.to_vec();
    for change in changes.chunks_exact(5) {
        let place = u32::from_le_bytes([change[0], change[1], change[2], change[3]]) as usize;
        let length = bytes.len();
        bytes[place % length] = change[4];
    }
    bytes
}
