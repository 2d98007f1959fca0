//! The file formats of other tools: embeddings of NumPy, tables as CSV and Parquet, lists in MATLAB files,
//! and the event files of TensorBoard.
//!
//! What is read here may come from anywhere, so nothing in a file is executed, a length is checked before memory is
//! taken for it, and every flaw is an error that names its place.

pub mod csv_file;
pub mod mat;
pub mod npy;
pub mod parquet_file;
pub mod tensorboard;
pub mod text_file;
