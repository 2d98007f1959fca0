//! Maps: embeddings → points of a plane or of a disk, near where the embeddings are near.
//!
//! | method | what it keeps | crate |
//! |---|---|---|
//! | PCA (Hotelling, 1933) | the two directions of the largest variance; distances on the map are those of the shadow | `nalgebra` |
//! | t-SNE (van der Maaten and Hinton, 2008; Barnes-Hut, 2014) | who is near whom; sizes and gaps of groups mean nothing | `bhtsne` |
//! | UMAP (McInnes et al., 2018) | who is near whom, and which groups are neighbours | graph: `umap-rs`; layout: [`umap`] |
//! | Poincaré disk | hyperbolic embeddings: of two dimensions as they are, of more dimensions UMAP's graph, laid out in the hyperbolic plane | [`umap`] |
//!
//! Neighbours are those that the encoder's own similarity ranks first, and PCA sees the vectors that this similarity
//! compares: unit vectors for cosine, tangent vectors at the origin for the Poincaré ball, signs for codes.
//! Equal embeddings, similarity and seed give equal maps, whatever the number of threads.

mod neighbours;
mod pca;
mod tsne;
mod umap;

use akin_core::bundle::MapGeometry;
use akin_core::embeddings::Embeddings;
use akin_core::search::Gallery;
use akin_core::similarity::Similarity;
use anyhow::Result;
use clap::ValueEnum;

use akin_base::problem::problem;
use akin_base::progress::Progress;
use neighbours::Neighbours;

/// A way to draw embeddings as a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// The two directions of the largest variance.
    Pca,
    /// t-SNE.
    Tsne,
    /// UMAP.
    Umap,
    /// The Poincaré disk; only for encoders that embed into the Poincaré ball.
    Poincare,
}

impl Method {
    /// The name on the page.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pca => "PCA",
            Self::Tsne => "t-SNE",
            Self::Umap => "UMAP",
            Self::Poincare => "Poincaré disk",
        }
    }

    /// The name of the map's file.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Pca => "map-pca.f32",
            Self::Tsne => "map-tsne.f32",
            Self::Umap => "map-umap.f32",
            Self::Poincare => "map-poincare.f32",
        }
    }
}

/// A map of N embeddings.
pub struct Projection {
    /// The method.
    pub method: Method,
    /// How it was made and how to read it.
    pub description: String,
    /// The space that the points are in.
    pub geometry: MapGeometry,
    /// [N, 2].
    pub points: Vec<[f32; 2]>,
    /// The proxies among them, [P, 2]; only on the Poincaré disk.
    pub proxies: Option<Vec<[f32; 2]>>,
}

/// The fewest embeddings for t-SNE and UMAP, whose neighbourhoods mean nothing in smaller sets.
const FEWEST: usize = 16;

/// The maps of these embeddings, in the order of `methods`. On the Poincaré disk `proxies` of the same ball stand
/// among the embeddings, as in HIER's figures. Left out are the Poincaré disk of embeddings that are not
/// compared in the Poincaré ball, and t-SNE and UMAP of fewer than 16 embeddings.
///
/// # Errors
///
/// Embeddings that the similarity is not defined for, a map that is not finite, or a system without threads.
pub fn project(
    embeddings: &Embeddings,
    similarity: Similarity,
    proxies: Option<&Embeddings>,
    methods: &[Method],
    seed: u64,
    progress: Progress,
) -> Result<Vec<Projection>> {
    let curvature = match similarity {
        Similarity::Poincare { curvature } => Some(curvature),
        _ => None,
    };
    let is_disk = curvature.is_some() && embeddings.dimension() == 2;
    let is_possible = |method: &Method| match method {
        Method::Pca => true,
        Method::Tsne | Method::Umap => embeddings.len() >= FEWEST,
        Method::Poincare => is_disk || curvature.is_some() && embeddings.len() >= FEWEST,
    };
    let methods: Vec<Method> = methods.iter().copied().filter(is_possible).collect();
    let flat = pca::project(&neighbours::vectors(embeddings, similarity));
    let needs_neighbours = |method: &Method| match method {
        Method::Pca => false,
        Method::Tsne | Method::Umap => true,
        Method::Poincare => !is_disk,
    };
    let neighbours = methods
        .iter()
        .any(needs_neighbours)
        .then(|| Neighbours::new(embeddings, similarity, progress))
        .transpose()?;
    let mut maps = Vec::new();
    for method in methods {
        let mut proxy_points = None;
        let (description, geometry, points) = match (method, curvature, &neighbours) {
            (Method::Poincare, Some(curvature), _) if is_disk => {
                let scale = curvature.value().sqrt() as f32;
                let scaled = |points: &Embeddings| -> Vec<[f32; 2]> {
                    points.values().as_chunks::<2>().0.iter().map(|row| row.map(|x| x * scale)).collect()
                };
                let points = scaled(embeddings);
                proxy_points = proxies.map(scaled);
                (
                    "The ball has two dimensions, so that the map is the ball itself.".to_owned(),
                    MapGeometry::PoincareDisk,
                    points,
                )
            }
            (Method::Poincare, _, Some(neighbours)) => {
                let points = umap::project_to_disk(neighbours, &flat, seed, progress);
                proxy_points =
                    proxies.map(|proxies| among(embeddings, similarity, &points, proxies)).transpose()?;
                let description = format!(
                    "The neighbours of each point in the ball of {} dimensions, laid out in the hyperbolic plane. \
                     Who is near whom is kept; the distance to the centre is that of the layout, not of the embedding.{}",
                    embeddings.dimension(),
                    if proxies.is_some() {
                        " Each proxy stands at the mean of the 15 items nearest to it."
                    } else {
                        ""
                    }
                );
                (description, MapGeometry::PoincareDisk, points)
            }
            (Method::Tsne, _, Some(neighbours)) => {
                let points = tsne::project(neighbours, &flat.points, seed, progress)?;
                let description = format!(
                    "t-SNE with a perplexity of {:.0}. Near points are alike; the sizes of groups and the gaps between \
                     them say little.",
                    tsne::perplexity(neighbours)
                );
                (description, MapGeometry::Plane, points)
            }
            (Method::Umap, _, Some(neighbours)) => {
                let points = umap::project_to_plane(neighbours, &flat.points, seed, progress);
                let description = format!(
                    "UMAP with {} neighbours. Near points are alike, and groups that lie side by side are related; \
                     distances across the map say little.",
                    umap::NEIGHBOURS
                );
                (description, MapGeometry::Plane, points)
            }
            _ => {
                let description = format!(
                    "The plane of the largest variance, which holds {:.0} % of it. Near points may be far apart in \
                     the other dimensions.",
                    100.0 * flat.share
                );
                (description, MapGeometry::Plane, flat.points.clone())
            }
        };
        let drawn = points.iter().chain(proxy_points.iter().flatten());
        if drawn.flatten().any(|x: &f32| !x.is_finite()) {
            return Err(problem(
                format!("the map {} is not finite", method.name()),
                "leave it out of `--maps`, and please report this",
            ));
        }
        maps.push(Projection { method, description, geometry, points, proxies: proxy_points });
    }
    Ok(maps)
}

/// The points of proxies on a disk that has the points of the embeddings: the mean of the nearest ones.
fn among(
    embeddings: &Embeddings,
    similarity: Similarity,
    points: &[[f32; 2]],
    proxies: &Embeddings,
) -> Result<Vec<[f32; 2]>> {
    let gallery = Gallery::new(embeddings, similarity)?;
    let place = |proxy| {
        let nearest = gallery.nearest(proxies.row(proxy), umap::NEIGHBOURS, None)?;
        let around: Vec<[f32; 2]> = nearest.iter().map(|hit| points[hit.item]).collect();
        Ok(umap::mean_in_disk(&around))
    };
    (0..proxies.len()).map(place).collect()
}

#[cfg(test)]
mod tests {
    use akin_core::poincare::Curvature;
    use akin_core::random::{normal, stream};

    use super::*;

    const ALL: [Method; 4] = [Method::Pca, Method::Tsne, Method::Umap, Method::Poincare];

    /// `count` items of each of two clusters of `dimension` dimensions, one after the other.
    fn clusters(count: usize, dimension: usize, scale: f32) -> Embeddings {
        let mut rng = stream(7, "clusters", &[]);
        let mut values = normal(&mut rng, 2 * count * dimension, 0.15 * scale);
        for (row, values) in values.chunks_exact_mut(dimension).enumerate() {
            values[row / count] += scale;
        }
        Embeddings::new(dimension, values).unwrap()
    }

    fn maps(embeddings: &Embeddings, similarity: Similarity) -> Vec<Projection> {
        project(embeddings, similarity, None, &ALL, 3, Progress::None).unwrap()
    }

    /// The share of points whose nearest other point is of their own cluster.
    fn purity(points: &[[f32; 2]]) -> f64 {
        let count = points.len() / 2;
        let distance = |i: usize, j: usize| (points[i][0] - points[j][0]).hypot(points[i][1] - points[j][1]);
        let pure = |&i: &usize| {
            let others = (0..points.len()).filter(|&j| j != i);
            let nearest = others.min_by(|&j, &k| distance(i, j).total_cmp(&distance(i, k))).unwrap();
            i / count == nearest / count
        };
        (0..points.len()).filter(pure).count() as f64 / points.len() as f64
    }

    #[test]
    fn every_method_keeps_two_clusters_apart() {
        let curvature = Curvature::try_from(1.0).unwrap();
        let flat = clusters(60, 8, 1.0);
        let ball = clusters(60, 8, 0.4);
        for (embeddings, similarity, count) in [
            (&flat, Similarity::Cosine, 3),
            (&flat, Similarity::Euclidean, 3),
            (&flat, Similarity::Dot, 3),
            (&ball, Similarity::Poincare { curvature }, 4),
        ] {
            let maps = maps(embeddings, similarity);
            assert_eq!(maps.len(), count);
            for map in maps {
                assert_eq!(map.points.len(), 120);
                assert!(purity(&map.points) > 0.95, "{} {similarity:?}", map.method.name());
                if map.geometry == MapGeometry::PoincareDisk {
                    assert!(map.points.iter().all(|[x, y]| x.hypot(*y) < 1.0));
                }
            }
        }
    }

    #[test]
    fn maps_are_equal_whatever_the_number_of_threads() {
        let embeddings = clusters(80, 6, 0.3);
        let similarity = Similarity::Poincare { curvature: Curvature::try_from(1.0).unwrap() };
        let with_threads = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| maps(&embeddings, similarity))
        };
        for (first, second) in with_threads(1).iter().zip(with_threads(3)) {
            assert_eq!(first.points, second.points, "{}", first.method.name());
        }
    }

    #[test]
    fn a_disk_of_two_dimensions_is_drawn_as_it_is() {
        let embeddings = Embeddings::new(2, vec![0.0, 1.0, -0.5, 0.0]).unwrap();
        let curvature = Curvature::try_from(0.25).unwrap();
        let proxies = Embeddings::new(2, vec![1.0, 1.0]).unwrap();
        let maps = project(
            &embeddings,
            Similarity::Poincare { curvature },
            Some(&proxies),
            &[Method::Poincare],
            0,
            Progress::None,
        );
        let map = &maps.unwrap()[0];
        assert_eq!(map.points, [[0.0, 0.5], [-0.25, 0.0]]);
        assert_eq!(map.proxies, Some(vec![[0.5, 0.5]]));
    }

    #[test]
    fn a_proxy_lies_among_the_embeddings_that_it_is_near_to() {
        let embeddings = clusters(60, 8, 0.4);
        // One proxy for each cluster, near its middle.
        let middle = |cluster: usize| -> Vec<f32> {
            let rows = (0..60).map(|row| embeddings.row(60 * cluster + row));
            let sum = rows.fold(vec![0.0; 8], |sum, row| sum.iter().zip(row).map(|(s, x)| s + x).collect());
            sum.into_iter().map(|x: f32| x / 60.0).collect()
        };
        let proxies = Embeddings::new(8, [middle(0), middle(1)].concat()).unwrap();
        let similarity = Similarity::Poincare { curvature: Curvature::try_from(1.0).unwrap() };
        let maps = project(&embeddings, similarity, Some(&proxies), &ALL, 3, Progress::None).unwrap();
        for map in maps {
            let Some(proxies) = map.proxies else {
                assert_ne!(map.method, Method::Poincare);
                continue;
            };
            assert_eq!((map.points.len(), proxies.len()), (120, 2));
            for (cluster, proxy) in proxies.iter().enumerate() {
                let distance = |point: &[f32; 2]| (point[0] - proxy[0]).hypot(point[1] - proxy[1]);
                let nearest =
                    |&a: &usize, &b: &usize| distance(&map.points[a]).total_cmp(&distance(&map.points[b]));
                assert_eq!((0..120).min_by(nearest).unwrap() / 60, cluster);
                assert!(proxy[0].hypot(proxy[1]) < 1.0);
            }
        }
    }

    #[test]
    fn small_sets_and_equal_embeddings_have_maps_too() {
        for count in [1, 2, 15, 16, 40] {
            let same = Embeddings::new(3, [1.0, 0.0, 0.0].repeat(count)).unwrap();
            for similarity in [Similarity::Cosine, Similarity::Hamming] {
                let maps = maps(&same, similarity);
                assert_eq!(maps.len(), if count < FEWEST { 1 } else { 3 });
                assert!(maps.iter().all(|map| map.points.len() == count));
            }
        }
    }
}
