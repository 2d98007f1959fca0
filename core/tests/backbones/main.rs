//! Backbones: held to what the published implementations compute (`fixtures.py`), and their weights read from files as
//! torch and safetensors write them.

mod files;
mod fixture;
mod freezing;
mod precision;
mod published;
mod torch_files;
mod training;
