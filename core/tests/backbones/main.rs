//! Backbones: held to what the published implementations compute (`fixtures.py`), and their weights read from files as
//! torch and safetensors write them.

use akin_core::digest::sha256;

mod files;
mod fixture;
mod freezing;
mod numbers;
mod precision;
mod published;
mod torch_files;
mod training;
