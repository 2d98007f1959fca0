//! Ancestors: the proxies of HIER under which an item and its kin meet.
//!
//! Among P proxies, the *lowest common ancestor* of items i and j is the one that is nearest to both (Kim et al.,
//! *HIER*, CVPR 2023, eq. 6, here without noise):
//!
//! ```text
//! ρ_ij = argmin_ρ max(d(i, ρ), d(j, ρ))
//! ```
//!
//! The ancestor of an item at level l is ρ_ij with j its nearest item of shared level l. From the finest level to the
//! coarsest these are the item's line of ancestors.

use crate::Result;
use crate::embeddings::Embeddings;
use crate::search::{Gallery, top_k};
use crate::similarity::Similarity;
use crate::taxonomy::Labels;

/// Items and proxies in one space.
#[derive(Clone, Debug)]
pub struct Ancestors<'a> {
    items: &'a Embeddings,
    labels: &'a Labels,
    gallery: Gallery,
    proxies: Gallery,
    proxy_points: &'a Embeddings,
}

impl<'a> Ancestors<'a> {
    /// Items [N, d] with their labels, and proxies [P, d], compared by `similarity`, whose scores stand for distances: a
    /// larger score is nearer.
    ///
    /// # Errors
    ///
    /// [`Kind::Embeddings`](crate::Kind::Embeddings) for points that the similarity is not defined for.
    pub fn new(
        items: &'a Embeddings,
        labels: &'a Labels,
        proxies: &'a Embeddings,
        similarity: Similarity,
    ) -> Result<Self> {
        Ok(Self {
            items,
            labels,
            gallery: Gallery::new(items, similarity)?,
            proxies: Gallery::new(proxies, similarity)?,
            proxy_points: proxies,
        })
    }

    /// The ancestor of an item at each level, [L], coarse to fine; ties go to the first proxy. `None` at a level at which
    /// no other item is kin of just that level; items whose shared level is not decided are left out.
    ///
    /// # Errors
    ///
    /// Proxies of another dimension.
    pub fn line(&self, item: usize) -> Result<Vec<Option<usize>>> {
        let scores = self.gallery.scores(self.items.row(item))?;
        let to_proxies = self.proxies.scores(self.items.row(item))?;
        let mut nearest: Vec<Option<usize>> = vec![None; self.labels.levels() + 1];
        for other in (0..scores.len()).filter(|&other| other != item) {
            let Some(level) = self.labels.shared(item, self.labels, other).level() else { continue };
            let best = &mut nearest[level];
            if best.is_none_or(|best| scores[other] > scores[best]) {
                *best = Some(other);
            }
        }
        let ancestor = |kin: &Option<usize>| match kin {
            None => Ok(None),
            Some(kin) => {
                let from_kin = self.proxies.scores(self.items.row(*kin))?;
                let both: Vec<f32> = to_proxies.iter().zip(&from_kin).map(|(a, b)| a.min(*b)).collect();
                Ok(top_k(&both, 1, None).first().map(|hit| hit.item))
            }
        };
        nearest[1..].iter().map(ancestor).collect()
    }

    /// The `k` items nearest to a proxy, or all if there are fewer; nearest first.
    ///
    /// # Errors
    ///
    /// Proxies of another dimension.
    pub fn nearest(&self, proxy: usize, k: usize) -> Result<Vec<usize>> {
        let hits = self.gallery.nearest(self.proxy_points.row(proxy), k, None)?;
        Ok(hits.into_iter().map(|hit| hit.item).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poincare::{Curvature, distance};
    use crate::random::{stream, uniform};
    use crate::taxonomy::shared_level;

    #[test]
    fn lines_equal_a_naive_transcription() {
        let curvature = Curvature::try_from(1.0).unwrap();
        let points = |seed, count: usize| {
            Embeddings::new(3, uniform(&mut stream(seed, "points", &[]), 3 * count, -0.55, 0.55)).unwrap()
        };
        let (items, proxies) = (points(1, 24), points(2, 9));
        let ids: Vec<u32> = (0..24).flat_map(|item| [item % 3, item % 12]).collect();
        let labels = Labels::new(2, ids).unwrap();
        let ancestors =
            Ancestors::new(&items, &labels, &proxies, Similarity::Poincare { curvature }).unwrap();
        let d = |x: &[f32], y: &[f32]| {
            let wide = |x: &[f32]| x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
            distance(&wide(x), &wide(y), curvature).unwrap()
        };
        let least = |count: usize, cost: &dyn Fn(usize) -> f64| {
            (0..count).min_by(|&a, &b| cost(a).total_cmp(&cost(b))).unwrap()
        };
        for i in 0..24 {
            let line = ancestors.line(i).unwrap();
            for level in 1..=2 {
                let kin: Vec<usize> = (0..24)
                    .filter(|&j| j != i && shared_level(labels.row(i), labels.row(j)) == level)
                    .collect();
                let j = kin[least(kin.len(), &|at| d(items.row(i), items.row(kin[at])))];
                let expected =
                    least(9, &|p| d(items.row(i), proxies.row(p)).max(d(items.row(j), proxies.row(p))));
                assert_eq!(line[level - 1], Some(expected), "item {i}, level {level}");
            }
        }
        for p in 0..9 {
            let expected = least(24, &|i| d(items.row(i), proxies.row(p)));
            assert_eq!(ancestors.nearest(p, 4).unwrap()[0], expected);
        }
    }

    #[test]
    fn a_level_without_kin_has_no_ancestor() {
        let items = Embeddings::new(1, vec![0.1, 0.2, 0.3]).unwrap();
        let labels = Labels::new(2, vec![0, 0, 0, 0, 1, 1]).unwrap();
        let proxies = Embeddings::new(1, vec![0.0, 0.25]).unwrap();
        let ancestors = Ancestors::new(&items, &labels, &proxies, Similarity::Euclidean).unwrap();
        assert_eq!(ancestors.line(0).unwrap(), [None, Some(1)]);
        assert_eq!(ancestors.line(2).unwrap(), [None, None]);
        assert_eq!(ancestors.nearest(1, 9).unwrap(), [1, 2, 0]);
    }
}
