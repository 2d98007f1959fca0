//! A config file with `--set` values over it: from text to a table, and from there to a checked [`Config`].

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::{env, fs, path};

use anyhow::Result;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::Config;
use super::fault::{explain, place_of_fault};
use crate::problem::{Advise, problem};
use crate::recipes;

/// Keys of which one replaces the other when it comes from `--set`.
const ALTERNATIVES: [[&str; 2]; 2] =
    [["run.steps", "run.epochs"], ["schedule.warmup_steps", "schedule.warmup_epochs"]];

/// Sections that keep their keys under another `kind`, as nearly all of them mean the same there. Elsewhere the keys
/// beside a `kind` belong to it, and another kind begins without them.
const COMMON_KEYS: [&str; 3] = ["data", "optimizer", "schedule"];

/// Keys that hold paths.
const PATHS: [&str; 5] = ["run.out", "data.path", "data.images", "model.weights", "model.feature_cache"];

/// A config file with `--set` values over it, read but not yet a [`Config`].
pub struct Source {
    /// The file, or the name of a built-in recipe.
    file: PathBuf,
    text: String,
    /// Its paths are absolute.
    table: Table,
    compare: Table,
}

impl Source {
    /// Reads a file, or the built-in recipe of that name where there is no such file.
    ///
    /// # Errors
    ///
    /// A file that is not there or not TOML; a `--set` that is no assignment; an unset environment
    /// variable.
    pub fn read(file: &Path, sets: &[String]) -> Result<Self> {
        let shown = file.display();
        let text = match recipes::built_in(file) {
            Some(recipe) => recipe.text.to_owned(),
            None => fs::read_to_string(file).advise(
                || format!("the config {shown} cannot be read"),
                "check the path; `akin list recipes` names configs that are built in",
            )?,
        };
        let mut table: Table = toml::from_str(&text).map_err(|error| {
            let hint = "correct that line; tables are written [data], texts in double quotes";
            problem(format!("{shown} is not valid TOML\n{error}"), hint)
        })?;

        let mut given = HashSet::new();
        let mut sets = sets.iter().map(|set| parse_set(set)).collect::<Result<Vec<_>>>()?;
        // Whatever their order: a table, and another kind, drop what was there before, not what is set inside them.
        sets.sort_by_key(|(key, _)| (key.matches('.').count(), !key.ends_with(".kind")));
        for (key, value) in sets {
            for [one, other] in ALTERNATIVES.into_iter().chain(ALTERNATIVES.map(|[one, other]| [other, one]))
            {
                if key == one {
                    take(&mut table, other);
                }
            }
            put(&mut table, &key, value)?;
            given.insert(key);
        }
        let compare = match table.remove("compare") {
            None => Table::new(),
            Some(Value::Table(compare)) => compare,
            Some(_) => {
                return Err(problem(format!("{shown}: `compare` is not a section"), "write [compare]"));
            }
        };
        let mut source = Self { file: file.to_owned(), text, table: Table::new(), compare };
        source.resolve(&mut table, |key| given.contains(key))?;
        source.table = table;
        Ok(source)
    }

    /// What the file is called, without its ending.
    pub fn name(&self) -> String {
        self.file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The config of a run, with the values of `over` laid over those of the file.
    ///
    /// # Errors
    ///
    /// As [`Config::load`].
    pub fn config(&self, over: &Table) -> Result<Config> {
        let mut table = self.table.clone();
        table.entry("run").or_insert_with(|| Value::Table(Table::new()));
        lay_over(&mut table, over);
        self.resolve(&mut table, |_| false)?;
        let ranked_as_said = find(&mut table, "eval.similarity").is_some();
        let mut config: Config = self.parse(table)?;
        if !ranked_as_said && let Some(head) = &config.model.head {
            config.eval.similarity = head.geometry.similarity();
        }
        if config.run.name.is_empty() {
            config.run.name = self.name();
        }
        if config.run.out.as_os_str().is_empty() {
            config.run.out = current_directory()?.join("runs").join(&config.run.name);
        }
        config.validate()?;
        Ok(config)
    }

    /// Some of the sections of a config that may not be finished.
    ///
    /// # Errors
    ///
    /// As [`Config::load`], for that part.
    pub(super) fn part<T: DeserializeOwned>(&self) -> Result<T> {
        self.parse(self.table.clone())
    }

    /// The section `[compare]`.
    ///
    /// # Errors
    ///
    /// An unknown key or a value of the wrong type.
    pub fn compare<T: DeserializeOwned>(&self) -> Result<T> {
        self.parse(self.compare.clone())
    }

    /// Makes the paths of a config absolute.
    fn resolve(&self, table: &mut Table, from_here: impl Fn(&str) -> bool) -> Result<()> {
        let beside =
            path::absolute(self.file.parent().unwrap_or(Path::new(""))).or_else(|_| current_directory())?;
        for key in PATHS {
            let Some(Value::String(text)) = find(table, key) else { continue };
            let here = if from_here(key) { current_directory()? } else { beside.clone() };
            *text = utf8(&here.join(expand(text, key)?))?;
        }
        Ok(())
    }

    fn parse<T: DeserializeOwned>(&self, table: Table) -> Result<T> {
        table.clone().try_into().map_err(|error: toml::de::Error| {
            let (message, hint) = explain(error.message(), &place_of_fault::<T>(&table, &error));
            let place = self.line_of::<T>(&error).map(|line| format!(", line {line}")).unwrap_or_default();
            problem(format!("{}{place}: {message}", self.file.display()), hint)
        })
    }

    /// Where the file, as it stands without `--set`, has the same fault.
    fn line_of<T: DeserializeOwned>(&self, error: &toml::de::Error) -> Option<usize> {
        let in_file = toml::from_str::<T>(&self.text).err()?;
        let start = in_file.span().filter(|_| in_file.message() == error.message())?.start;
        Some(self.text.get(..start)?.matches('\n').count() + 1)
    }
}

/// `a.b=value`, or `a={ b = value }` → the key and the value; what is not TOML is a string.
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

/// Lays the values of one table over those of another. A table with a `kind` replaces the one below
/// it, where its keys belong to that kind.
pub fn lay_over(below: &mut Table, over: &Table) {
    for (key, value) in over {
        match (below.get_mut(key), value) {
            (Some(Value::Table(below)), Value::Table(over))
                if !over.contains_key("kind") || COMMON_KEYS.contains(&key.as_str()) =>
            {
                lay_over(below, over);
            }
            _ => {
                below.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Puts a value at a dotted key, in tables that are made where they are missing. Another `kind` than was there drops
/// the keys that belonged to that one.
///
/// # Errors
///
/// A part of the key that is there and not a table.
pub fn put(table: &mut Table, key: &str, value: Value) -> Result<()> {
    let (path, last) = key.rsplit_once('.').map_or((None, key), |(path, last)| (Some(path), last));
    let mut here = table;
    for part in path.into_iter().flat_map(|path| path.split('.')) {
        here = here.entry(part).or_insert_with(|| Value::Table(Table::new())).as_table_mut().ok_or_else(
            || {
                problem(
                    format!("`{key}` reaches into `{part}`, which is not a table"),
                    format!("set `{part}` itself"),
                )
            },
        )?;
    }
    if last == "kind"
        && !path.is_some_and(|path| COMMON_KEYS.contains(&path))
        && here.get(last).is_some_and(|before| *before != value)
    {
        here.clear();
    }
    here.insert(last.to_owned(), value);
    Ok(())
}

fn find<'a>(table: &'a mut Table, key: &str) -> Option<&'a mut Value> {
    let (section, key) = key.split_once('.')?;
    table.get_mut(section)?.as_table_mut()?.get_mut(key)
}

fn take(table: &mut Table, key: &str) {
    if let Some((section, key)) = key.split_once('.')
        && let Some(Value::Table(section)) = table.get_mut(section)
    {
        section.remove(key);
    }
}

/// Replaces every `${NAME}` by the environment variable of that name.
fn expand(text: &str, key: &str) -> Result<String> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, after)) = after.split_once('}') else {
            return Err(problem(format!("`{key}` has `${{` without `}}`: {text}"), "write ${NAME}"));
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

fn current_directory() -> Result<PathBuf> {
    env::current_dir()
        .advise(|| "the current directory is not there any more".into(), "change to one that is")
}

fn utf8(path: &Path) -> Result<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        problem(
            format!("the path {} is not UTF-8", path.display()),
            "use a path that is: a config is UTF-8 text",
        )
    })
}
