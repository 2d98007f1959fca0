//! Recipes: configs that are built into the program, to start from and to reproduce the published tables.
//!
//! `akin list recipes` names them. Every command that takes a config also takes the name of a recipe.

use std::path::Path;

/// A config with a name.
pub struct Recipe {
    /// The name that `akin train NAME` and `akin compare NAME` take.
    pub name: &'static str,
    /// The TOML file.
    pub text: &'static str,
}

macro_rules! recipes {
    ($($name:literal),* $(,)?) => {
        [$(Recipe { name: $name, text: include_str!(concat!("../recipes/", $name, ".toml")) }),*]
    };
}

/// All recipes.
pub const RECIPES: &[Recipe] = &recipes![
    "biomorphs",
    "biomorphs-happier",
    "biomorphs-norm-softmax",
    "grocery",
    "grocery-happier",
    "grocery-head",
    "grocery-hyperbolic",
    "grocery-norm-softmax",
    "grocery-rank-losses",
    "omniglot",
    "omniglot-hash",
];

/// The recipe of this name, unless there is a file of the same name.
pub fn built_in(path: &Path) -> Option<&'static Recipe> {
    let name = path.to_str()?;
    RECIPES.iter().find(|recipe| recipe.name == name && !path.is_file())
}

impl Recipe {
    /// The title: the first line of the comment at its top, without the full stop.
    pub fn title(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_matches(['#', ' ', '.'])
    }

    /// Whether `akin compare` takes it.
    pub fn compares(&self) -> bool {
        self.text.lines().any(|line| line.trim_end() == "[compare]")
    }
}
