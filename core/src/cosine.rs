//! cosine
