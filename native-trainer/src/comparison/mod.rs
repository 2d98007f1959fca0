//! Many trainings on the same data: `akin compare` and `akin tune`, which builds on it.

pub mod compare;
pub mod tune;
