//! What certainties and thresholds promise, on random answers.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rand::RngExt;

use super::*;
use crate::embeddings::Embeddings;
use crate::random::stream;
use crate::similarity::Similarity;
use crate::taxonomy::Labels;

/// A case with these shares of votes, right down to a level.
fn case(shares: &[f64], right: usize) -> Case {
    let vote = |(place, &share): (usize, &f64)| Vote { level: place + 1, class: 0, share };
    Case { votes: shares.iter().enumerate().map(vote).collect(), best: Some(0.5), right, known: shares.len() }
}

/// Cases of two levels: shares from a small grid, so that many are tied, and any number of right levels.
fn any_cases() -> impl Strategy<Value = Vec<Case>> {
    let one = (1..=10u8, 1..=10u8, 0..=2usize).prop_map(|(a, b, right)| {
        let first = f64::from(a) / 10.0;
        case(&[first, first * f64::from(b) / 10.0], right)
    });
    prop::collection::vec(one, 1..300)
}

fn promises() -> impl Strategy<Value = Promise> {
    (0.5..=0.999).prop_map(|share| Promise::new(share).unwrap())
}

fn calibrated(cases: &[Case]) -> Calibration {
    Calibration::new(2, cases, |_| false).unwrap()
}

/// Queries of an exchangeable source: the votes of a level are right with the probability `truth(share)`.
fn drawn(count: usize, name: &str) -> Vec<Case> {
    let mut random = stream(7, name, &[]);
    (0..count)
        .map(|_| {
            let first: f64 = random.random_range(0.3..=1.0);
            let second = first * random.random_range(0.3..=1.0);
            let right = match (random.random_bool(first.sqrt()), random.random_bool(second.sqrt())) {
                (true, true) => 2,
                (true, false) => 1,
                _ => 0,
            };
            case(&[first, second], right)
        })
        .collect()
}

/// The tail of the binomial distribution by Pascal's triangle: the row of `n` trials, each with probability `p`.
fn naive_at_most(k: usize, n: usize, p: f64) -> f64 {
    let mut row = vec![1.0];
    for _ in 0..n {
        let mut next = vec![0.0; row.len() + 1];
        for (i, probability) in row.iter().enumerate() {
            next[i] += probability * (1.0 - p);
            next[i + 1] += probability * p;
        }
        row = next;
    }
    row.iter().take(k + 1).sum()
}

/// The threshold as the page of the module defines it: counts at every certainty, four sequences of tests.
fn naive_threshold(cases: &[Case], calibration: &Calibration, promise: Promise) -> Option<f64> {
    let mut candidates = Vec::new();
    for steps in &calibration.levels {
        for &certainty in &steps.certainties {
            if !candidates.contains(&certainty) {
                candidates.push(certainty);
            }
        }
    }
    candidates.sort_by(|a, b| b.partial_cmp(a).unwrap());
    let counts = |least: f64| {
        let (mut answered, mut wrong) = (0, 0);
        for case in cases {
            let mut reached = 0;
            for certain in calibration.certainties(&case.votes) {
                if certain.certainty >= least {
                    reached = certain.level;
                }
            }
            if reached > 0 {
                answered += 1;
                wrong += usize::from(reached > case.right);
            }
        }
        (answered, wrong)
    };
    let mut passed = Vec::new();
    for start in [16, 8, 4, 2] {
        let mut failed = false;
        for &candidate in &candidates {
            let (answered, wrong) = counts(candidate);
            if answered == 0 || answered * start < cases.len() {
                continue;
            }
            failed |= naive_at_most(wrong, answered, 1.0 - promise.share()) > 0.1 / 4.0;
            if !failed {
                passed.push(candidate);
            }
        }
    }
    passed.into_iter().reduce(f64::min)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_threshold_is_the_one_of_the_definition(cases in any_cases(), promise in promises()) {
        let calibration = calibrated(&cases);
        prop_assert_eq!(calibration.threshold(promise), naive_threshold(&cases, &calibration, promise));
    }

    #[test]
    fn a_certainty_is_a_share_that_never_rises_along_the_path(cases in any_cases()) {
        let calibration = calibrated(&cases);
        prop_assert_eq!(calibration.flaw(2), None);
        for case in &cases {
            let levels = calibration.certainties(&case.votes);
            prop_assert!(levels.iter().all(|level| (0.0..=1.0).contains(&level.certainty)));
            prop_assert!(levels.windows(2).all(|pair| pair[0].certainty >= pair[1].certainty));
        }
    }

    #[test]
    fn a_greater_promise_never_says_more(cases in any_cases(), a in promises(), b in promises()) {
        let calibration = calibrated(&cases);
        let (low, high) = if a < b { (a, b) } else { (b, a) };
        for case in &cases {
            let [low, high] = [low, high].map(|promise| calibration.answer(&case.votes, false, promise));
            prop_assert!(low.reached >= high.reached);
            prop_assert!(low.possible || !high.possible);
        }
    }

    #[test]
    fn votes_in_another_order_of_the_items_give_the_same_numbers(cases in any_cases()) {
        let reversed: Vec<Case> = cases.iter().rev().cloned().collect();
        prop_assert_eq!(calibrated(&cases), calibrated(&reversed));
    }

    #[test]
    fn the_counts_of_a_threshold_are_those_of_its_answers(cases in any_cases(), promise in promises()) {
        let calibration = calibrated(&cases);
        let outcome = Outcome::new(&cases, &calibration, None, promise);
        let stored = calibration.threshold(promise).map(|least| {
            let found = calibration.thresholds.iter().find(|threshold| threshold.certainty == least).unwrap();
            (found.answered, found.answered - found.wrong)
        });
        prop_assert_eq!((outcome.judged, outcome.right), stored.unwrap_or((0, 0)));
        prop_assert_eq!(outcome.reached.iter().sum::<usize>(), cases.len());
    }
}

#[test]
fn the_tail_of_the_binomial_is_that_of_pascals_triangle() {
    for (k, n, p) in [(0, 1, 0.5), (3, 10, 0.05), (10, 10, 0.2), (40, 500, 0.1), (0, 300, 0.001)] {
        assert!((at_most(k, n, p) - naive_at_most(k, n, p)).abs() < 1e-12, "{k} {n} {p}");
    }
    // Far from the mean of many trials it is 0 or 1, not NaN.
    assert_eq!(at_most(0, 1_000_000, 0.5), 0.0);
    assert!(at_most(600_000, 1_000_000, 0.5) > 0.999_999);
}

#[test]
fn exchangeable_queries_get_what_is_promised() {
    let queries = drawn(20_000, "queries");
    for share in [0.8, 0.9, 0.95] {
        let promise = Promise::new(share).unwrap();
        let (mut broken, mut coverage) = (0, 0.0);
        for gallery in 0..40 {
            let calibration = calibrated(&drawn(1_000, &format!("gallery {gallery}")));
            let outcome = Outcome::new(&queries, &calibration, None, promise);
            broken += usize::from(outcome.right_share().is_some_and(|right| right < share));
            coverage += outcome.coverage(1) / 40.0;
        }
        // Each gallery breaks it with a probability of at most 10 %; 9 of 40 or more have a probability of 2 %.
        assert!(broken <= 8, "{share}: {broken} of 40");
        // The promise is not kept by silence.
        assert!(share > 0.9 || coverage > 0.25, "{share}: {coverage}");
    }
}

#[test]
fn a_certainty_is_the_share_of_right_answers() {
    let calibration = calibrated(&drawn(20_000, "gallery"));
    let mut groups: BTreeMap<u64, (f64, f64, f64)> = BTreeMap::new();
    for case in drawn(20_000, "queries") {
        let certainty = calibration.levels[0].certainty(case.votes[0].share);
        let group = groups.entry(certainty.to_bits()).or_default();
        *group = (group.0 + 1.0, group.1 + f64::from(u8::from(case.right >= 1)), certainty);
    }
    assert!(groups.len() > 5);
    for (count, right, certainty) in groups.into_values() {
        let share = right / count;
        assert!((share - certainty).abs() < 0.05, "{share} of {count} at {certainty}");
    }
}

#[test]
fn a_small_gallery_promises_nothing_and_still_says_what_is_probable() {
    let cases = vec![case(&[1.0, 1.0], 2); 30];
    let calibration = calibrated(&cases);
    let answer = calibration.answer(&cases[0].votes, false, Promise::default());
    assert!(!answer.possible && answer.reached == 0);
    assert_eq!(answer.probable().map(|probable| probable.certainty), Some(31.0 / 32.0));
    // 0.95⁷² is the first power below 10 % / 4.
    let enough = calibrated(&vec![case(&[1.0, 1.0], 2); 72]);
    assert_eq!(enough.answer(&cases[0].votes, false, Promise::default()).reached, 2);
}

#[test]
fn nothing_is_said_of_what_nothing_is_like() {
    let calibration = calibrated(&vec![case(&[1.0, 1.0], 2); 200]);
    let answer = calibration.answer(&case(&[1.0, 1.0], 0).votes, true, Promise::default());
    assert!(answer.unlike && answer.reached == 0 && answer.probable().is_none());
}

#[test]
fn a_gallery_of_one_item_has_no_calibration() {
    let one = Embeddings::new(2, vec![1.0, 0.0]).unwrap();
    let labels = Labels::new(1, vec![0]).unwrap();
    let own = LeaveOneOut::new(&one, &labels, Similarity::Cosine).unwrap();
    assert!(own.calibration().is_none() && own.best_scores().is_none());
}

#[test]
fn a_gallery_of_one_class_is_sure_of_it() {
    let points = (0..300).flat_map(|item| [1.0, item as f32 * 1e-3]).collect();
    let gallery = Embeddings::new(2, points).unwrap();
    let labels = Labels::new(2, vec![0; 600]).unwrap();
    let own = LeaveOneOut::new(&gallery, &labels, Similarity::Cosine).unwrap();
    let calibration = own.calibration().unwrap();
    let outcome =
        Outcome::new(&own.cases, &calibration, own.best_scores().as_ref(), Promise::new(0.98).unwrap());
    assert_eq!(outcome.right, outcome.judged);
    assert_eq!(outcome.reached[2] + outcome.unlike, 300);
    assert!(outcome.unlike <= 3);
}

#[test]
fn a_sample_of_a_gallery_has_the_answers_of_its_items_in_the_whole_gallery() {
    let points = (0..100u16).flat_map(|item| [1.0, f32::from(item * item % 89)]).collect();
    let gallery = Embeddings::new(2, points).unwrap();
    let labels = Labels::new(1, (0..100).map(|item| item / 7).collect()).unwrap();
    let of = |most| LeaveOneOut::of_sample(&gallery, &labels, Similarity::Euclidean, most).unwrap().cases;
    let all = of(100);
    let tenth: Vec<_> = all.iter().step_by(10).cloned().collect();
    assert_eq!(of(10), tenth);
    assert_eq!(of(1000), all);
    assert!(of(0).is_empty());
}

#[test]
fn labels_that_do_not_tell_are_not_counted() {
    let known = |known, right| Case { known, ..case(&[1.0, 1.0], right) };
    assert_eq!(known(1, 1).is_right(2), None);
    assert_eq!(known(1, 0).is_right(2), Some(false));
    assert_eq!(known(1, 1).is_right(1), Some(true));
    assert_eq!(known(2, 1).is_right(0), None);
}

#[test]
fn promises_are_shares_from_a_half_to_999_in_1000() {
    for share in [0.4, 1.0, -1.0, f64::NAN] {
        assert!(Promise::new(share).is_err(), "{share}");
    }
    assert_eq!(Promise::new(99.9 / 100.0).unwrap().share(), 0.999);
}
