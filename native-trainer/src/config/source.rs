//! Reads a config file, lays the values of `--set` over it, and makes a checked [`Config`] of it.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};
use std::{env, path};

use akin_base::files::read_text;
use akin_base::problem::{Advise, did_you_mean, problem};
use akin_base::shell;
use akin_core::image::PreprocessingConfig;
use akin_core::models::BackboneConfig;
use anyhow::Result;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::fault::{Faults, line_of, value_at};
use super::overlay::{lay_over, put};
use super::range::ensure;
use super::schema::Schema;
use super::{Config, Curve, DataKind, Rule, SamplerConfig, onnx, setting_name};
use crate::config::recipes;

/// Pairs of keys that exclude each other: one given by `--set` replaces the other.
const ALTERNATIVES: [[&str; 2]; 5] = [
    ["run.steps", "run.epochs"],
    ["schedule.warmup_steps", "schedule.warmup_epochs"],
    ["schedule.lr_warmup_steps", "schedule.lr_warmup_epochs"],
    ["schedule.curve.milestones", "schedule.curve.every_epochs"],
    ["augment.resize", "augment.squeeze"],
];

/// Keys that hold paths.
const PATHS: [&str; 9] = [
    "run.out",
    "data.path",
    "data.images",
    "data.hierarchy",
    "data.parents",
    "data.relevance_matrix",
    "model.weights",
    "model.backbone.path",
    "model.feature_cache",
];

/// The sections of commands that train more than one run. They are not part of a run.
const COMMANDS: [&str; 2] = ["compare", "tune"];

/// A config file with the values of `--set` laid over it. It has been read, but it is not a [`Config`] yet.
#[derive(Clone)]
pub struct Source {
    /// The file, or the name of a built-in recipe.
    file: PathBuf,
    text: String,
    /// The row of `[compare]` whose settings are laid over the file.
    row: Option<String>,
    /// What `--set` gave, as it was written.
    sets: Vec<String>,
    /// The ONNX file of `--onnx`, whose network takes the place of the file's `[model]`.
    onnx: Option<PathBuf>,
    /// The sections of a run, with absolute paths.
    table: Table,
    /// The sections of commands that train more than one run.
    commands: Table,
    /// The keys that `--set` gave.
    given: HashSet<String>,
}

/// What is wrong with a config.
struct Mistake {
    error: anyhow::Error,
    /// The setting that is wrong, if only one is.
    path: Vec<String>,
    /// Its line in the file.
    line: Option<usize>,
}

impl From<anyhow::Error> for Mistake {
    fn from(error: anyhow::Error) -> Self {
        Self { error, path: Vec::new(), line: None }
    }
}

/// Where the value of a setting comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The config file, on this line.
    File(usize),
    /// `--set`.
    Set,
    /// The default.
    Default,
}

impl Source {
    /// Whether there is a file or a built-in recipe of this name.
    pub fn exists(file: &Path) -> bool {
        file.is_file() || !file.is_dir() && recipes::built_in(file).is_some()
    }

    /// Reads a file, or the built-in recipe of that name if there is no such file.
    ///
    /// # Errors
    ///
    /// A file that does not exist or is not TOML, a `--set` that is not `KEY=VALUE`, an environment variable that is
    /// not set.
    pub fn read(file: &Path, sets: &[String]) -> Result<Self> {
        let shown = file.display();
        let built_in = recipes::built_in(file);
        let text = match &built_in {
            Some((recipe, _)) => recipe.text.to_owned(),
            None if file.is_dir() => {
                let own = file.join("config.toml");
                let hint = match own.is_file() {
                    true => format!("its config is {}", shell::path(&own)),
                    false => format!("write one for the images in it with `akin init {}`", shell::path(file)),
                };
                return Err(problem(format!("{shown} is a folder, not a config"), hint));
            }
            None => {
                // A name with an extension is meant to be a file.
                let near = match file.extension() {
                    None => {
                        let names = recipes::names();
                        did_you_mean(&shown.to_string(), names.iter().map(String::as_str))
                    }
                    Some(_) => String::new(),
                };
                read_text(file).advise(
                    || format!("the config {shown} cannot be read"),
                    &format!("{near}check the path; `akin list recipes` lists the built-in configs"),
                )?
            }
        };
        Self::from_text(file, text, built_in.and_then(|(_, row)| row), sets)
    }

    /// As [`Source::read`], with the network of an ONNX file in the place of `[model]` and of what a paper reports for it.
    ///
    /// # Errors
    ///
    /// As [`Source::read`].
    pub fn read_for_onnx(file: &Path, onnx: &Path, sets: &[String]) -> Result<Self> {
        let Self { text, row, .. } = Self::read(file, sets)?;
        Self::with_onnx(file, text, row.as_deref(), sets, Some(onnx))
    }

    /// A config that has an ONNX file as its model and nothing else.
    ///
    /// # Errors
    ///
    /// A `--set` that is not `KEY=VALUE`.
    pub fn of_onnx(onnx: &Path, sets: &[String]) -> Result<Self> {
        Self::with_onnx(Path::new("--onnx"), String::new(), None, sets, Some(onnx))
    }

    /// Reads the text of a file. If `row` is given, the settings of that row of `[compare]` are laid over it.
    ///
    /// # Errors
    ///
    /// As [`Source::read`].
    pub fn from_text(file: &Path, text: String, row: Option<&str>, sets: &[String]) -> Result<Self> {
        Self::with_onnx(file, text, row, sets, None)
    }

    fn with_onnx(
        file: &Path,
        text: String,
        row: Option<&str>,
        sets: &[String],
        onnx: Option<&Path>,
    ) -> Result<Self> {
        let shown = file.display();
        let mut table: Table = toml::from_str(&text).map_err(|error| {
            let hint = "correct that line; a section is written [data], a text in double quotes";
            problem(format!("{shown} is not valid TOML\n{}", without_long_lines(&error)), hint)
        })?;

        if let Some(row) = row {
            let settings = recipes::row_settings(&table, row);
            lay_over(&mut table, &settings);
        }
        if let Some(onnx) = onnx {
            table.remove("published");
            table.remove("model");
            put(&mut table, "model.backbone.kind", "onnx".into())?;
            let path =
                path::absolute(onnx).advise(|| format!("{} is no path", onnx.display()), "check it")?;
            let Some(path) = path.to_str() else {
                return Err(problem(
                    format!("the path {} is not UTF-8, so a config cannot hold it", onnx.display()),
                    "rename the file or its folder",
                ));
            };
            put(&mut table, "model.backbone.path", path.into())?;
        }
        // Another kind drops the keys of the default kind.
        name_kinds(&mut table);
        let mut given = HashSet::new();
        let mut changes = sets.iter().map(|set| parse_set(set)).collect::<Result<Vec<_>>>()?;
        // The result does not depend on their order: tables and kinds, which drop other keys, come first.
        changes.sort_by_key(|(key, _)| (key.matches('.').count(), !key.ends_with(".kind")));
        for (key, value) in changes {
            for [one, other] in ALTERNATIVES.into_iter().chain(ALTERNATIVES.map(|[one, other]| [other, one]))
            {
                if key == one {
                    take(&mut table, other);
                }
            }
            put(&mut table, &key, value)?;
            given.insert(key);
        }
        let mut commands = Table::new();
        for section in COMMANDS {
            match table.remove(section) {
                None => {}
                Some(value @ Value::Table(_)) => {
                    commands.insert(section.to_owned(), value);
                }
                Some(_) => {
                    return Err(problem(
                        format!("{shown}: `{section}` is not a section"),
                        format!("write [{section}]"),
                    ));
                }
            }
        }
        let (row, sets, onnx) = (row.map(str::to_owned), sets.to_vec(), onnx.map(Path::to_owned));
        let mut source =
            Self { file: file.to_owned(), text, row, sets, onnx, table: Table::new(), commands, given };
        source.resolve_paths(&mut table, |key| source.given.contains(key))?;
        source.table = table;
        Ok(source)
    }

    /// The name of the file without its ending, or of the recipe with `-` for `/`.
    pub fn name(&self) -> String {
        if recipes::built_in(&self.file).is_some() {
            return self.file.to_string_lossy().replace('/', "-");
        }
        self.file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The file, or the name of a built-in recipe.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Whether it describes a training, and not only a backbone to evaluate as it was published.
    pub fn trains(&self) -> bool {
        self.table.contains_key("loss")
    }

    /// Whether the file has this section of a command, `compare` or `tune`.
    pub fn has_command(&self, section: &str) -> bool {
        self.commands.contains_key(section)
    }

    /// Where the value at a dotted key comes from.
    pub fn origin(&self, key: &str) -> Origin {
        let is_given = |given: &String| key.strip_prefix(given.as_str()).is_some_and(is_below);
        if self.given.iter().any(is_given) {
            return Origin::Set;
        }
        let path: Vec<String> = key.split('.').map(str::to_owned).collect();
        // A `kind` given by `--set` drops the keys of the kind in the file.
        if value_at(&self.table, &path).is_none() {
            return Origin::Default;
        }
        line_of(&self.text, &path).map_or(Origin::Default, Origin::File)
    }

    /// Removes a setting of the file.
    pub fn remove(&mut self, key: &str) {
        take(&mut self.table, key);
    }

    /// The value of a setting of the file, or that `--set` gave.
    pub fn value(&self, key: &str) -> Option<&Value> {
        value_at(&self.table, &key.split('.').map(str::to_owned).collect::<Vec<_>>())
    }

    /// The config of a run, with the values of `over` laid over those of the file.
    ///
    /// # Errors
    ///
    /// As [`Config::load`].
    pub fn config(&self, over: &Table) -> Result<Config> {
        self.checked(over).map_err(|mistake| self.placed(mistake, |source| source.checked(over).is_ok()))
    }

    /// As [`Source::config`]. If `over` is what is wrong, the error names `place` and not the file.
    ///
    /// # Errors
    ///
    /// As [`Config::load`].
    pub fn config_with(&self, over: &Table, place: impl FnOnce() -> String) -> Result<Config> {
        self.checked(over).map_err(|mistake| match self.checked(&Table::new()) {
            Ok(_) => mistake.error.context(place()),
            Err(_) => self.placed(mistake, |source| source.checked(over).is_ok()),
        })
    }

    fn checked(&self, over: &Table) -> Result<Config, Mistake> {
        let mut table = self.table.clone();
        table.entry("run").or_insert_with(|| Value::Table(Table::new()));
        lay_over(&mut table, over);
        self.resolve_paths(&mut table, |_| false)?;
        name_kinds(&mut table);
        resolve_preprocessing(&mut table)?;
        resolve_levels(&mut table);
        let has_similarity = find(&mut table, "eval.similarity").is_some();
        let has_length = find(&mut table, "run.steps").is_some() || find(&mut table, "run.epochs").is_some();
        if recipes::built_in(&self.file).is_some_and(|(recipe, _)| !recipe.trains()) {
            let name = self.file.display();
            return Err(problem(
                format!("the recipe {name} has no training: it evaluates a backbone as it was published"),
                format!("use `akin eval {name}`"),
            )
            .into());
        }
        let also_missing: &[&str] = if has_length { &[] } else { &["`run.steps` or `run.epochs`"] };
        let mut config: Config = self.parse("", table, also_missing)?;
        if !has_similarity && let Some(head) = &config.model.head {
            config.eval.similarity = head.geometry.similarity();
        }
        if config.run.name.is_empty() {
            config.run.name = self.name();
        }
        if config.run.out.as_os_str().is_empty() {
            ensure(is_folder_name(&config.run.name), || {
                let name = format!(
                    "run.name is {:?}, which cannot be the name of a folder in runs/",
                    config.run.name
                );
                (name, "choose a name without `/`, or set run.out")
            })?;
            config.run.out = current_directory()?.join("runs").join(&config.run.name);
        }
        config.validate()?;
        Ok(config)
    }

    /// The error of a mistake, with the place where it is: a `--set`, or the file with the line. `is_right` says whether a
    /// source has no mistake.
    fn placed(&self, mistake: Mistake, is_right: impl Fn(&Self) -> bool) -> anyhow::Error {
        let Mistake { error, path, line } = mistake;
        if let Some(set) = self.set_of(&path).or_else(|| self.set_at_fault(&error.to_string(), is_right)) {
            return error.context(format!("`--set {set}`"));
        }
        let line = line.map(|line| format!(", line {line}")).unwrap_or_default();
        error.context(format!("{}{line}", self.file.display()))
    }

    /// The `--set` that gave the setting at a path.
    fn set_of(&self, path: &[String]) -> Option<&str> {
        let key = path.join(".");
        let gives = |set: &&String| key.strip_prefix(key_of(set)).is_some_and(is_below);
        self.sets.iter().rev().find(gives).map(String::as_str)
    }

    /// The `--set` without which nothing is wrong. Of several, the one whose key the message names first.
    fn set_at_fault(&self, message: &str, is_right: impl Fn(&Self) -> bool) -> Option<&str> {
        let is_at_fault = |&place: &usize| {
            let mut others = self.sets.clone();
            others.remove(place);
            let (text, row) = (self.text.clone(), self.row.as_deref());
            let source = Self::with_onnx(&self.file, text, row, &others, self.onnx.as_deref());
            source.is_ok_and(|source| is_right(&source))
        };
        let sets = (0..self.sets.len()).filter(is_at_fault).map(|place| self.sets[place].as_str());
        sets.min_by_key(|set| message.find(key_of(set)).unwrap_or(usize::MAX))
    }

    /// Where a setting of a command is: `--set` or the file, with the line.
    pub fn place(&self, path: &[&str]) -> String {
        let path: Vec<String> = path.iter().map(|part| (*part).to_owned()).collect();
        match self.set_of(&path) {
            Some(set) => format!("`--set {set}`"),
            None => {
                let line = line_of(&self.text, &path).map(|line| format!(", line {line}"));
                format!("{}{}", self.file.display(), line.unwrap_or_default())
            }
        }
    }

    /// Reads some sections of a config, which `check` checks. The other sections may be missing.
    ///
    /// # Errors
    ///
    /// As [`Config::load`], for these sections; the errors of `check`.
    pub(super) fn part<T: DeserializeOwned + JsonSchema>(
        &self,
        check: impl Fn(&T) -> Result<()>,
    ) -> Result<T> {
        let read = |source: &Self| -> Result<T, Mistake> {
            let mut table = source.table.clone();
            resolve_preprocessing(&mut table)?;
            resolve_levels(&mut table);
            let part = source.parse("", table, &[])?;
            check(&part)?;
            Ok(part)
        };
        read(self).map_err(|mistake| self.placed(mistake, |source| read(source).is_ok()))
    }

    /// The section of a command, `compare` or `tune`; with its defaults if the file does not have it.
    ///
    /// # Errors
    ///
    /// An unknown key or a value of the wrong type.
    pub fn command<T: DeserializeOwned + JsonSchema>(&self, section: &str) -> Result<T> {
        let read = |source: &Self| {
            let table = source.commands.get(section).and_then(Value::as_table).cloned();
            source.parse::<T>(section, table.unwrap_or_default(), &[])
        };
        read(self).map_err(|mistake| self.placed(mistake, |source| read(source).is_ok()))
    }

    /// Makes the paths of a config absolute.
    fn resolve_paths(&self, table: &mut Table, from_current_directory: impl Fn(&str) -> bool) -> Result<()> {
        let folder =
            path::absolute(self.file.parent().unwrap_or(Path::new(""))).or_else(|_| current_directory())?;
        for key in PATHS {
            let Some(Value::String(text)) = find(table, key) else { continue };
            let start = if from_current_directory(key) { current_directory()? } else { folder.clone() };
            *text = utf8(&start.join(expand(text, key)?))?;
        }
        Ok(())
    }

    /// Reads a table that stands at a dotted key of the file. If that fails, the error names the key that is wrong, or all
    /// keys that are missing. `also_missing` are keys that the schema does not require.
    fn parse<T: DeserializeOwned + JsonSchema>(
        &self,
        place: &str,
        table: Table,
        also_missing: &[&str],
    ) -> Result<T, Mistake> {
        table.clone().try_into().map_err(|error: toml::de::Error| {
            let mut faults = Faults::find(&Schema::of::<T>(), &table, place);
            if !faults.wrong.is_empty() {
                let fault = faults.wrong.swap_remove(0);
                let line = self.line(&fault.path, &table);
                return Mistake { error: problem(fault.message, fault.hint), path: fault.path, line };
            }
            if !faults.missing.is_empty() {
                faults.missing.extend(also_missing.iter().map(|key| (*key).to_owned()));
                let (message, hint) = faults.missing_message();
                return problem(message, hint).into();
            }
            // A rule that the schema does not know. The error names the key on a line of its own.
            let text = error.to_string();
            let key = text.lines().find_map(|line| line.strip_prefix("in `")?.strip_suffix('`'));
            let key = key.unwrap_or("the config");
            // An error of akin-core is its message and its hint, joined by a semicolon.
            let (message, hint) = match error.message().split_once("; ") {
                Some((message, hint)) => (message, hint.to_owned()),
                None => (error.message(), format!("correct `{key}`")),
            };
            problem(format!("`{key}`: {message}"), hint).into()
        })
    }

    /// The line of the file on which a setting stands, if its value is from the file and not from `--set`.
    fn line(&self, path: &[String], table: &Table) -> Option<usize> {
        let file: Table = toml::from_str(&self.text).ok()?;
        let place = usize::from(path.first().is_some_and(|section| COMMANDS.contains(&section.as_str())));
        let value = value_at(table, &path[place..]);
        (value_at(&file, path) == value).then(|| line_of(&self.text, path))?
    }
}

/// Writes the default kind into each table that has a default kind and does not name another.
fn name_kinds(table: &mut Table) {
    for (place, kind) in [
        ("sampler", setting_name(SamplerConfig::default())),
        ("optimizer.rule", setting_name(Rule::default())),
        ("schedule.curve", setting_name(Curve::default())),
    ] {
        if let Some(Value::Table(inner)) = find(table, place) {
            inner.entry("kind").or_insert(Value::String(kind));
        }
    }
}

/// Writes all numbers of the preprocessing into a config that only names it, or that leaves it to the backbone.
fn resolve_preprocessing(table: &mut Table) -> Result<()> {
    let Some(Value::Table(model)) = table.get_mut("model") else { return Ok(()) };
    let backbone = model.get("backbone").map(|backbone| backbone.clone().try_into::<BackboneConfig>());
    let given = model.get("preprocessing").map(|given| given.clone().try_into::<PreprocessingConfig>());
    // What cannot be read is reported with the rest of the config.
    let (Some(Ok(mut backbone)), Ok(given)) = (backbone, given.transpose()) else { return Ok(()) };
    let beside = onnx::complete(model, &mut backbone)?;
    let preprocessing = match (given, beside) {
        (None, Some(beside)) => beside,
        (given, beside) => {
            given.unwrap_or_default().resolve(&beside.unwrap_or_else(|| backbone.preprocessing()))?
        }
    };
    model.insert("preprocessing".into(), Value::try_from(&preprocessing)?);
    Ok(())
}

/// Writes the levels of a data set into a config that does not name them.
fn resolve_levels(table: &mut Table) {
    let Some(Value::Table(data)) = table.get_mut("data") else { return };
    // What cannot be read is reported with the rest of the config.
    let Some(Ok(kind)) = data.get("kind").and_then(Value::as_str).map(DataKind::named) else { return };
    let levels = kind.levels(data.contains_key("hierarchy"));
    if !levels.is_empty() && !data.contains_key("levels") {
        let levels = levels.iter().map(|&level| Value::from(level)).collect();
        data.insert("levels".into(), Value::Array(levels));
    }
}

/// What is wrong with a text that is not TOML, with a picture of the line unless that is too long to be looked at.
fn without_long_lines(error: &toml::de::Error) -> String {
    const LONG: usize = 400;
    let picture = error.to_string();
    match picture.lines().any(|line| line.len() > LONG) {
        // Its first line names the place.
        true => format!("{}: {}", picture.lines().next().unwrap_or_default(), error.message()),
        false => picture,
    }
}

/// `a.b=value`, or `a={ b = value }` → the key and the value. A value that is not TOML is a text.
fn parse_set(set: &str) -> Result<(String, Value)> {
    let Some((key, text)) = set.split_once('=') else {
        return Err(problem(
            format!("`--set {set}` has no `=`"),
            "write `--set SECTION.KEY=VALUE`, for example run.seed=1",
        ));
    };
    let (key, text) = (key.trim(), text.trim());
    let parsed = toml::from_str::<Table>(&format!("value = {text}")).ok().filter(|table| table.len() == 1);
    let value =
        parsed.and_then(|mut table| table.remove("value")).unwrap_or_else(|| Value::String(text.to_owned()));
    let section = !key.contains('.');
    if section && !value.is_table() || key.split('.').any(|part| part.trim().is_empty()) {
        return Err(problem(
            format!("`--set {set}` does not name a section and a key"),
            "write `--set SECTION.KEY=VALUE`, for example run.seed=1, or a whole section as a table",
        ));
    }
    Ok((key.to_owned(), value))
}

/// The key of a `--set`.
fn key_of(set: &str) -> &str {
    set.split('=').next().unwrap_or_default().trim()
}

/// Whether what is left of a dotted key after another one makes it that key, or one inside its table.
fn is_below(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('.')
}

fn find<'a>(table: &'a mut Table, key: &str) -> Option<&'a mut Value> {
    match key.split_once('.') {
        None => table.get_mut(key),
        Some((first, rest)) => find(table.get_mut(first)?.as_table_mut()?, rest),
    }
}

fn take(table: &mut Table, key: &str) {
    if let Some((place, last)) = key.rsplit_once('.')
        && let Some(Value::Table(inner)) = find(table, place)
    {
        inner.remove(last);
    }
}

/// Replaces every `${NAME}` by the environment variable of that name.
fn expand(text: &str, key: &str) -> Result<String> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, after)) = after.split_once('}') else {
            return Err(problem(format!("`{key}` is {text}, with `${{` but no `}}`"), "write ${NAME}"));
        };
        let value = env::var(name).ok().filter(|value| !value.is_empty()).ok_or_else(|| {
            problem(
                format!("`{key}` is {text}, but the environment variable {name} is not set"),
                format!("set it, for example `export {name}=/path/to/data`, or pass `--set {key}=…`"),
            )
        })?;
        expanded = expanded + before + &value;
        rest = after;
    }
    Ok(expanded + rest)
}

/// Whether a name can be that of a folder inside another.
fn is_folder_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name)
}

fn current_directory() -> Result<PathBuf> {
    env::current_dir()
        .advise(|| "the current directory cannot be found".into(), "change to a directory that exists")
}

fn utf8(path: &Path) -> Result<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        problem(
            format!("the path {} is not UTF-8", path.display()),
            "rename it: a config is UTF-8 text and cannot hold the path",
        )
    })
}
