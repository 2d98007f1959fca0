//! Names that sound like Latin. They are pronounceable, unique and deterministic.

use std::collections::HashSet;

use rand::{Rng, RngExt, seq::IndexedRandom};

use crate::genome::{Genome, Pattern, Plan};

const ONSETS: [&str; 26] = [
    "b", "br", "c", "cr", "d", "dr", "f", "fl", "g", "gl", "l", "m", "n", "p", "ph", "pl", "r", "s", "sc",
    "st", "t", "tr", "v", "x", "z", "ch",
];
const VOWELS: [&str; 8] = ["a", "e", "i", "o", "u", "a", "o", "ae"];
const CODAS: [&str; 12] = ["l", "m", "n", "r", "c", "d", "t", "x", "rm", "nt", "st", "ps"];

/// The names given so far, so that none is given twice.
#[derive(Default)]
pub(crate) struct Names {
    given: HashSet<String>,
}

/// A genus: its stem, and the ending that the epithets of its species take.
#[derive(Clone, Debug)]
pub(crate) struct Genus {
    stem: String,
    gender: &'static str,
}

impl Genus {
    /// The genus of a new family.
    pub(crate) fn new(stem: String, rng: &mut impl Rng) -> Self {
        Self { stem, gender: ["us", "a", "um"].choose(rng).copied().unwrap_or("us") }
    }
}

impl Names {
    /// A new stem, such as "Vermal".
    pub(crate) fn stem(&mut self, rng: &mut impl Rng) -> String {
        for attempt in 0.. {
            let mut stem = String::new();
            // Longer stems when the short ones run out.
            for _ in 0..1 + rng.random_range(0..2) + attempt / 50 {
                stem += pick(&ONSETS, rng);
                stem += pick(&VOWELS, rng);
            }
            stem += pick(&ONSETS[..20], rng);
            stem += pick(&["a", "e", "i", "o", "u"], rng);
            stem += pick(&CODAS, rng);
            let stem = capitalised(&stem);
            if self.given.insert(stem.clone()) {
                return stem;
            }
        }
        unreachable!("the loop above has no end")
    }

    /// A stem that names the body plan, or a new stem if that one is taken.
    pub(crate) fn plan_stem(&mut self, plan: Plan, rng: &mut impl Rng) -> String {
        let prefix = pick(&["", "Neo", "Pseudo", "Para", "Eu", "Proto"], rng);
        let root = match plan {
            Plan::Beetle => "Scarab",
            Plan::Fish => "Pisc",
            Plan::Worm => "Verm",
            Plan::Snail => "Limac",
            Plan::Medusa => "Medus",
            Plan::Moth => "Papilion",
            Plan::Star => "Aster",
            Plan::Crab => "Cancr",
            Plan::Bird => "Passer",
            Plan::Newt => "Salamandr",
        };
        let stem = capitalised(&(prefix.to_owned() + root));
        if self.given.insert(stem.clone()) { stem } else { self.stem(rng) }
    }

    /// The name of a species: the genus and an epithet with its ending. The epithet describes the pattern while
    /// such epithets last.
    pub(crate) fn species(&mut self, genus: &Genus, genome: &Genome, rng: &mut impl Rng) -> String {
        let pattern: &[&str] = match genome.pattern {
            Pattern::Plain => &["simplex", "laev", "pur", "nud", "inornat"],
            Pattern::Spots => &["maculat", "punctat", "guttat", "pict"],
            Pattern::Bands => &["fasciat", "cinct", "annulat", "zonat"],
            Pattern::Stripes => &["vittat", "lineat", "striat", "virgat"],
            Pattern::Rings => &["ocellat", "argus", "circulat", "lunat"],
            Pattern::Chevrons => &["sagittat", "undulat", "fulgurat", "angulat"],
            Pattern::Saddle => &["dorsat", "pallid", "ephippiat", "bicolor"],
            Pattern::Freckles => &["pulverulent", "adspers", "aren", "granulat"],
        };
        const ANY: [&str; 24] = [
            "parv",
            "magn",
            "nan",
            "elegans",
            "ferox",
            "mirabilis",
            "dulcis",
            "tard",
            "velox",
            "timid",
            "curios",
            "nobilis",
            "vulgaris",
            "rar",
            "amoen",
            "jucund",
            "placid",
            "solitari",
            "nocturn",
            "alpin",
            "montan",
            "lacustris",
            "superb",
            "hirsut",
        ];
        for attempt in 0.. {
            let stem = match attempt {
                0..6 => pick(pattern, rng).to_owned(),
                6..40 => pick(&ANY, rng).to_owned(),
                _ => self.stem(rng).to_lowercase() + "i",
            };
            // Third-declension epithets keep their ending (close enough to Latin).
            let unchanged = ["ex", "or", "ans", "ox", "is", "us"].iter().any(|ending| stem.ends_with(ending));
            let epithet = if unchanged { stem } else { stem + genus.gender };
            let name = format!("{}{} {epithet}", genus.stem, genus.gender);
            if self.given.insert(name.clone()) {
                return name;
            }
        }
        unreachable!("the loop above has no end")
    }
}

/// The name of a class `above` levels above the species, from its stem.
pub(crate) fn class_name(stem: &str, above: usize) -> String {
    let ending = match above {
        1 => "idae",
        2 => "ida",
        3 => "aria",
        4 => "omorpha",
        _ => "ozoa",
    };
    format!("{stem}{ending}")
}

/// The names of the levels, coarse to fine.
pub(crate) fn levels(depth: usize) -> Vec<String> {
    const RANKS: [&str; 6] = ["kingdom", "phylum", "class", "order", "family", "species"];
    match depth {
        0..=6 => RANKS[6 - depth..].iter().map(|&rank| rank.to_owned()).collect(),
        _ => (1..=depth).map(|level| format!("rank {level}")).collect(),
    }
}

fn pick<'a>(words: &[&'a str], rng: &mut impl Rng) -> &'a str {
    words[rng.random_range(0..words.len())]
}

fn capitalised(word: &str) -> String {
    let lower = word.to_lowercase();
    lower[..1].to_uppercase() + &lower[1..]
}
