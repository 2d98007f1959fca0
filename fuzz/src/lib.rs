//! The files of the trainer that read what others wrote, and what they use. The trainer is a program, not a library, so
//! they are taken by their paths.
#![forbid(unsafe_code)]
#![allow(dead_code, unused_imports, reason = "only the readers are used")]

#[path = "../../native-trainer/src"]
mod trainer {
    pub mod bundles;
    #[cfg(feature = "tensor")]
    pub mod config;
    pub mod counts;
    pub mod csv_file;
    pub mod directory;
    pub mod faults;
    pub mod files;
    pub mod machine;
    pub mod mat;
    pub mod npy;
    pub mod page;
    pub mod parquet_file;
    pub mod pickle;
    pub mod problem;
    #[cfg(feature = "tensor")]
    pub mod recipes;
    pub mod sealed;
    pub mod serve;
    pub mod shell;
    pub mod terminal;
}

pub use trainer::*;

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
