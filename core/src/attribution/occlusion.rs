//! Occlusion: how the score changes when a patch of a picture is covered (Zeiler and Fergus, *Visualizing and
//! Understanding Convolutional Networks*, ECCV 2014).

use crate::Result;
use crate::embeddings::Embeddings;
use crate::image::Pixels;
use crate::search::Gallery;
use crate::similarity::Similarity;

/// A picture, cut into a grid of patches that are covered one at a time with the picture's mean colour.
///
/// The picture is what the backbone sees, after resizing and cropping: [`Preprocessing::view`].
///
/// [`Preprocessing::view`]: crate::image::Preprocessing::view
#[derive(Clone, Debug)]
pub struct Occlusion {
    view: Pixels,
    mean: [u8; 3],
}

impl Occlusion {
    /// The number of rows, and of columns, of the grid.
    pub const SIDE: usize = 6;

    /// The patches of a picture.
    pub fn new(view: Pixels) -> Self {
        let pixels = view.data().as_chunks::<3>().0;
        let mean = [0, 1, 2].map(|channel| {
            let sum: u64 = pixels.iter().map(|pixel| u64::from(pixel[channel])).sum();
            // A mean of bytes is a byte.
            (sum as f64 / pixels.len() as f64).round() as u8
        });
        Self { view, mean }
    }

    /// The picture with each patch of a row covered, from left to right. Row 0 is the top.
    ///
    /// # Errors
    ///
    /// None for a picture of at least one pixel.
    pub fn row(&self, row: usize) -> Result<Vec<Pixels>> {
        (0..Self::SIDE).map(|column| self.covered(row, column)).collect()
    }

    fn covered(&self, row: usize, column: usize) -> Result<Pixels> {
        let (width, height) = (self.view.width() as usize, self.view.height() as usize);
        let between =
            |place: usize, length: usize| place * length / Self::SIDE..(place + 1) * length / Self::SIDE;
        let mut data = self.view.data().to_vec();
        for y in between(row, height) {
            for x in between(column, width) {
                data[3 * (y * width + x)..][..3].copy_from_slice(&self.mean);
            }
        }
        Pixels::new(self.view.width(), self.view.height(), data)
    }

    /// How much the score with `other` falls when a part is covered: for each covered picture, the score of the whole
    /// picture minus its own. `embedding`, [d], belongs to the whole picture, and `covered`, [N, d], has a row for each
    /// covered picture.
    ///
    /// # Errors
    ///
    /// [`Kind::Embeddings`](crate::Kind::Embeddings) for embeddings that do not fit each other or the similarity.
    pub fn falls(
        similarity: Similarity,
        embedding: &[f32],
        covered: &[f32],
        other: &[f32],
    ) -> Result<Vec<f32>> {
        let rows = Embeddings::new(other.len(), [embedding, covered].concat())?;
        let scores = Gallery::new(&rows, similarity)?.scores(other)?;
        Ok(scores[1..].iter().map(|score| scores[0] - score).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_patch_is_covered_once_with_the_mean_colour() {
        // 13 pixels do not divide by 6; the mean of red is 6, of green 100.
        let data: Vec<u8> = (0..13 * 13).flat_map(|place| [place % 13, 100, 7].map(|x| x as u8)).collect();
        let view = Pixels::new(13, 13, data).unwrap();
        let occlusion = Occlusion::new(view.clone());
        let mut times = vec![0; 13 * 13];
        for row in 0..Occlusion::SIDE {
            for covered in occlusion.row(row).unwrap() {
                for (place, (now, before)) in covered.data().chunks(3).zip(view.data().chunks(3)).enumerate()
                {
                    if now != before {
                        assert_eq!(now, [6, 100, 7]);
                        times[place] += 1;
                    }
                }
            }
        }
        // A pixel of the mean colour does not change when it is covered.
        assert!(times.iter().enumerate().all(|(place, &times)| times == usize::from(place % 13 != 6)));
    }

    #[test]
    fn a_fall_is_the_score_before_minus_the_score_after() {
        let falls = |similarity| {
            Occlusion::falls(similarity, &[1.0, 1.0], &[1.0, -1.0, 1.0, 1.0, -1.0, -1.0], &[2.0, 3.0])
                .unwrap()
        };
        assert_eq!(falls(Similarity::Hamming), [1.0, 0.0, 2.0]);
        assert_eq!(falls(Similarity::Dot), [6.0, 0.0, 10.0]);
    }
}
