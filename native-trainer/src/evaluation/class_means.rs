//! The mean embedding of each finest class, and maps of these means (HAPPIER, figure 5).

use std::collections::BTreeMap;

use akin_base::progress::Progress;
use akin_core::embeddings::Embeddings;
use akin_core::evaluate::Labelled;
use akin_core::similarity::Similarity;
use akin_core::taxonomy::Labels;
use anyhow::Result;

use super::projection::{Method, Projection, project};

/// The mean embeddings of the finest classes that have an item. Items of unknown finest class have no part in them.
pub struct ClassMeans {
    /// [C, d].
    pub embeddings: Embeddings,
    /// [C, L]: the classes in the order of the tree. Classes of one parent stand together.
    pub labels: Labels,
}

impl ClassMeans {
    /// The means of the classes of these items.
    ///
    /// # Errors
    ///
    /// Embeddings whose sum is not finite.
    pub fn new(items: Labelled) -> Result<Self> {
        let Labelled { embeddings, labels } = items;
        let dimension = embeddings.dimension();
        // Paths sort as the tree does.
        let mut sums: BTreeMap<&[u32], (Vec<f32>, f32)> = BTreeMap::new();
        for item in (0..labels.len()).filter(|&item| labels.known(item) == labels.levels()) {
            let (sum, count) = sums.entry(labels.row(item)).or_insert_with(|| (vec![0.0; dimension], 0.0));
            sum.iter_mut().zip(embeddings.row(item)).for_each(|(sum, x)| *sum += x);
            *count += 1.0;
        }
        let values = sums.values().flat_map(|(sum, count)| sum.iter().map(move |x| x / count)).collect();
        let paths = sums.keys().flat_map(|path| path.iter().copied()).collect();
        Ok(Self {
            embeddings: Embeddings::new(dimension, values)?,
            labels: Labels::new(labels.levels(), paths)?,
        })
    }

    /// The maps of the means, as [`project`] draws them. `similarity` is that of the items.
    ///
    /// # Errors
    ///
    /// As for [`project`].
    pub fn project(
        &self,
        similarity: Similarity,
        methods: &[Method],
        seed: u64,
        progress: Progress,
    ) -> Result<Vec<Projection>> {
        // Means of opposite vectors are 0, which has no cosine.
        let similarity = match similarity {
            Similarity::Cosine | Similarity::Hamming => Similarity::Euclidean,
            other => other,
        };
        project(&self.embeddings, similarity, None, methods, seed, progress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_finest_class_has_the_mean_of_its_items_in_the_order_of_the_tree() {
        let embeddings = Embeddings::new(2, vec![0.0, 2.0, 1.0, 0.0, 4.0, 4.0, 3.0, 0.0]).unwrap();
        let labels = Labels::new(2, vec![1, 0, 0, 2, 1, 0, 0, 1]).unwrap();
        let items = Labelled { embeddings: &embeddings, labels: &labels };
        let means = ClassMeans::new(items).unwrap();
        assert_eq!(means.labels.ids(), [0, 1, 0, 2, 1, 0]);
        assert_eq!(means.embeddings.values(), [3.0, 0.0, 1.0, 0.0, 2.0, 3.0]);
    }

    #[test]
    fn a_mean_of_opposite_vectors_stands_on_the_map() {
        let embeddings = Embeddings::new(2, vec![1.0, 0.0, -1.0, 0.0, 0.0, 1.0]).unwrap();
        let labels = Labels::new(1, vec![0, 0, 1]).unwrap();
        let items = Labelled { embeddings: &embeddings, labels: &labels };
        let means = ClassMeans::new(items).unwrap();
        let maps = means.project(Similarity::Cosine, &[Method::Pca], 0, Progress::None).unwrap();
        assert_eq!(maps[0].points.len(), 2);
    }
}
