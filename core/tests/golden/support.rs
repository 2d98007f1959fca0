//! Reads the golden files, compares, and reports file by file. Makes tensors of their inputs, in f64 on the CPU or in f32
//! on another device.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use akin_core::geometry::Geometry;
use akin_core::losses::{BuildLoss, LossContext};
use akin_core::taxonomy::Labels;
use burn::tensor::{DType, Device, Tensor, TensorData};
use serde_json::Value;

/// The tolerance for values that the references compute in f64.
pub(crate) const EXACT: f64 = 1e-9;
/// The tolerance for values that they compute in f32.
pub(crate) const SINGLE: f64 = 1e-5;
/// Losses and gradients are sums and differences of some hundred numbers near 1. This is their rounding, also where the
/// expected value is close to 0.
const ROUNDING: f64 = 1e-14;
/// The tolerance for values and gradients in f32. Losses divide differences of scores by temperatures down to 0.01.
const COARSE: f64 = 1e-3;
/// The rounding in f32, as [`ROUNDING`].
const COARSE_ROUNDING: f64 = 1e-5;
/// Half the width of a central difference: so small that an item hardly ever crosses the centre of a bin.
pub(crate) const STEP: f64 = 1e-8;
/// The tolerance of central differences.
const DIFFERENCES: f64 = 1e-5;

/// A function that runs one case of a file and compares its outputs.
pub(crate) type Check = fn(&Case, &mut Verdict);

/// The known files, each with its check.
pub(crate) type Checks = &'static [(&'static str, Check)];

/// One case of a golden file, with its `params`, `inputs` and `outputs`.
pub(crate) struct Case {
    name: String,
    value: Value,
}

impl Case {
    /// Its name in the file.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The value at a path such as `outputs/mean_stable/NDCG` (keys contain no slash).
    pub(crate) fn get(&self, path: &str) -> &Value {
        self.find(path).unwrap_or_else(|| panic!("case {:?} has no {path}", self.name))
    }

    /// The same, if it exists.
    pub(crate) fn find(&self, path: &str) -> Option<&Value> {
        path.split('/').try_fold(&self.value, |value, key| value.get(key))
    }

    /// All numbers at a path, with nested lists concatenated.
    pub(crate) fn numbers(&self, path: &str) -> Vec<f64> {
        numbers(self.get(path))
    }

    /// A list of lists of numbers at a path.
    pub(crate) fn rows(&self, path: &str) -> Vec<Vec<f64>> {
        let rows =
            self.get(path).as_array().unwrap_or_else(|| panic!("case {:?}: {path} is not a list", self.name));
        rows.iter().map(numbers).collect()
    }
}

/// All numbers of a value, with nested lists concatenated. The files write non-finite numbers as strings.
pub(crate) fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(values) => values.iter().flat_map(numbers).collect(),
        Value::String(text) => vec![text.parse().unwrap_or_else(|_| panic!("{text:?} is not a number"))],
        number => vec![number.as_f64().unwrap_or_else(|| panic!("{number} is not a number"))],
    }
}

/// A recorded output that is wrong, in the cases of this name, with any number after it.
pub(crate) struct Exception {
    pub file: &'static str,
    pub cases: &'static str,
    pub output: &'static str,
    pub why: &'static str,
}

/// The disagreements of a case.
pub(crate) struct Verdict {
    disagreements: Vec<String>,
    /// The exceptions of this case that have not been judged yet.
    exceptions: Vec<&'static Exception>,
    /// Whether every exception has to disagree. In files other than the repository's an output may agree by chance.
    strict: bool,
}

impl Verdict {
    /// Compares numbers, with a tolerance relative to the largest expected one. NaN agrees with NaN only.
    pub(crate) fn compare(&mut self, output: &str, expected: &[f64], got: &[f64], tolerance: f64) {
        let rounding = if is_coarse() { COARSE_ROUNDING } else { ROUNDING };
        self.disagreements.extend(disagreement(output, expected, got, precision(tolerance), rounding));
    }

    /// Compares a gradient with central differences of the value. These need f64.
    pub(crate) fn compare_slopes(&mut self, output: &str, differences: &[f64], got: &[f64]) {
        if is_coarse() {
            return;
        }
        let output = format!("{output} by central differences");
        self.disagreements.extend(disagreement(&output, differences, got, DIFFERENCES, ROUNDING / STEP));
    }

    /// As [`Self::compare`], unless the output is an [`Exception`]. Then central differences decide: they have to agree
    /// with our gradient and disagree with the recorded one.
    pub(crate) fn judge(
        &mut self,
        output: &str,
        expected: &[f64],
        got: &[f64],
        tolerance: f64,
        differences: &[f64],
    ) {
        let Some(place) = self.exceptions.iter().position(|exception| exception.output == output) else {
            return self.compare(output, expected, got, tolerance);
        };
        let why = self.exceptions.remove(place).why;
        if is_coarse() {
            return;
        }
        self.compare_slopes(output, differences, got);
        let agrees = disagreement(output, expected, differences, DIFFERENCES, ROUNDING / STEP).is_none();
        if agrees && self.strict {
            self.disagreements
                .push(format!("{output} agrees, but an exception says that it does not: {why}"));
        }
    }
}

/// Describes the first number that disagrees, and counts the others.
fn disagreement(
    output: &str,
    expected: &[f64],
    got: &[f64],
    tolerance: f64,
    rounding: f64,
) -> Option<String> {
    if expected.len() != got.len() {
        return Some(format!("{output}: expected {} numbers, got {}", expected.len(), got.len()));
    }
    let largest = expected.iter().filter(|x| x.is_finite()).fold(0f64, |largest, x| largest.max(x.abs()));
    let room = (tolerance * largest).max(rounding);
    let agree = |a: f64, b: f64| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= room;
    let mut wrong = (0..got.len()).filter(|&i| !agree(expected[i], got[i]));
    let first = wrong.next()?;
    let (more, expected, got) = (wrong.count(), expected[first], got[first]);
    Some(format!("{output}[{first}]: expected {expected:e}, got {got:e} (and {more} more)"))
}

/// Runs every known file of the folder, prints how many cases agree, and fails if any does not. The repository's folder
/// has to hold all known files and cases, and no others.
pub(crate) fn run(checks: Checks, exceptions: &'static [Exception]) {
    let folder = folder();
    let listing = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("the golden folder {} cannot be read: {error}", folder.display()));
    let names: BTreeSet<String> = listing
        .map(|entry| {
            entry.expect("a readable folder lists its files").file_name().to_string_lossy().into_owned()
        })
        .filter(|name| name.ends_with(".json"))
        .collect();
    // Not `println!`, whose output the test harness hides if the test passes.
    let mut out = std::io::stdout().lock();
    let mut say = |line: String| writeln!(out, "{line}").expect("stdout takes text");
    say(format!("\ngolden vectors of {}", folder.display()));

    let (mut covered, mut faults) = (0, Vec::new());
    let is_repository = std::env::var_os("AKIN_GOLDEN").is_none();
    if is_repository {
        let missing = checks.iter().filter(|(known, _)| !names.contains(*known));
        faults.extend(missing.map(|(known, _)| format!("{known} is missing")));
    }
    for name in &names {
        let Some((_, check)) = checks.iter().find(|(known, _)| known == name) else {
            say(format!("  {name}: not covered"));
            faults.extend(is_repository.then(|| format!("{name} is not covered")));
            continue;
        };
        covered += 1;
        let cases = read(&folder.join(name));
        let file_exceptions: Vec<&Exception> =
            exceptions.iter().filter(|exception| exception.file == name).collect();
        let concerns = |exception: &Exception, case: &Case| {
            case.name.trim_end_matches(|end: char| end.is_ascii_digit()) == exception.cases
        };
        let unknown =
            file_exceptions.iter().filter(|exception| !cases.iter().any(|case| concerns(exception, case)));
        let unknown = unknown.map(|exception| format!("{name} has no case {}", exception.cases));
        faults.extend(unknown.filter(|_| is_repository));
        let mut agreeing = 0;
        for case in &cases {
            let case_exceptions = file_exceptions.iter().filter(|exception| concerns(exception, case));
            let mut verdict = Verdict {
                disagreements: Vec::new(),
                exceptions: case_exceptions.copied().collect(),
                strict: is_repository,
            };
            check(case, &mut verdict);
            let Verdict { mut disagreements, exceptions, .. } = verdict;
            disagreements
                .extend(exceptions.iter().map(|exception| format!("{} is not judged", exception.output)));
            agreeing += usize::from(disagreements.is_empty());
            faults.extend(disagreements.into_iter().map(|fault| format!("{name}, {}: {fault}", case.name)));
        }
        say(format!("  {name}: {agreeing} of {} cases agree", cases.len()));
        for Exception { cases, output, why, .. } in file_exceptions {
            say(format!("    except {output} of {cases}: {why}"));
        }
    }
    assert!(covered > 0, "{} holds no golden file that is covered; set AKIN_GOLDEN", folder.display());
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

fn folder() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("core is in the workspace");
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

/// The loss for these labels, comparing embeddings by cosine.
pub(crate) fn init<S: BuildLoss>(config: &S, labels: &Labels) -> S::Loss {
    let classes = labels.classes();
    config.init(&LossContext::new(&classes, 16, &Geometry::Cosine, 0, &device())).unwrap()
}

/// Whether losses are computed in f32 on the device that `BURN_DEVICE` names, and not in f64 on the CPU.
fn is_coarse() -> bool {
    std::env::var_os("BURN_DEVICE").is_some()
}

/// A tolerance, or that of f32 where losses are computed in f32.
pub(crate) fn precision(tolerance: f64) -> f64 {
    if is_coarse() { tolerance.max(COARSE) } else { tolerance }
}

/// The type of the numbers in tensors.
pub(crate) fn dtype() -> DType {
    if is_coarse() { DType::F32 } else { DType::F64 }
}

/// The device, with gradients.
pub(crate) fn device() -> Device {
    let device = if is_coarse() { Device::default() } else { Device::flex() };
    device.autodiff()
}

/// The labels at a path. In the golden files the finest level comes first.
pub(crate) fn labels(case: &Case, path: &str) -> Labels {
    let rows: Vec<Vec<f64>> = if case.get(path)[0].is_array() {
        case.rows(path)
    } else {
        case.numbers(path).into_iter().map(|id| vec![id]).collect()
    };
    let ids = rows.iter().flat_map(|row| row.iter().rev().map(|&id| id as u32)).collect();
    Labels::new(rows[0].len(), ids).unwrap()
}

/// A matrix at a path.
pub(crate) fn tensor(case: &Case, path: &str) -> Tensor<2> {
    matrix(&case.rows(path))
}

/// A matrix.
pub(crate) fn matrix(rows: &[Vec<f64>]) -> Tensor<2> {
    let shape = [rows.len(), rows[0].len()];
    Tensor::from_data(TensorData::new(rows.concat(), shape), (&device(), dtype()))
}

/// The value of a loss.
pub(crate) fn scalar(value: &Tensor<1>) -> Vec<f64> {
    value.to_data().convert::<f64>().try_to_vec().unwrap()
}

/// The values of a matrix, row by row.
pub(crate) fn values(value: Tensor<2>) -> Vec<f64> {
    value.into_data().convert::<f64>().try_to_vec().unwrap()
}
