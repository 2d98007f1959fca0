//! t-SNE with the Barnes-Hut approximation.

use akin_base::problem::Advise;
use akin_base::progress::Progress;
use akin_base::threads::RAISE_LIMIT;
use akin_core::random::{normal, stream};
use anyhow::Result;
use bhtsne::{Neighbor, tSNE};
use rayon::ThreadPoolBuilder;

use super::neighbours::Neighbours;

const EPOCHS: usize = 750;
/// θ of Barnes-Hut: cells that look smaller than this are one point.
const THETA: f32 = 0.5;
/// The deviation of the initial points, as small as in the public codes: t-SNE then forms groups from all sides.
const SPREAD: f32 = 1e-4;

/// The perplexity: 30, or a third of the neighbours if there are fewer than 90.
pub(super) fn perplexity(neighbours: &Neighbours) -> f32 {
    (neighbours.per_item() as f32 / 3.0).clamp(1.0, 30.0)
}

/// The points of t-SNE, [N, 2], from the shrunken points of PCA. Needs at least one neighbour per item.
///
/// # Errors
///
/// The system gives no thread.
pub(super) fn project(
    neighbours: &Neighbours,
    start: &[[f32; 2]],
    seed: u64,
    progress: Progress,
) -> Result<Vec<[f32; 2]>> {
    let items: Vec<usize> = (0..neighbours.rows.len()).collect();
    let table: Vec<Vec<Neighbor<f32>>> = neighbours
        .rows
        .iter()
        .map(|row| row.iter().map(|&(index, distance)| Neighbor { index, distance }).collect())
        .collect();
    // Equal points would never part.
    let noise = normal(&mut stream(seed, "t-sne", &[]), 2 * items.len(), 0.01 * SPREAD);
    let scale = SPREAD / start.iter().map(|[x, _]| x.abs()).fold(f32::MIN_POSITIVE, f32::max);
    let initial: Vec<f32> = start.iter().flatten().zip(noise).map(|(x, noise)| x * scale + noise).collect();

    let bar = progress.bar("t-SNE", EPOCHS as u64);
    // The crate adds up forces in an order that depends on the number of threads, and t-SNE magnifies the rounding.
    let pool = ThreadPoolBuilder::new().num_threads(1).build();
    let pool = pool.advise(|| "the thread of t-SNE cannot be started".into(), RAISE_LIMIT)?;
    Ok(pool.install(|| {
        let mut tsne = tSNE::<f32, usize, 2>::new(&items);
        tsne.perplexity(perplexity(neighbours))
            .epochs(EPOCHS)
            .initial_embedding(initial)
            .epoch_callback(move |_, _| bar.advance(1))
            .barnes_hut_with_neighbors(THETA, &table);
        tsne.embedding().as_chunks::<2>().0.to_vec()
    }))
}
