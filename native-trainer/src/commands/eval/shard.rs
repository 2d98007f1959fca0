//! An evaluation in parts: each scores some of the queries, on a machine of its own, and all together give the report.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use akin_base::files::{read_regular_file, write_atomic};
use akin_base::problem::{Advise, problem};
use akin_base::quantities::{count, counted};
use akin_core::digest::sha256;
use akin_core::evaluate::{EvaluationConfig, QueryScores, Report};
use anyhow::Result;
use serde::{Deserialize, Serialize};

/// A shard of the queries: `3/16` is the third of 16 parts of about equal size, in the order of the queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    /// From 1.
    number: usize,
    count: usize,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text
            .split_once('/')
            .and_then(|(number, count)| Some((number.parse().ok()?, count.parse().ok()?)));
        match numbers {
            Some((number, count)) if (1..=count).contains(&number) => Ok(Self { number, count }),
            _ => Err("write the number of the shard and how many there are, such as 3/16".into()),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.count)
    }
}

impl TryFrom<String> for Shard {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> Self {
        shard.to_string()
    }
}

impl Shard {
    /// Its queries, of `queries` in all.
    ///
    /// # Errors
    ///
    /// More shards than queries.
    pub fn queries(self, queries: usize) -> Result<Range<usize>> {
        if self.count > queries {
            return Err(problem(
                format!(
                    "there are {} and only {}",
                    counted(self.count, "shard", "shards"),
                    counted(queries, "query", "queries")
                ),
                "choose at most as many shards as queries",
            ));
        }
        // u128: the product of two sizes does not overflow.
        let start = |number: usize| (number as u128 * queries as u128 / self.count as u128) as usize;
        Ok(start(self.number - 1)..start(self.number))
    }
}

/// What every part of one evaluation has in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Whole {
    /// The version of `akin` that scores.
    pub akin: String,
    /// SHA-256 of the files of embeddings and labels, and of the options by which they are read.
    pub data: String,
    /// The names of the levels.
    pub levels: Vec<String>,
    /// The number of all queries.
    pub queries: usize,
    /// The number of items that each query ranks.
    pub ranked: usize,
    /// The settings.
    pub config: EvaluationConfig,
}

impl Whole {
    /// In what another evaluation differs from this one; none if it is the same.
    fn difference(&self, other: &Self) -> Option<&'static str> {
        let data = |whole: &Self| (whole.data.clone(), whole.queries, whole.ranked);
        let differences = [
            ("another version of akin", other.akin != self.akin),
            ("other data", data(other) != data(self)),
            ("other levels", other.levels != self.levels),
            ("other settings", other.config != self.config),
        ];
        differences.into_iter().find(|&(_, differs)| differs).map(|(what, _)| what)
    }
}

/// The file of one part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    kind: Mark,
    shard: Shard,
    #[serde(rename = "of")]
    whole: Whole,
    /// The scores of the shard's queries.
    scores: Vec<QueryScores>,
    /// The paths of the shard's queries; empty if there is no column of paths.
    paths: Vec<String>,
    /// SHA-256 of this part in JSON with an empty text here.
    sha256: String,
}

/// Tells a part from other JSON files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Mark {
    #[serde(rename = "akin evaluation part 2")]
    Part,
}

impl Part {
    /// The part of `shard`.
    pub fn new(shard: Shard, whole: Whole, scores: Vec<QueryScores>, paths: Vec<String>) -> Self {
        let part = Self { kind: Mark::Part, shard, whole, scores, paths, sha256: String::new() };
        Self { sha256: part.checksum(), ..part }
    }

    fn checksum(&self) -> String {
        let part = Self { sha256: String::new(), ..self.clone() };
        sha256(&serde_json::to_vec(&part).expect("a part has only texts and finite numbers"))
    }

    /// Writes the file, completely or not at all.
    pub fn write(&self, file: &Path) -> Result<()> {
        write_atomic(file, |out| Ok(serde_json::to_writer(out, self)?))
    }

    /// Reads a part.
    ///
    /// # Errors
    ///
    /// A file that is not a part, or a damaged one.
    pub fn read(file: &Path) -> Result<Self> {
        let bytes = read_regular_file(file)
            .advise(|| format!("{} cannot be read", file.display()), "check the path")?;
        let part: Self = serde_json::from_slice(&bytes).advise(
            || format!("{} is not a part of an evaluation, or is damaged", file.display()),
            "give the files that `akin eval … --shard … --out FILE` wrote",
        )?;
        if part.sha256 != part.checksum() {
            return Err(problem(
                format!("{} is damaged: its SHA-256 is not the one that it holds", file.display()),
                "evaluate that shard again",
            ));
        }
        let queries = part.shard.queries(part.whole.queries)?;
        if !part.scores.iter().map(|row| row.query).eq(queries.clone())
            || !(part.paths.is_empty() || part.paths.len() == queries.len())
        {
            return Err(problem(
                format!(
                    "{} does not hold the scores of its {}",
                    file.display(),
                    counted(queries.len(), "query", "queries")
                ),
                "evaluate that shard again",
            ));
        }
        Ok(part)
    }

    /// Refuses a part, read from `file`, unless it holds this shard of this evaluation.
    pub fn check_is(&self, shard: Shard, whole: &Whole, file: &Path) -> Result<()> {
        let other_shard = (self.shard != shard).then_some("another shard");
        match whole.difference(&self.whole).or(other_shard) {
            None => Ok(()),
            Some(what) => Err(problem(
                format!("{} is a part of another evaluation: {what}", file.display()),
                "choose another file, or pass `--overwrite` to replace it",
            )),
        }
    }
}

/// The report of the whole set, digit for digit as without shards, and the paths of its queries.
///
/// # Errors
///
/// A part is missing, stands twice, or is of another evaluation: of other data, settings or levels, or by another
/// version of `akin`.
pub fn merge(files: &[PathBuf]) -> Result<(Report, Vec<String>)> {
    let mut parts = Vec::new();
    for file in files {
        parts.push((file, Part::read(file)?));
    }
    parts.sort_by_key(|(_, part)| part.shard);
    let Some((first_file, first)) = parts.first().cloned() else {
        return Err(problem(
            "no part is given",
            "name the files that `akin eval … --shard … --out FILE` wrote",
        ));
    };
    let whole = first.whole;
    for (file, part) in &parts {
        let other_count = (part.shard.count != first.shard.count).then_some("another number of shards");
        if let Some(what) = whole.difference(&part.whole).or(other_count) {
            return Err(problem(
                format!(
                    "{} and {} are parts of different evaluations: {what}",
                    first_file.display(),
                    file.display()
                ),
                "merge the parts of one evaluation: the same files, options and version of akin for each shard",
            ));
        }
    }
    if whole.akin != env!("CARGO_PKG_VERSION") {
        return Err(problem(
            format!("the parts were made by akin {}, and this is {}", whole.akin, env!("CARGO_PKG_VERSION")),
            "merge them with the version that made them",
        ));
    }
    if let Some([(first, part), (second, _)]) =
        parts.array_windows().find(|[(_, first), (_, second)]| first.shard == second.shard)
    {
        return Err(problem(
            format!("{} and {} are both the shard {}", first.display(), second.display(), part.shard),
            "give each shard once",
        ));
    }
    let missing: Vec<String> = (1..=first.shard.count)
        .filter(|&number| !parts.iter().any(|(_, part)| part.shard.number == number))
        .map(|number| number.to_string())
        .collect();
    if !missing.is_empty() {
        return Err(problem(
            format!("of {} shards these are missing: {}", count(first.shard.count), missing.join(", ")),
            "evaluate them with `--shard`, and merge again",
        ));
    }
    let checked = whole.config.checked(whole.levels.len())?;
    let (scores, paths): (Vec<_>, Vec<_>) =
        parts.into_iter().map(|(_, part)| (part.scores, part.paths)).unzip();
    let report = Report::new(&whole.levels, &checked, whole.ranked, scores.concat());
    if report.overall.queries == 0 {
        return Err(problem(
            format!(
                "none of the {} shares a class with an item that it ranks",
                counted(whole.queries, "query", "queries")
            ),
            "check that queries and gallery use the same taxonomy, and that classes have at least two items",
        ));
    }
    Ok((report, paths.concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_a_number_of_so_many() {
        assert_eq!("3/16".parse(), Ok(Shard { number: 3, count: 16 }));
        for text in ["", "3", "0/4", "5/4", "1/0", "a/b", "-1/4", "1/4/8", "1.5/4"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }

    #[test]
    fn shards_hold_every_query_once_and_are_of_about_equal_size() {
        for (queries, shards) in [(10, 3), (5, 5), (1000, 16), (7, 1)] {
            let ranges: Vec<_> = (1..=shards)
                .map(|number| Shard { number, count: shards }.queries(queries).unwrap())
                .collect();
            assert!(ranges.iter().cloned().flatten().eq(0..queries));
            let sizes: Vec<usize> = ranges.iter().map(Range::len).collect();
            assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{sizes:?}");
        }
        assert!(Shard { number: 1, count: 6 }.queries(5).is_err());
    }
}
