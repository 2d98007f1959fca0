//! Recipes: configs that are built into the program, to start from and to reproduce published tables.
//!
//! `akin list recipes` names them. Every command that takes a config also takes the name of a recipe. A recipe of a paper
//! holds one data set of that paper, with a row of `[compare]` for each published result: `akin compare happier/sop` trains
//! all of them, and `akin train happier/sop/norm_softmax` trains one. A recipe of a figure varies a setting:
//! `akin compare roadmap/inat-slope`. A recipe without a section `[run]` has no training:
//! `akin eval hier/pretrained/cub-deit` evaluates published weights.

use std::path::Path;

use toml::{Table, Value};

/// A config with a name.
pub struct Recipe {
    /// The name that `akin train NAME` and `akin compare NAME` take.
    pub name: &'static str,
    /// The TOML file.
    pub text: &'static str,
}

macro_rules! recipes {
    ($($name:literal),* $(,)?) => {
        [$(Recipe { name: $name, text: include_str!(concat!("../../recipes/", $name, ".toml")) }),*]
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
    "happier/dyml-animal",
    "happier/dyml-product",
    "happier/dyml-vehicle",
    "happier/inat-base",
    "happier/inat-base-alpha",
    "happier/inat-base-lambda",
    "happier/inat-full",
    "happier/sop",
    "hier/cars",
    "hier/cars-hyp",
    "hier/cars-resnet50",
    "hier/cars-settings",
    "hier/cub",
    "hier/cub-hyp",
    "hier/cub-resnet50",
    "hier/inshop",
    "hier/inshop-dimensions",
    "hier/inshop-hyp",
    "hier/inshop-hyp-dimensions",
    "hier/inshop-resnet50",
    "hier/pretrained/cars-deit",
    "hier/pretrained/cars-dino",
    "hier/pretrained/cars-vit",
    "hier/pretrained/cub-deit",
    "hier/pretrained/cub-dino",
    "hier/pretrained/cub-vit",
    "hier/pretrained/inshop-deit",
    "hier/pretrained/inshop-dino",
    "hier/pretrained/inshop-vit",
    "hier/pretrained/sop-deit",
    "hier/pretrained/sop-dino",
    "hier/pretrained/sop-vit",
    "hier/sop",
    "hier/sop-hyp",
    "hier/sop-resnet50",
    "hpdh/cifar-100",
    "hpdh/nabirds",
    "hpl/cars",
    "hpl/cars-folds",
    "hpl/cub-folds",
    "hpl/inat",
    "hpl/inat-gt",
    "hpl/sop",
    "hpl/sop-folds",
    "omniglot",
    "omniglot-hash",
    "roadmap/cub",
    "roadmap/cub-batch-128",
    "roadmap/cub-batch-224",
    "roadmap/cub-batch-32",
    "roadmap/cub-batch-384",
    "roadmap/cub-batches",
    "roadmap/cub-deit-128",
    "roadmap/cub-deit-224",
    "roadmap/cub-deit-384",
    "roadmap/cub-large",
    "roadmap/inat",
    "roadmap/inat-batch-128",
    "roadmap/inat-batch-224",
    "roadmap/inat-batch-32",
    "roadmap/inat-batch-384",
    "roadmap/inat-batches",
    "roadmap/inat-deit-128",
    "roadmap/inat-deit-224",
    "roadmap/inat-deit-384",
    "roadmap/inat-lambda",
    "roadmap/inat-large",
    "roadmap/inat-margin",
    "roadmap/inat-slope",
    "roadmap/sfm120k",
    "roadmap/sop",
    "roadmap/sop-batch-128",
    "roadmap/sop-batch-224",
    "roadmap/sop-batch-32",
    "roadmap/sop-batch-384",
    "roadmap/sop-batches",
    "roadmap/sop-deit-128",
    "roadmap/sop-deit-224",
    "roadmap/sop-deit-384",
    "roadmap/sop-large",
    "roadmap/sop-slope",
    "roadmap/sop-temperature",
    "suprank/h-gldv2",
    "suprank/inat-base",
    "suprank/sop",
];

/// The recipe of this name, and the row of it if the name ends with one; none if there is a file of the same name.
pub fn built_in(path: &Path) -> Option<(&'static Recipe, Option<&str>)> {
    let name = path.to_str()?;
    if path.is_file() {
        return None;
    }
    if let Some(recipe) = RECIPES.iter().find(|recipe| recipe.name == name) {
        return Some((recipe, None));
    }
    let (recipe, row) = name.rsplit_once('/')?;
    let recipe = RECIPES.iter().find(|known| known.name == recipe)?;
    recipe.rows().iter().any(|known| known == row).then_some((recipe, Some(row)))
}

/// The names of all recipes and of their rows.
pub fn names() -> Vec<String> {
    let with_rows = |recipe: &Recipe| {
        let rows = recipe.rows().into_iter().map(|row| format!("{}/{row}", recipe.name));
        [recipe.name.to_owned()].into_iter().chain(rows).collect::<Vec<_>>()
    };
    RECIPES.iter().flat_map(with_rows).collect()
}

/// What a row of `[compare]` changes in a config: its own settings and its loss.
pub fn row_settings(config: &Table, row: &str) -> Table {
    let table = |value: Option<&Value>| value.and_then(Value::as_table).cloned().unwrap_or_default();
    let find =
        |table: &Table, key: &str| table.get(key).and_then(Value::as_table).cloned().unwrap_or_default();
    let given = find(&find(&find(config, "compare"), "loss"), row);
    let mut settings = table(given.get("config"));
    row_loss(&mut settings, row);
    settings
}

/// The loss in the settings of a row, which is called as the row is unless they say otherwise; none if it is no table.
pub fn row_loss<'a>(settings: &'a mut Table, row: &str) -> Option<&'a mut Table> {
    let loss = settings.entry("loss").or_insert_with(|| Value::Table(Table::new())).as_table_mut()?;
    loss.entry("kind").or_insert_with(|| row.into());
    Some(loss)
}

impl Recipe {
    /// The title: the first line of the comment at its top, without the full stop.
    pub fn title(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_matches(['#', ' ', '.'])
    }

    /// Whether `akin train` takes it. The others evaluate a backbone as it was published.
    pub fn trains(&self) -> bool {
        self.has_section("[run]")
    }

    /// Whether `akin compare` takes it.
    pub fn compares(&self) -> bool {
        self.has_section("[compare]")
    }

    /// Whether `akin tune` takes it.
    pub fn tunes(&self) -> bool {
        self.has_section("[tune]")
    }

    fn has_section(&self, section: &str) -> bool {
        self.text.lines().any(|line| line.trim_end() == section)
    }

    /// The rows that can be trained alone: those of a recipe that says what a paper reports.
    pub fn rows(&self) -> Vec<String> {
        let config = self.table();
        if !config.contains_key("published") {
            return Vec::new();
        }
        let losses =
            config.get("compare").and_then(|compare| compare.get("losses")).and_then(Value::as_array);
        losses.into_iter().flatten().filter_map(|row| Some(row.as_str()?.to_owned())).collect()
    }

    /// The recipe as a table.
    pub fn table(&self) -> Table {
        toml::from_str(self.text).expect("a test reads every recipe")
    }
}
