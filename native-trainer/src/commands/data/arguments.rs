//! Which data set a command is about.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::commands::arguments::SetArgs;
use crate::config::{DataConfig, Selection};

/// Names a data set: by a config, or by its name and the folder of a copy.
#[derive(Debug, Args)]
pub struct DataSetArgs {
    /// A TOML file with a section `[data]`, or, with PATH, the name of a data set from `akin list datasets`.
    #[arg(value_name = "CONFIG|NAME")]
    pub data: PathBuf,
    /// The folder of a copy of the data set that is named first.
    #[arg(value_name = "PATH", conflicts_with = "set")]
    pub path: Option<PathBuf>,
    #[command(flatten)]
    pub sets: SetArgs,
}

impl DataSetArgs {
    /// The images that the config names, or all of the copy.
    ///
    /// # Errors
    ///
    /// As [`Selection::load`] and [`DataConfig::for_copy`].
    pub fn load(&self) -> Result<Selection> {
        match &self.path {
            Some(path) => Ok(Selection::of(DataConfig::for_copy(&self.data.to_string_lossy(), path)?)),
            None => Selection::load(&self.data, &self.sets.set),
        }
    }
}
