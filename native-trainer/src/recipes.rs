//! The recipes that are built into the program: configs to start from, and those of the published
//! tables. `akin list recipes` names them, and wherever a config is asked for, a name will do.

use std::path::Path;

/// A config by name.
pub struct Recipe {
    /// What `akin train NAME` and `akin compare NAME` take.
    pub name: &'static str,
    /// The file.
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
    "omniglot",
    "omniglot-hash",
];

/// The recipe that a path names, where there is no file of that name.
pub fn built_in(path: &Path) -> Option<&'static Recipe> {
    let name = path.to_str()?;
    RECIPES.iter().find(|recipe| recipe.name == name && !path.is_file())
}

impl Recipe {
    /// What it is for: the first line of its comment, without its full stop.
    pub fn title(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_matches(['#', ' ', '.'])
    }

    /// Whether it is made for `akin compare`.
    pub fn compares(&self) -> bool {
        self.text.lines().any(|line| line.trim_end() == "[compare]")
    }
}
