//! Pictures: read from disk, decoded and augmented on background threads, and sent through a network.
//!
//! [`features`] builds on [`forward`], which builds on [`loader`], which builds on [`augmentation`].

pub mod augmentation;
pub mod features;
pub mod forward;
pub mod loader;
