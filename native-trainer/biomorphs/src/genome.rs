//! What a creature inherits: a body plan, a pattern, a palette, and 24 genes that drift.

use rand::{Rng, RngExt, seq::SliceRandom};

use crate::palette::{PALETTES, Palette};

/// The body plan: the kind of creature that the genes describe. It is dealt at the coarsest level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    Beetle,
    Fish,
    Worm,
    Snail,
    Medusa,
    Moth,
    Star,
    Crab,
    Bird,
    Newt,
}

impl Plan {
    /// All plans.
    pub(crate) const ALL: [Self; 10] = [
        Self::Beetle,
        Self::Fish,
        Self::Worm,
        Self::Snail,
        Self::Medusa,
        Self::Moth,
        Self::Star,
        Self::Crab,
        Self::Bird,
        Self::Newt,
    ];
}

/// The pattern on the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    Plain,
    Spots,
    Bands,
    Stripes,
    Rings,
    Chevrons,
    Saddle,
    Freckles,
}

impl Pattern {
    /// All patterns.
    pub(crate) const ALL: [Self; 8] = [
        Self::Plain,
        Self::Spots,
        Self::Bands,
        Self::Stripes,
        Self::Rings,
        Self::Chevrons,
        Self::Saddle,
        Self::Freckles,
    ];
}

/// A gene: a number in 0 … 1 that drifts from parent to child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gene {
    Girth,
    Taper,
    Head,
    Segments,
    LimbLength,
    LimbWidth,
    LimbCount,
    AntennaLength,
    AntennaShape,
    TailLength,
    TailShape,
    FinSize,
    FinShape,
    Curl,
    Ornament,
    EyeSize,
    EyeCount,
    Pupil,
    MarkSize,
    MarkDensity,
    MarkPhase,
    Hue,
    Lightness,
    Contrast,
}

/// How far each gene drifts in the coarse, the middle and the fine third of the tree: half the width of the
/// interval that siblings divide among themselves.
///
/// Shape drifts early and colour late, so colour tells species apart but does not show how they are related.
pub(crate) const DRIFT: [(Gene, [f32; 3]); 24] = [
    (Gene::Girth, [0.15, 0.40, 0.10]),
    (Gene::Taper, [0.15, 0.40, 0.08]),
    (Gene::Head, [0.15, 0.40, 0.10]),
    (Gene::Segments, [0.15, 0.42, 0.05]),
    (Gene::LimbLength, [0.15, 0.42, 0.10]),
    (Gene::LimbWidth, [0.15, 0.40, 0.08]),
    (Gene::LimbCount, [0.15, 0.42, 0.00]),
    (Gene::AntennaLength, [0.15, 0.42, 0.10]),
    (Gene::AntennaShape, [0.15, 0.45, 0.05]),
    (Gene::TailLength, [0.15, 0.40, 0.10]),
    (Gene::TailShape, [0.15, 0.45, 0.08]),
    (Gene::FinSize, [0.15, 0.40, 0.10]),
    (Gene::FinShape, [0.15, 0.45, 0.08]),
    (Gene::Curl, [0.15, 0.40, 0.06]),
    (Gene::Ornament, [0.10, 0.45, 0.10]),
    (Gene::EyeSize, [0.10, 0.30, 0.20]),
    (Gene::EyeCount, [0.10, 0.40, 0.00]),
    (Gene::Pupil, [0.10, 0.30, 0.30]),
    (Gene::MarkSize, [0.00, 0.20, 0.35]),
    (Gene::MarkDensity, [0.00, 0.20, 0.35]),
    (Gene::MarkPhase, [0.00, 0.30, 0.45]),
    (Gene::Hue, [0.00, 0.05, 0.45]),
    (Gene::Lightness, [0.00, 0.05, 0.45]),
    (Gene::Contrast, [0.00, 0.10, 0.40]),
];

/// The probability that a finest class has another pattern than its parent, so that strangers may look alike.
const PATTERN_SWITCH: f32 = 0.2;

/// Everything that a creature inherits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Genome {
    /// The body plan.
    pub(crate) plan: Plan,
    /// The pattern.
    pub(crate) pattern: Pattern,
    /// The index of the palette. All branches of the tree share the palettes, so strangers may have the same.
    pub(crate) palette: usize,
    genes: [f32; DRIFT.len()],
}

impl Genome {
    /// The root of every tree: each gene is 0.5.
    pub(crate) fn ancestor() -> Self {
        Self { plan: Plan::Beetle, pattern: Pattern::Plain, palette: 0, genes: [0.5; DRIFT.len()] }
    }

    /// The gene's value, 0 … 1.
    pub(crate) fn get(&self, gene: Gene) -> f32 {
        self.genes[gene as usize]
    }

    /// The gene's value, mapped to `low` … `high`.
    pub(crate) fn span(&self, gene: Gene, low: f32, high: f32) -> f32 {
        low + (high - low) * self.get(gene)
    }

    /// The gene's value as an integer in `low` … `high`; each takes an equal part of 0 … 1.
    pub(crate) fn count(&self, gene: Gene, low: usize, high: usize) -> usize {
        (low + (self.get(gene) * (high - low + 1) as f32) as usize).min(high)
    }

    /// All genes, in the order of [`Gene`].
    pub(crate) fn genes(&self) -> &[f32] {
        &self.genes
    }

    /// The turn of the hue, the change of lightness, and the contrast that the genes of a species decide.
    pub(crate) fn colour_shifts(&self) -> [f32; 3] {
        [
            self.span(Gene::Hue, -0.05, 0.05),
            self.span(Gene::Lightness, -0.16, 0.16),
            self.span(Gene::Contrast, 0.6, 1.0),
        ]
    }

    /// The colours of a species, without the variation of its individuals.
    pub(crate) fn species_palette(&self) -> Palette {
        let [hue, lightness, contrast] = self.colour_shifts();
        Palette::new(self.palette, hue, lightness, contrast)
    }

    /// How different two creatures are: the Euclidean distance of their genes, plus 1 for another plan, ½ for
    /// another pattern, ¼ for another palette.
    #[cfg(test)]
    pub(crate) fn distance(&self, other: &Self) -> f32 {
        let drift: f32 = self.genes.iter().zip(&other.genes).map(|(a, b)| (a - b).powi(2)).sum();
        drift.sqrt()
            + f32::from(self.plan != other.plan)
            + 0.5 * f32::from(self.pattern != other.pattern)
            + 0.25 * f32::from(self.palette != other.palette)
    }

    /// The children of this genome at `level` (1 = coarsest) of `depth` levels.
    ///
    /// Siblings divide the range of each gene among themselves: one in each of `count` equal parts, in random
    /// order. Two siblings therefore differ, even if there are few. Plans are dealt at the coarsest level,
    /// patterns half-way down, palettes at the finest level, each from a shuffled deck: siblings repeat none
    /// until all are used.
    pub(crate) fn children(&self, count: usize, level: usize, depth: usize, rng: &mut impl Rng) -> Vec<Self> {
        let mut children = vec![self.clone(); count];
        let mut order: Vec<usize> = (0..count).collect();
        for (gene, drift) in DRIFT {
            let scale = drift_at(drift, level, depth);
            order.shuffle(rng);
            for (child, &place) in children.iter_mut().zip(&order) {
                let step = 2.0 * (place as f32 + rng.random::<f32>()) / count as f32 - 1.0;
                child.genes[gene as usize] = reflect(self.get(gene) + scale * step);
            }
        }
        let plans = deal(Plan::ALL.len(), count, rng);
        let patterns = deal(Pattern::ALL.len(), count, rng);
        let palettes = deal(PALETTES.len(), count, rng);
        for (i, child) in children.iter_mut().enumerate() {
            if level == 1 {
                child.plan = Plan::ALL[plans[i]];
            }
            let switches = rng.random::<f32>() < PATTERN_SWITCH;
            if level == depth.div_ceil(2) || (level == depth && switches) {
                child.pattern = Pattern::ALL[patterns[i]];
            }
            if level == depth {
                child.palette = palettes[i];
            }
        }
        children
    }
}

/// The drift at one level. The three thirds lie on a line of length 3, which the levels divide equally.
/// Independent steps add by their squares, so a level takes its part of the square of each third.
fn drift_at(thirds: [f32; 3], level: usize, depth: usize) -> f32 {
    let width = 3.0 / depth as f32;
    let (start, end) = ((level - 1) as f32 * width, level as f32 * width);
    let square: f32 = thirds
        .iter()
        .enumerate()
        .map(|(third, scale)| {
            let overlap = (end.min(third as f32 + 1.0) - start.max(third as f32)).max(0.0);
            overlap * scale * scale
        })
        .sum();
    square.sqrt()
}

/// Reflects a number at 0 and 1 until it is between them, so that genes do not collect at the ends.
fn reflect(x: f32) -> f32 {
    let folded = x.rem_euclid(2.0);
    if folded > 1.0 { 2.0 - folded } else { folded }
}

/// `count` cards from a shuffled deck of `size`, which is dealt again from the start when it runs out.
fn deal(size: usize, count: usize, rng: &mut impl Rng) -> Vec<usize> {
    let mut deck: Vec<usize> = (0..size).collect();
    deck.shuffle(rng);
    deck.into_iter().cycle().take(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drift_lists_the_genes_in_order() {
        for (i, (gene, _)) in DRIFT.iter().enumerate() {
            assert_eq!(*gene as usize, i);
        }
    }

    #[test]
    fn three_levels_take_the_thirds_and_other_depths_keep_the_sum_of_squares() {
        let thirds = [0.1, 0.4, 0.2];
        for level in 1..=3 {
            assert!((drift_at(thirds, level, 3) - thirds[level - 1]).abs() < 1e-6);
        }
        for depth in 1..8 {
            let sum: f32 = (1..=depth).map(|level| drift_at(thirds, level, depth).powi(2)).sum();
            assert!((sum - 0.21).abs() < 1e-5, "depth {depth}: {sum}");
        }
    }

    #[test]
    fn genes_stay_between_0_and_1() {
        for x in [-3.2, -1.0, -0.2, 0.0, 0.4, 1.0, 1.3, 2.6] {
            assert!((0.0..=1.0).contains(&reflect(x)), "{x}");
        }
    }
}
