//! Names that mean another metric in other tools.

use super::MetricEntry;

/// The metrics whose name means something else elsewhere, and what. The facts are those of the tools' code.
const ELSEWHERE: [(&str, &str); 8] = [
    ("ndcg", "scikit-learn and torchmetrics have the gain of `ndcg_linear`"),
    ("ndcg_linear", "scikit-learn and torchmetrics take the mean over all orders of ties"),
    ("hierarchical_precision", "in classification a name for the overlap of two paths of classes"),
    (
        "ap",
        "scikit-learn's is that of the ties `shared`; AP@k has the divisor min(k, R) in ml_metrics and Kaggle's rules, and \
         the number of positives found in torchmetrics and in codes for hashing",
    ),
    ("map_at_r", "MAP@k of recommenders has the divisor min(k, R), with one k for all queries"),
    ("recall", "in torchmetrics, scikit-learn and information retrieval recall@k is `true_recall@k`"),
    ("true_recall", "in metric learning recall@k is the hit rate `recall@k`"),
    (
        "precision",
        "the code of the revisited Oxford and Paris divides by the last positive's rank if that is below k",
    ),
];

impl MetricEntry {
    /// What the name of the metric means in other tools, if that is something else.
    pub fn elsewhere(&self) -> Option<&'static str> {
        ELSEWHERE.iter().find(|(name, _)| *name == self.name).map(|(_, text)| *text)
    }

    /// Its title and its formula, and what its name means elsewhere.
    pub fn definition(&self) -> String {
        let elsewhere = self.elsewhere().map_or_else(String::new, |text| format!(". Elsewhere: {text}"));
        format!("{}: {}{elsewhere}", self.title, self.formula)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::CATALOGUE;

    #[test]
    fn every_note_is_about_a_metric_and_says_so_once() {
        for (place, (name, _)) in ELSEWHERE.iter().enumerate() {
            assert!(CATALOGUE.iter().any(|entry| entry.name == *name), "{name}");
            assert!(ELSEWHERE[..place].iter().all(|(other, _)| other != name), "{name}");
        }
        let recall = CATALOGUE.iter().find(|entry| entry.name == "recall").unwrap();
        assert!(recall.definition().ends_with("recall@k is `true_recall@k`"), "{}", recall.definition());
    }
}
