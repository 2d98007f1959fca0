//! The ranges of settings as a unit cube: each range is an axis from 0 to 1, and a point is a choice of settings.

use std::collections::BTreeMap;

use akin_base::problem::{did_you_mean, problem};
use anyhow::Result;
use toml::{Table, Value};

use super::config::{RangeConfig, Scale};
use crate::comparison::compare::settings::repeated_value;
use crate::config::put;

/// The sections of a config whose settings can be tuned.
const SECTIONS: [&str; 6] = ["loss", "model", "optimizer", "schedule", "sampler", "augment"];

/// The most ranges, each of which is an axis of the Sobol sequence.
const MOST_RANGES: usize = 100;

/// Ranges of settings.
#[derive(Clone, Debug)]
pub struct Space {
    axes: Vec<(String, Axis)>,
}

/// The values of a setting.
#[derive(Clone, Debug)]
enum Axis {
    /// All numbers from min to max.
    Real { min: f64, max: f64, scale: Scale },
    /// The whole numbers from min to max.
    Whole { min: i64, max: i64, scale: Scale },
    /// These values.
    Values(Vec<Value>),
}

impl Space {
    /// The space of `[tune.ranges]`.
    ///
    /// # Errors
    ///
    /// No range, or too many; a key of another section; a range that is empty or has no end.
    pub fn new(ranges: &BTreeMap<String, RangeConfig>) -> Result<Self> {
        if ranges.is_empty() {
            return Err(problem(
                "the config has no ranges to tune",
                "add [tune.ranges] with a line such as \"optimizer.lr_head\" = { min = 1e-5, max = 1e-2, scale = \"log\" }",
            ));
        }
        if ranges.len() > MOST_RANGES {
            return Err(problem(
                format!("tune.ranges has {} settings", ranges.len()),
                format!("give at most {MOST_RANGES}"),
            ));
        }
        let axis = |(key, range): (&String, &RangeConfig)| {
            check_section(key)?;
            Ok((key.clone(), Axis::new(key, range)?))
        };
        Ok(Self { axes: ranges.iter().map(axis).collect::<Result<_>>()? })
    }

    /// The number of axes.
    pub fn dimension(&self) -> usize {
        self.axes.len()
    }

    /// The number of different settings; none if a range has real numbers.
    pub fn count(&self) -> Option<u64> {
        self.axes.iter().try_fold(1_u64, |count, (_, axis)| match axis {
            Axis::Real { .. } => None,
            Axis::Whole { min, max, .. } => Some(count.saturating_mul(max.abs_diff(*min).saturating_add(1))),
            Axis::Values(values) => Some(count.saturating_mul(values.len() as u64)),
        })
    }

    /// The keys of the settings, one for each axis.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.axes.iter().map(|(key, _)| key.as_str())
    }

    /// The settings at a point, as a table to lay over a config.
    ///
    /// # Errors
    ///
    /// A key that cannot be set.
    pub fn settings(&self, point: &[f64]) -> Result<Table> {
        let mut settings = Table::new();
        for ((key, axis), &place) in self.axes.iter().zip(point) {
            put(&mut settings, key, axis.value(place))?;
        }
        Ok(settings)
    }

    /// The value of each setting at a point, in the order of the keys.
    pub fn values(&self, point: &[f64]) -> Vec<Value> {
        self.axes.iter().zip(point).map(|((_, axis), &place)| axis.value(place)).collect()
    }

    /// The points at which each setting in turn has its first and its last value, or each of its values if they have no
    /// order. The others stand at their first.
    pub fn extremes(&self) -> Vec<Vec<f64>> {
        let mut points = vec![vec![0.0; self.axes.len()]];
        for (place, (_, axis)) in self.axes.iter().enumerate() {
            let others: Vec<f64> = match axis {
                Axis::Real { .. } | Axis::Whole { .. } => vec![1.0],
                Axis::Values(values) => {
                    (1..values.len()).map(|choice| (choice as f64 + 0.5) / values.len() as f64).collect()
                }
            };
            points.extend(others.into_iter().map(|other| {
                let mut point = vec![0.0; self.axes.len()];
                point[place] = other;
                point
            }));
        }
        points
    }

    /// The coordinates by which points are near or far from each other, each with the number of its axis. Points with
    /// equal settings have equal coordinates. Values without an order are at distance 1 from each other.
    pub fn coordinates(&self, point: &[f64]) -> Vec<(usize, f64)> {
        let mut coordinates = Vec::new();
        for (axis_number, ((_, axis), &place)) in self.axes.iter().zip(point).enumerate() {
            match axis {
                Axis::Real { min, max, scale } => {
                    let value = number(&axis.value(place)).unwrap_or(*min);
                    coordinates.push((axis_number, position(value, [*min, *max], *scale)));
                }
                Axis::Whole { min, max, scale } => {
                    let value = number(&axis.value(place)).unwrap_or(*min as f64);
                    coordinates.push((axis_number, position(value, [*min as f64, *max as f64], *scale)));
                }
                Axis::Values(values) => {
                    let chosen = choice(place, values.len());
                    let side = |other| if other == chosen { std::f64::consts::FRAC_1_SQRT_2 } else { 0.0 };
                    coordinates.extend((0..values.len()).map(|other| (axis_number, side(other))));
                }
            }
        }
        coordinates
    }
}

fn check_section(key: &str) -> Result<()> {
    let section = key.split('.').next().unwrap_or_default();
    if SECTIONS.contains(&section) && section != key {
        return Ok(());
    }
    Err(problem(
        format!("tune.ranges names `{key}`, which cannot be tuned"),
        format!(
            "{}name a key of {} in quotes, for example \"optimizer.lr_head\"",
            did_you_mean(section, SECTIONS),
            SECTIONS.join(", ")
        ),
    ))
}

const ONE_VALUE: &str = "to train with a single value, set it in its section";

impl Axis {
    fn new(key: &str, range: &RangeConfig) -> Result<Self> {
        let refuse = |fault: &str, hint: &str| Err(problem(format!("the range of `{key}` {fault}"), hint));
        let scale = range.scale.unwrap_or_default();
        let (min, max) = match (&range.min, &range.max, &range.values[..]) {
            (None, None, values @ [_, ..]) if range.scale.is_none() => {
                if let Some(value) = repeated_value(values) {
                    return refuse(&format!("has the value {value} twice"), "give each value once");
                }
                if let [value] = values {
                    return refuse(&format!("has only the value {value}"), ONE_VALUE);
                }
                return Ok(Self::Values(values.to_vec()));
            }
            (None, None, [_, ..]) => {
                return refuse("has both values and a scale", "remove the scale: values have no order");
            }
            (None, None, []) => {
                return refuse("is empty", "give it min and max, or values = […] with at least two values");
            }
            (_, _, [_, ..]) => {
                return refuse("has both values and min or max", "give it either values, or min and max");
            }
            (Some(min), Some(max), []) => (min, max),
            _ => return refuse("has only one end", "give it both min and max"),
        };
        let axis = match (min, max) {
            (&Value::Integer(min), &Value::Integer(max)) => Self::Whole { min, max, scale },
            _ => match (number(min), number(max)) {
                (Some(min), Some(max)) => Self::Real { min, max, scale },
                _ => {
                    return refuse(
                        "has an end that is no number",
                        "give min and max as numbers, or values = […]",
                    );
                }
            },
        };
        let (low, high) = match axis {
            Self::Whole { min, max, .. } => (min as f64, max as f64),
            Self::Real { min, max, .. } => (min, max),
            Self::Values(_) => (0.0, 1.0),
        };
        if !(low.is_finite() && high.is_finite() && (high - low).is_finite()) {
            return refuse("has no end", "give min and max as finite numbers");
        }
        if low >= high {
            return refuse(
                &format!("goes from {min} to {max}"),
                &format!("give max a larger value than min; {ONE_VALUE}"),
            );
        }
        if scale == Scale::Log && low <= 0.0 {
            return refuse(
                &format!("begins at {min} on a logarithmic scale"),
                "begin above 0, or use scale = \"linear\"",
            );
        }
        Ok(axis)
    }

    /// The value at a place from 0 to 1.
    fn value(&self, place: f64) -> Value {
        match self {
            Self::Real { min, max, scale } => {
                let value = match scale {
                    Scale::Linear => min + place * (max - min),
                    Scale::Log => (min.ln() + place * (max.ln() - min.ln())).exp(),
                };
                Value::Float(rounded(value, [*min, *max]).clamp(*min, *max))
            }
            Self::Whole { min, max, scale } => {
                // Each number has a stretch of its own, so that both ends are as likely as the others.
                let (low, high) = (*min as f64, *max as f64 + 1.0);
                let value = match scale {
                    Scale::Linear => low + place * (high - low),
                    Scale::Log => (low.ln() + place * (high.ln() - low.ln())).exp(),
                };
                Value::Integer((value.floor() as i64).clamp(*min, *max))
            }
            Self::Values(values) => values[choice(place, values.len())].clone(),
        }
    }
}

/// The number of the value at a place from 0 to 1, of `count` values.
fn choice(place: f64, count: usize) -> usize {
    ((place * count as f64) as usize).min(count - 1)
}

/// The place of a value between two ends, 0 … 1.
fn position(value: f64, [min, max]: [f64; 2], scale: Scale) -> f64 {
    match scale {
        Scale::Linear => (value - min) / (max - min),
        Scale::Log => (value.ln() - min.ln()) / (max.ln() - min.ln()),
    }
}

/// The value with the fewest digits that leave a range about a thousand values: four, and more in a range that is narrow
/// beside its ends.
fn rounded(value: f64, [min, max]: [f64; 2]) -> f64 {
    let narrowness = min.abs().max(max.abs()) / (max - min);
    // No number has more than 17 digits.
    let digits = 3 + narrowness.log10().ceil().clamp(0.0, 13.0) as usize;
    format!("{value:.digits$e}").parse().unwrap_or(value)
}

fn number(value: &Value) -> Option<f64> {
    value.as_float().or(value.as_integer().map(|whole| whole as f64))
}

#[cfg(test)]
mod tests {
    use akin_base::problem::parts;

    use super::*;

    fn space(ranges: &str) -> Result<Space> {
        Space::new(&toml::from_str(ranges).unwrap())
    }

    #[test]
    fn the_ends_of_the_cube_are_the_ends_of_the_ranges() {
        let space = space(
            "'loss.lambda' = { min = 0.5, max = 2 }\n'optimizer.lr_head' = { min = 1e-5, max = 1e-1, scale = 'log' }\n\
             'loss.every' = { min = 10, max = 80, scale = 'log' }\n'loss.kind' = { values = ['a', 'b', 'c'] }",
        )
        .unwrap();
        assert_eq!(
            space.keys().collect::<Vec<_>>(),
            ["loss.every", "loss.kind", "loss.lambda", "optimizer.lr_head"]
        );
        let shown = |place: f64| {
            let values: Vec<String> = space.values(&[place; 4]).iter().map(Value::to_string).collect();
            values.join(" ")
        };
        assert_eq!(shown(0.0), "10 \"a\" 0.5 0.00001");
        assert_eq!(shown(0.5), "28 \"b\" 1.25 0.001");
        assert_eq!(shown(1.0 - f64::EPSILON), "80 \"c\" 2.0 0.1");
        assert_eq!(shown(1.0), shown(1.0 - f64::EPSILON));
    }

    #[test]
    fn settings_are_counted_where_they_can_be() {
        let count = |ranges: &str| space(ranges).unwrap().count();
        assert_eq!(count("'loss.a' = { min = 1, max = 3 }\n'loss.b' = { values = ['x', 'y'] }"), Some(6));
        assert_eq!(count("'loss.a' = { min = 1, max = 3.0 }\n'loss.b' = { values = ['x', 'y'] }"), None);
        assert_eq!(count("'loss.a' = { min = -9223372036854775808, max = 0 }"), Some(1 << 63 | 1));
    }

    #[test]
    fn every_value_occurs_at_an_extreme() {
        let space = space("'loss.a' = { values = [1, 2, 3] }\n'loss.b' = { min = 0.0, max = 1.0 }").unwrap();
        let values: Vec<Vec<String>> = space
            .extremes()
            .iter()
            .map(|point| space.values(point).iter().map(Value::to_string).collect())
            .collect();
        assert_eq!(values, [["1", "0.0"], ["2", "0.0"], ["3", "0.0"], ["1", "1.0"]]);
    }

    #[test]
    fn equal_settings_have_equal_coordinates() {
        let rates = space("'loss.a' = { min = 1e-3, max = 1.0, scale = 'log' }").unwrap();
        assert_eq!(rates.values(&[0.5]), rates.values(&[0.500_001]));
        assert_eq!(rates.coordinates(&[0.5]), rates.coordinates(&[0.500_001]));
        let space = space("'loss.a' = { min = 1, max = 3 }\n'loss.b' = { values = [true, false] }").unwrap();
        assert_eq!(space.coordinates(&[0.35, 0.1]), space.coordinates(&[0.6, 0.4]));
        let distance = |a: &[f64], b: &[f64]| -> f64 {
            let pairs = space.coordinates(a).into_iter().zip(space.coordinates(b));
            pairs.map(|((_, a), (_, b))| (a - b).powi(2)).sum::<f64>().sqrt()
        };
        assert!((distance(&[0.0, 0.1], &[0.0, 0.9]) - 1.0).abs() < 1e-12, "two values");
        assert!((distance(&[0.0, 0.1], &[0.5, 0.1]) - 0.5).abs() < 1e-12, "1 and 2 of 1 … 3");
    }

    #[test]
    fn a_narrow_range_has_as_many_values_as_a_wide_one() {
        for ends in ["min = 0.9999, max = 0.99999", "min = 0.0, max = 1.0", "min = 1000.001, max = 1000.002"]
        {
            for scale in ["linear", "log"] {
                if scale == "log" && ends.contains("0.0,") {
                    continue;
                }
                let space =
                    space(&format!("'optimizer.ema_decay' = {{ {ends}, scale = '{scale}' }}")).unwrap();
                let mut values: Vec<String> = (0..200)
                    .map(|step| space.values(&[(f64::from(step) + 0.5) / 200.0])[0].to_string())
                    .collect();
                values.dedup();
                assert_eq!(values.len(), 200, "{ends}, {scale}");
            }
        }
    }

    #[test]
    fn ranges_without_a_meaning_are_refused() {
        for (ranges, message) in [
            ("", "no ranges"),
            ("'run.seed' = { min = 1, max = 2 }", "`run.seed`, which cannot be tuned"),
            ("'loss' = { values = [1] }", "`loss`, which cannot be tuned"),
            ("'loss.a' = {}", "is empty"),
            ("'loss.a' = { values = [] }", "is empty"),
            ("'loss.a' = { values = [1] }", "has only the value 1"),
            ("'loss.a' = { values = ['x', 'y', 'x'] }", "has the value \"x\" twice"),
            ("'loss.a' = { values = [1, 1.0] }", "has the value 1.0 twice"),
            ("'loss.a' = { min = 1 }", "only one end"),
            ("'loss.a' = { min = 2, max = 1 }", "goes from 2 to 1"),
            ("'loss.a' = { min = 1.0, max = 1.0 }", "goes from 1.0 to 1.0"),
            ("'loss.a' = { min = 0.0, max = inf }", "has no end"),
            ("'loss.a' = { min = nan, max = 1.0 }", "has no end"),
            ("'loss.a' = { min = 0.0, max = 1.0, scale = 'log' }", "begins at 0.0 on a logarithmic scale"),
            ("'loss.a' = { min = 'x', max = 1.0 }", "no number"),
            ("'loss.a' = { min = 1, max = 2, values = [1] }", "both values and min"),
            ("'loss.a' = { values = [1], scale = 'log' }", "both values and a scale"),
        ] {
            let (text, hint) = parts(&space(ranges).unwrap_err());
            assert!(text.contains(message) && hint.is_some(), "{ranges}: {text}");
        }
    }
}
