//! The file formats of other tools: embeddings of NumPy and safetensors, tables as CSV, Parquet and JSON lines, lists in
//! MATLAB files, and the event files of TensorBoard.
//!
//! What is read here may come from anywhere, so nothing in a file is executed, a length is checked before memory is
//! taken for it, and every flaw is an error that names its place.

pub mod column;
pub mod csv_file;
pub mod embedding_file;
pub mod embedding_output;
pub mod mat;
pub mod matrix;
pub mod npy;
mod npz;
pub mod parquet_file;
pub mod parquet_output;
mod safetensors_file;
pub mod source;
pub mod table;
pub mod tensorboard;
pub mod text_file;
mod text_matrix;
