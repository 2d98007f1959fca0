//! Turns a miner's choice from a batch into the tensors and lists that losses use.

use burn::tensor::Tensor;

use super::{Batch, matrix, read_values};
use crate::Checked;
use crate::geometry::normalise;
use crate::miners::{Candidates, Mined, Miner};

impl Batch<'_> {
    /// The candidates of a miner: the cosines of embeddings and items, read from the device, without gradient.
    pub fn candidates(&self) -> Candidates {
        let items = self.items();
        let [_, dimension] = self.embeddings.dims();
        let queries = normalise(self.embeddings.clone().without_autodiff());
        let cosines = queries.matmul(normalise(items.embeddings.without_autodiff()).transpose());
        Candidates::from_labels(self.labels, items.labels, items.own, read_values(cosines), dimension)
    }

    /// The choice of this miner, with draws from the stream `miner`.
    pub fn mine(&self, miner: &Checked<Miner>) -> Mined {
        miner.mine(&self.candidates(), &mut self.draws.stream("miner"))
    }

    /// How often this miner chooses each pair: two matrices [B, M], positives and negatives.
    pub fn mined_pairs(&self, miner: &Checked<Miner>) -> [Tensor<2>; 2] {
        match **miner {
            Miner::All(_) => self.pairs(),
            _ => self.count_pairs(&self.mine(miner)),
        }
    }

    /// How often each pair was chosen: two matrices [B, M], positives and negatives.
    pub fn count_pairs(&self, mined: &Mined) -> [Tensor<2>; 2] {
        let shape = [self.labels.len(), self.items().labels.len()];
        [mined.positives(), mined.negatives()].map(|pairs| {
            let mut counts = vec![0.0; shape[0] * shape[1]];
            pairs.for_each(|(query, item)| counts[query * shape[1] + item] += 1.0);
            matrix(counts, shape, &self.embeddings)
        })
    }
}
