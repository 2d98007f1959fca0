//! Counts and times as messages and tables show them.

use std::time::Duration;

/// A count with thousands separators: `12,345`.
pub fn count(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun: `1 image`, `2,000 images`.
pub fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// A large count in three digits, or more of the largest unit: `722 thousand`, `23.5 million`, `4.09 billion`.
pub fn rounded(number: u64) -> String {
    let (unit, name) = match number {
        0..1_000 => return number.to_string(),
        1_000..1_000_000 => (1e3, "thousand"),
        1_000_000..1_000_000_000 => (1e6, "million"),
        _ => (1e9, "billion"),
    };
    three_digits(number as f64 / unit, name)
}

/// Bytes in three digits, or more of the largest unit: `722 kB`, `23.5 MB`, `4.09 GB`.
pub fn rounded_bytes(bytes: u64) -> String {
    let (unit, name) = match bytes {
        0..1_000_000 => (1e3, "kB"),
        1_000_000..1_000_000_000 => (1e6, "MB"),
        _ => (1e9, "GB"),
    };
    three_digits(bytes as f64 / unit, name)
}

/// A time in two units: `45 s`, `12 min`, `3 h 20 min`, `2 d 4 h`.
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds.div_ceil(60)),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

fn three_digits(value: f64, unit: &str) -> String {
    if value >= 999.5 {
        return format!("{} {unit}", count(value.round() as usize));
    }
    let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_thousands_separators() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(counted(1, "class", "classes"), "1 class");
    }

    #[test]
    fn large_counts_have_three_digits() {
        let texts = [7, 722_496, 9_996_000, 23_508_032, 4_089_184_256].map(rounded);
        assert_eq!(texts, ["7", "722 thousand", "10.0 million", "23.5 million", "4.09 billion"]);
    }

    #[test]
    fn bytes_have_three_digits() {
        let texts = [70, 722_496, 9_996_000, 23_508_032, 8_710_000_000_000].map(rounded_bytes);
        assert_eq!(texts, ["0.07 kB", "722 kB", "10.0 MB", "23.5 MB", "8,710 GB"]);
    }

    #[test]
    fn times_have_two_units() {
        let texts = [5, 60, 61, 12_000, 187_200].map(|seconds| duration(Duration::from_secs(seconds)));
        assert_eq!(texts, ["5 s", "1 min", "2 min", "3 h 20 min", "2 d 4 h"]);
    }
}
