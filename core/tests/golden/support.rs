//! Reading the golden files, comparing, and reporting file by file.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// What runs one case of a file and compares its outputs.
pub(crate) type Check = fn(&Case, &mut Verdict);

/// The files that are covered, each with its check.
pub(crate) type Checks = &'static [(&'static str, Check)];

/// One case of a golden file: `params`, `inputs` and `outputs` as they stand there.
pub(crate) struct Case {
    name: String,
    value: Value,
}

impl Case {
    /// What stands at a path such as `outputs/mean_stable/NDCG` (keys hold no slash).
    pub(crate) fn get(&self, path: &str) -> &Value {
        self.find(path).unwrap_or_else(|| panic!("case {:?} has no {path}", self.name))
    }

    /// The same, where it need not be there.
    pub(crate) fn find(&self, path: &str) -> Option<&Value> {
        path.split('/').try_fold(&self.value, |value, key| value.get(key))
    }

    /// All numbers at a path, nested lists laid end to end.
    pub(crate) fn numbers(&self, path: &str) -> Vec<f64> {
        numbers(self.get(path))
    }

    /// A list of lists of numbers at a path.
    pub(crate) fn rows(&self, path: &str) -> Vec<Vec<f64>> {
        let rows =
            self.get(path).as_array().unwrap_or_else(|| panic!("case {:?}: {path} is no list", self.name));
        rows.iter().map(numbers).collect()
    }
}

/// All numbers of a value, nested lists laid end to end; the files write non-finite ones as strings.
pub(crate) fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(values) => values.iter().flat_map(numbers).collect(),
        Value::String(text) => vec![text.parse().unwrap_or_else(|_| panic!("{text:?} is no number"))],
        number => vec![number.as_f64().unwrap_or_else(|| panic!("{number} is no number"))],
    }
}

/// Where a case disagrees.
#[derive(Default)]
pub(crate) struct Verdict {
    disagreements: Vec<String>,
}

impl Verdict {
    /// Compares numbers within a tolerance relative to the largest expected one; NaN agrees with NaN only.
    pub(crate) fn compare(&mut self, output: &str, expected: &[f64], got: &[f64], tolerance: f64) {
        if expected.len() != got.len() {
            let lengths = format!("{output}: expected {} numbers, got {}", expected.len(), got.len());
            return self.disagreements.push(lengths);
        }
        let largest = expected.iter().filter(|x| x.is_finite()).fold(0f64, |largest, x| largest.max(x.abs()));
        let agree =
            |a: f64, b: f64| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= tolerance * largest;
        let mut wrong = (0..got.len()).filter(|&i| !agree(expected[i], got[i]));
        if let Some(first) = wrong.next() {
            let more = wrong.count();
            let (expected, got) = (expected[first], got[first]);
            self.disagreements
                .push(format!("{output}[{first}]: expected {expected:e}, got {got:e} (and {more} more)"));
        }
    }
}

/// Runs every known file of the folder, prints how many cases agree, and fails on any that does not.
pub(crate) fn run(checks: Checks) {
    let folder = folder();
    let listing = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("the golden folder {} cannot be read: {error}", folder.display()));
    let names: BTreeSet<String> = listing
        .map(|entry| {
            entry.expect("a readable folder lists its files").file_name().to_string_lossy().into_owned()
        })
        .filter(|name| name.ends_with(".json"))
        .collect();

    // Past the test harness, which swallows what `println!` says in a test that passes.
    let mut out = std::io::stdout().lock();
    let mut say = |line: String| writeln!(out, "{line}").expect("stdout takes text");
    say(format!("\ngolden vectors of {}", folder.display()));

    let mut faults = Vec::new();
    let mut covered = 0;
    for name in &names {
        let Some((_, check)) = checks.iter().find(|(known, _)| known == name) else {
            say(format!("  {name}: not covered"));
            continue;
        };
        covered += 1;
        let cases = read(&folder.join(name));
        let mut agreeing = 0;
        for case in &cases {
            let mut verdict = Verdict::default();
            check(case, &mut verdict);
            agreeing += usize::from(verdict.disagreements.is_empty());
            faults.extend(
                verdict.disagreements.into_iter().map(|fault| format!("{name}, {}: {fault}", case.name)),
            );
        }
        say(format!("  {name}: {agreeing} of {} cases agree", cases.len()));
    }
    assert!(covered > 0, "{} holds no golden file that is covered; set AKIN_GOLDEN", folder.display());
    assert!(faults.is_empty(), "{} outputs disagree:\n{}", faults.len(), faults.join("\n"));
}

fn folder() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("core lies in the workspace");
    root.join(std::env::var_os("AKIN_GOLDEN").unwrap_or_else(|| "tests/golden".into()))
}

fn read(path: &Path) -> Vec<Case> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let cases = file["cases"].as_array().unwrap_or_else(|| panic!("{} has no cases", path.display()));
    let case = |value: &Value| Case {
        name: value["case"].as_str().unwrap_or("unnamed").into(),
        value: value.clone(),
    };
    cases.iter().map(case).collect()
}
