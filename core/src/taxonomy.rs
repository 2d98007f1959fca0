//! taxonomy
