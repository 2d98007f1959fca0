//! Where it looks: which parts of two pictures carry their score.

use akin_bridge::{Result, misuse, thrown, to_js};
use akin_core::attribution::{Cells, Occlusion, ScoreParts};
use akin_core::embeddings::Embeddings;
use akin_core::image::decode;
use akin_core::search::Gallery;
use wasm_bindgen::prelude::*;

use crate::Engine;
use crate::messages::{Look, LookSide};

#[wasm_bindgen]
impl Engine {
    /// The score of two pictures, from their bytes, with what each cell of their grids adds to it where the score is
    /// such a sum: a [`Look`].
    ///
    /// # Errors
    ///
    /// A picture cannot be read, the encoder is not loaded, or the device fails.
    pub async fn look(&self, encoder: usize, query: Vec<u8>, item: Vec<u8>) -> Result<JsValue> {
        let similarity = self.similarity(encoder)?;
        let pictures = [decode(&query).map_err(thrown)?, decode(&item).map_err(thrown)?];
        let regions = [self.region(encoder, &pictures[0])?, self.region(encoder, &pictures[1])?];
        let query = self.outputs(encoder, &pictures[0]).await?;
        let item = self.outputs(encoder, &pictures[1]).await?;
        if !ScoreParts::exist(similarity) || !self.has_cells(encoder, &query)? {
            let embeddings = [self.embedding(encoder, query).await?, self.embedding(encoder, item).await?];
            let [q, x] = &embeddings;
            let gallery = Embeddings::new(x.len(), x.clone()).map_err(thrown)?;
            let scores =
                Gallery::new(&gallery, similarity).and_then(|gallery| gallery.scores(q)).map_err(thrown)?;
            let side = |at: usize| LookSide {
                rows: Occlusion::SIDE,
                columns: Occlusion::SIDE,
                region: regions[at],
                values: None,
                embedding: embeddings[at].clone(),
            };
            let (query, item) = (side(0), side(1));
            return Ok(to_js(&Look { score: f64::from(scores[0]), exact: false, query, item, pairs: None }));
        }
        let query = self.cells(encoder, query).await?;
        let item = self.cells(encoder, item).await?;
        let parts = ScoreParts::new(similarity, &query, &item).map_err(thrown)?;
        let parts = parts.ok_or_else(|| misuse("the score has no parts"))?;
        let side = |cells: &Cells, at: usize, values: Vec<f64>| LookSide {
            rows: cells.rows(),
            columns: cells.columns(),
            region: regions[at],
            values: Some(values),
            embedding: cells.embedding().iter().map(|&x| x as f32).collect(),
        };
        Ok(to_js(&Look {
            score: parts.score,
            exact: true,
            query: side(&query, 0, parts.query),
            item: side(&item, 1, parts.item),
            pairs: Some(parts.pairs),
        }))
    }

    /// By how much the score of two pictures falls when each patch of a row of one of them is covered, from left to
    /// right. `embedding` is that of `image`, `other` that of the other picture, both from [`look`](Self::look).
    ///
    /// # Errors
    ///
    /// As for `look`.
    pub async fn occlude(
        &self,
        encoder: usize,
        image: Vec<u8>,
        embedding: Vec<f32>,
        other: Vec<f32>,
        row: usize,
    ) -> Result<Vec<f32>> {
        let similarity = self.similarity(encoder)?;
        let picture = decode(&image).map_err(thrown)?;
        let covered = self.occluded(encoder, &picture, row).await?;
        Occlusion::falls(similarity, &embedding, &covered, &other).map_err(thrown)
    }
}
