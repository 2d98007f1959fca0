//! Labels that are missing from a row of labels.

use akin_core::taxonomy::fill_from_parent;

use crate::config::Missing;

/// What a missing label is, and how it is written.
#[derive(Clone, Copy, Debug)]
pub struct MissingLabels<'a> {
    /// What becomes of it.
    pub policy: Missing,
    /// The words that stand for it, besides an empty label.
    pub words: &'a [String],
}

impl MissingLabels<'_> {
    /// Missing labels of a data set that has none.
    pub const REFUSED: Self = Self { policy: Missing::Refuse, words: &[] };

    /// Makes a row of `depth` labels, coarse → fine. An unknown label is empty in it.
    ///
    /// # Errors
    ///
    /// The place of a missing label that is refused: any if the policy says so, the first without a label above it to
    /// use, or the first of a row without any label.
    pub fn apply(self, labels: &mut Vec<String>, depth: usize) -> Result<(), usize> {
        labels.resize(depth.max(labels.len()), String::new());
        for label in labels.iter_mut().filter(|label| self.is_missing(label)) {
            label.clear();
        }
        if self.policy == Missing::Parent {
            fill_from_parent(labels, depth);
        }
        let missing = labels.iter().position(String::is_empty);
        match (self.policy, missing) {
            (Missing::Unknown, Some(_)) if labels.iter().any(|label| !label.is_empty()) => Ok(()),
            (_, Some(place)) => Err(place),
            (_, None) => Ok(()),
        }
    }

    fn is_missing(self, label: &str) -> bool {
        label.trim().is_empty() || self.words.iter().any(|word| stands_for_unknown(label, word))
    }
}

/// Words that people write for a label that they do not know.
pub const USUAL_WORDS: [&str; 10] =
    ["unknown", "unidentified", "undetermined", "indet.", "sp.", "spp.", "n/a", "na", "nan", "null"];

/// Whether a label is a word for an unknown label, or ends with one.
pub fn stands_for_unknown(label: &str, word: &str) -> bool {
    let same = |text: &str| text.to_lowercase() == word.to_lowercase();
    same(label.trim()) || label.split_whitespace().next_back().is_some_and(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(policy: Missing, row: &[&str]) -> Result<Vec<String>, usize> {
        let words = ["unknown", "not determined"].map(String::from);
        let mut labels: Vec<String> = row.iter().map(|&label| label.to_owned()).collect();
        MissingLabels { policy, words: &words }.apply(&mut labels, 3).map(|()| labels)
    }

    #[test]
    fn each_policy_treats_short_rows_empty_labels_and_words_alike() {
        for row in [
            &["a", "b"][..],
            &["a", "b", ""],
            &["a", "b", " "],
            &["a", "b", "b Unknown"],
            &["a", "b", "Not determined"],
        ] {
            assert_eq!(applied(Missing::Refuse, row), Err(2));
            assert_eq!(applied(Missing::Unknown, row).unwrap(), ["a", "b", ""]);
            assert_eq!(applied(Missing::Parent, row).unwrap(), ["a", "b", "b"]);
        }
        assert_eq!(applied(Missing::Refuse, &["a", "b", "determined"]).unwrap(), ["a", "b", "determined"]);
    }

    #[test]
    fn a_row_without_a_label_is_refused_by_every_policy() {
        for policy in [Missing::Refuse, Missing::Unknown, Missing::Parent] {
            assert_eq!(applied(policy, &["", "unknown", ""]), Err(0));
        }
        assert_eq!(applied(Missing::Parent, &["", "b", "c"]), Err(0));
        assert_eq!(applied(Missing::Unknown, &["", "b", ""]).unwrap(), ["", "b", ""]);
    }
}
