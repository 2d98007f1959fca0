//! `akin tune`: settings are searched for in declared ranges, and judged on folds of the training classes.
//!
//! This is the protocol of Musgrave et al., *A Metric Learning Reality Check* (ECCV 2020), which HPL's second protocol
//! follows. A file imports only files above it in this list:
//!
//! | file | |
//! |---|---|
//! | [`config`] | `[tune]`, the section of a config |
//! | [`space`] | the ranges as a unit cube, and its points as settings |
//! | [`gaussian_process`] | what is known of the scores between the points that were tried |
//! | [`search`] | which point to try next |
//! | [`plan`] | the config of every training |
//! | [`results`] | trials, and the scores of the models on the evaluation splits |
//! | [`mod@print`] | results as text, Markdown, CSV and JSON |
//! | [`concatenation`] | the models of all folds on the evaluation splits, apart and as one |
//! | [`execution`] | checks, trains and collects everything |
//!
//! A trial is one choice of settings. It trains a model for each fold: on the training classes of the others, and it is
//! scored on the classes of the fold. Its score is the mean. The evaluation splits take no part in the choice.
//!
//! The best settings are then trained again on the same folds with other seeds, and these models are evaluated on the
//! evaluation splits. The models of one seed are scored *separated* (the mean of their scores) and *concatenated* (one
//! embedding, put together from those of all folds).
//!
//! ```text
//! OUT/trials/3f9a…/fold-1/           a run of a trial; 3f9a… is a digest of its settings
//! OUT/models/3f9a…/seed-1/fold-1/    a run with the best settings
//! OUT/models/3f9a…/seed-1.json       its evaluation, with those of the other folds
//! OUT/best.toml                      a config with the best settings, for `akin train`
//! OUT/trials.csv
//! OUT/results.{md,json}
//! ```

pub mod concatenation;
pub mod config;
pub mod execution;
pub mod gaussian_process;
pub mod plan;
pub mod print;
pub mod results;
pub mod search;
pub mod space;
