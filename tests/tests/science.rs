//! The scores and explanations that `tests/e2e/science.test.mjs` expects of the science module in the browser:
//! `tests/e2e/science.json` is what core computes natively.
//!
//! `AKIN_UPDATE=1 cargo test -p akin-tests --test science` rewrites the file. Without the variable the test fails when
//! the file differs.

use std::path::Path;
use std::{env, fs};

use akin_core::explanation::{Goal, PairRequest, RankedList, Scoring, order, pair, swaps, terms};
use akin_core::metrics::{
    Gain, asi, average_precision, hierarchical_ap, mistake_severity, ndcg, recall, weighted_ap,
};
use akin_core::ranking::TiePolicy;
use akin_core::relevance::Relevance;
use serde_json::{Value, json};

const RANDOM_RANKINGS: usize = 200;

/// Numbers that are always the same: the first bits of a linear congruential generator.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// A ranking with its settings, as a call of the module receives them.
struct Case {
    /// The example of the playground, if it is one. An example with two rankings has two cases.
    preset: Option<&'static str>,
    list: RankedList,
    relevance: Relevance,
    ties: TiePolicy,
    count_query: bool,
    from: usize,
    to: usize,
}

fn presets() -> Vec<Case> {
    let case = |preset, levels: &[usize], relevance: &Relevance| Case {
        preset: Some(preset),
        list: RankedList::new(3, levels.to_vec(), None).unwrap(),
        relevance: relevance.clone(),
        ties: TiePolicy::Stable,
        count_query: false,
        from: 1,
        to: 0,
    };
    let plain = Relevance::Plain { alpha: 1.0 };
    let (first, second) = ([2, 3, 0, 1, 3], [1, 3, 0, 2, 3]);
    let shared = Relevance::HierarchicalAp { alpha: 1.0 };
    let request = PairRequest {
        depth: 3,
        size: 17,
        average_precision: 0.9,
        h_ap: [0.94, 0.68],
        relevance: shared.checked(3).unwrap(),
    };
    let [high, low] = pair(&request).unwrap();
    vec![
        case("fig8-first", &first, &plain),
        case("fig8-second", &second, &plain),
        case("fig8", &first, &plain),
        case("fig8", &second, &plain),
        case("fig1", &high, &shared),
        case("fig1", &low, &shared),
    ]
}

/// A random ranking of up to 20 items; half of them have ties.
fn random(numbers: &mut Numbers) -> Case {
    let depth = 1 + numbers.below(4);
    let size = 1 + numbers.below(20);
    let levels = (0..size).map(|_| numbers.below(depth + 1)).collect();
    let tied = numbers.below(2) == 1;
    let mut group = 0;
    let ties = (0..size).map(|_| {
        group += usize::from(numbers.below(3) > 0);
        group
    });
    let ties: Vec<usize> = ties.collect();
    let alpha = numbers.below(9) as f64 / 4.0;
    let relevance = match numbers.below(3) {
        0 => Relevance::HierarchicalAp { alpha },
        1 => Relevance::Plain { alpha },
        _ => {
            let weights = (0..depth).map(|_| (1 + numbers.below(8)) as f64 / 8.0).collect();
            Relevance::WeightedAp { weights }
        }
    };
    let ties_policies = [TiePolicy::Stable, TiePolicy::Strict, TiePolicy::Optimistic, TiePolicy::Pessimistic];
    Case {
        preset: None,
        list: RankedList::new(depth, levels, tied.then_some(ties)).unwrap(),
        relevance,
        ties: ties_policies[numbers.below(4)],
        count_query: numbers.below(2) == 1,
        from: numbers.below(size),
        to: numbers.below(size),
    }
}

/// The call and what core computes for it.
fn expected(case: &Case) -> Value {
    let Case { list, .. } = case;
    let scoring = Scoring {
        relevance: case.relevance.checked(list.depth()).unwrap(),
        ties: case.ties,
        count_query: case.count_query,
    };
    let ranking = list.ranking(&scoring);
    let moved = list.moved(case.from, case.to).unwrap();
    let h_ap = |list: &RankedList| hierarchical_ap(&list.ranking(&scoring), &scoring.relevance);
    let swaps = swaps(list, &scoring, case.from, case.to).unwrap();
    let per_level = |value: &dyn Fn(usize) -> Option<f64>| (1..=list.depth()).map(value).collect::<Vec<_>>();
    json!({
        "preset": case.preset,
        "ranking": { "depth": list.depth(), "levels": list.levels(), "ties": list.tie_groups() },
        "settings": { "relevance": case.relevance, "ties": case.ties, "count_query": case.count_query },
        "scores": {
            "ap": per_level(&|level| average_precision(&ranking, level)),
            "h_ap": h_ap(list),
            "weighted_ap": weighted_ap(&ranking, &scoring.relevance),
            "ndcg": ndcg(&ranking, Gain::Exponential, None),
            "asi": asi(&ranking),
            "mistake_severity": mistake_severity(&ranking),
            "recall_at_1": per_level(&|level| recall(&ranking, level, 1)),
        },
        "h_ranks": terms(list, &scoring).iter().map(|term| term.h_rank).collect::<Vec<_>>(),
        "move": {
            "from": case.from,
            "to": case.to,
            "h_ap": h_ap(&moved),
            "levels": moved.levels(),
            "ties": moved.has_ties().then(|| moved.tie_groups()),
            "swaps": swaps.map(|swaps| swaps.iter().map(|swap| swap.delta).collect::<Vec<_>>()),
        },
        "orders": {
            "ideal": order(list, &scoring, Goal::Ideal),
            "best_same_ap": order(list, &scoring, Goal::BestSameAp),
            "worst_same_ap": order(list, &scoring, Goal::WorstSameAp),
        },
    })
}

#[test]
fn the_scores_that_the_browser_is_tested_against_are_those_of_core() {
    let mut numbers = Numbers(9);
    let mut some = |count: usize| (0..count).map(|_| random(&mut numbers)).collect::<Vec<Case>>();
    let (ordered, tied) = (some(RANDOM_RANKINGS), some(RANDOM_RANKINGS / 5));
    let shared = tied.into_iter().map(|case| Case { ties: TiePolicy::Shared, ..case });
    let cases: Vec<Case> = presets().into_iter().chain(ordered).chain(shared).collect();
    let lines: Vec<String> = cases.iter().map(|case| expected(case).to_string()).collect();
    let text = format!("[\n{}\n]\n", lines.join(",\n"));

    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("e2e/science.json");
    if env::var_os("AKIN_UPDATE").is_some() {
        fs::write(&file, &text).unwrap();
    }
    let recorded = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        recorded == text,
        "e2e/science.json differs from core; run `AKIN_UPDATE=1 cargo test -p akin-tests --test science`"
    );
}
