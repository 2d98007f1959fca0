//! Evaluation: the embeddings of a data set, their scores and maps, and both as text.

pub mod by_class;
pub mod certainty;
pub mod class_means;
pub mod class_scores;
pub mod dyml_protocol;
pub mod embedding;
pub mod model_card;
pub mod paper_results;
pub mod projection;
pub mod report;
