//! `akin`: train, evaluate, export and serve hierarchical retrieval models.

fn main() {}
