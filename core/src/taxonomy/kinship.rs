//! Kinship: what classes share where one label path for each item does not say it.
//!
//! A tomato is a fruit and a vegetable. Such a taxonomy is a directed acyclic graph: a class may have several parents, and
//! a label path is one of its ways down from the root. Two items share the depth of their deepest common ancestor (the
//! representative lowest common ancestor of Bender et al. 2005, with the longest way from the root as depth). An ancestor
//! that both have is on a path of each, and the two paths agree down to it. So with P(x) for the label paths of x,
//!
//! ```text
//! l(q, x) = max over p ∈ P(q), r ∈ P(x) of l(p, r)
//! ```
//!
//! With one path each, this is the shared level of a tree. Where paths have unknown labels, each pair of paths shares an
//! interval; l(q, x) is at least the largest of their least levels, and at most the largest of their most.
//!
//! A symmetric matrix of classes says the same without a graph: Jaccard's index of label sets, the measures of Wu & Palmer
//! (1994) or Lin (1998), a difference of prices. Its different values above 0, in increasing order, are the *grades*
//! 1 … L. The grade of a pair takes the place of its shared level, and its value the place of l/L in
//! [`Relevance`](crate::relevance::Relevance).
//!
//! Kinship is no equivalence: the tomato shares a level with the apple and with the carrot, which share nothing. So what
//! needs one class per item and level, such as proxies, cannot use it. What compares pairs can.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{Labels, SharedInterval, Taxonomy, Tree, known_levels, shared_interval};
use crate::{Error, Kind, Result};

/// The most kinds of items. Their table takes 2 bytes for each pair: half a gigabyte.
pub const MOST_KINDS: usize = 16_384;
/// The most grades. The losses compute 2^L in single precision.
pub const MOST_GRADES: usize = 100;

/// The levels that any two kinds of items share. Items of one kind have the same label paths, or the same class of a
/// matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Kinship {
    kinds: usize,
    /// [kinds, kinds]: the least and the most level.
    shared: Vec<[u8; 2]>,
    origin: Stored,
}

/// What a kinship is made from, as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Stored {
    /// The label paths of each kind: rows of class ids.
    Paths(Vec<Vec<Vec<u32>>>),
    /// The relevance of each pair of classes.
    Matrix(Vec<Vec<f64>>),
}

impl TryFrom<Stored> for Kinship {
    type Error = Error;

    fn try_from(stored: Stored) -> Result<Self> {
        match stored {
            Stored::Paths(paths) => Self::of_paths(paths),
            Stored::Matrix(rows) => Self::of_matrix(rows),
        }
    }
}

impl From<Kinship> for Stored {
    fn from(kinship: Kinship) -> Self {
        kinship.origin
    }
}

impl Kinship {
    /// The kinship of items by their label paths.
    ///
    /// # Errors
    ///
    /// [`Kind::Taxonomy`] when there are more kinds than [`MOST_KINDS`], a kind has no path, or the paths have different
    /// lengths or more than 255 levels.
    pub(super) fn of_paths(paths: Vec<Vec<Vec<u32>>>) -> Result<Self> {
        check_kinds(paths.len(), "different sets of label paths")?;
        let levels = paths.iter().flatten().next().map_or(0, Vec::len);
        let is_whole = |path: &Vec<u32>| path.len() == levels && known_levels(path) > 0;
        let fits = paths.iter().all(|kind| !kind.is_empty() && kind.iter().all(is_whole));
        if !fits || levels > usize::from(u8::MAX) {
            return Err(Error::new(
                Kind::Taxonomy,
                format!("label paths of {levels} levels do not fit each other"),
                "give each item at least one path, and each path one label for each of at most 255 levels",
            ));
        }
        let shared = table(paths.len(), |a, b| {
            let pairs = paths[a].iter().flat_map(|p| paths[b].iter().map(|r| shared_interval(p, r)));
            let [least, most] =
                pairs.fold([0, 0], |[least, most], shared| [least.max(shared.least), most.max(shared.most)]);
            // Both are at most 255, as checked above.
            [least as u8, most as u8]
        });
        Ok(Self { kinds: paths.len(), shared, origin: Stored::Paths(paths) })
    }

    /// The kinship of classes by a matrix of their relevance, row by row: symmetric, finite and at least 0. Classes with
    /// the relevance 0 share nothing.
    ///
    /// # Errors
    ///
    /// [`Kind::Taxonomy`], naming the place, when the matrix is not so, or it has no value above 0, more than
    /// [`MOST_GRADES`] different ones, or more classes than [`MOST_KINDS`].
    pub fn of_matrix(rows: Vec<Vec<f64>>) -> Result<Self> {
        check_kinds(rows.len(), "classes")?;
        let refuse = |what: String, hint: &str| Err(Error::new(Kind::Taxonomy, what, hint));
        for (a, row) in rows.iter().enumerate() {
            if row.len() != rows.len() {
                return refuse(
                    format!(
                        "row {} of the relevance has {} values for {} classes",
                        a + 1,
                        row.len(),
                        rows.len()
                    ),
                    "give one value for each pair of classes",
                );
            }
            for (b, &value) in row.iter().enumerate() {
                if !value.is_finite() || value < 0.0 {
                    return refuse(
                        format!("the relevance of classes {} and {} is {value}", a + 1, b + 1),
                        "give finite numbers of at least 0; 0 is a stranger",
                    );
                }
                if value != rows[b][a] {
                    return refuse(
                        format!(
                            "the relevance of classes {} and {} is {value}, and {} the other way round",
                            a + 1,
                            b + 1,
                            rows[b][a]
                        ),
                        "give a symmetric matrix, such as the mean of it and its transpose",
                    );
                }
            }
        }
        let values = grades(&rows);
        if values.is_empty() || values.len() > MOST_GRADES {
            return refuse(
                format!("the relevance has {} different values above 0", values.len()),
                "give at least 1 and at most 100; round the values, to two digits for example",
            );
        }
        let shared = table(rows.len(), |a, b| {
            let grade = values.partition_point(|value| *value <= rows[a][b]) as u8;
            [grade, grade]
        });
        Ok(Self { kinds: rows.len(), shared, origin: Stored::Matrix(rows) })
    }

    /// The number of kinds of items.
    #[expect(clippy::len_without_is_empty, reason = "there is always a kind")]
    pub fn len(&self) -> usize {
        self.kinds
    }

    /// L: the length of the label paths, or the number of grades.
    fn levels(&self) -> usize {
        match &self.origin {
            Stored::Paths(paths) => paths[0][0].len(),
            Stored::Matrix(rows) => grades(rows).len(),
        }
    }

    /// The levels that items of two kinds may share.
    pub(super) fn shared(&self, a: u32, b: u32) -> SharedInterval {
        let [least, most] = self.shared[a as usize * self.kinds + b as usize];
        SharedInterval { least: usize::from(least), most: usize::from(most) }
    }

    /// The values of the grades 1 … L, in increasing order; `None` for label paths.
    pub fn grades(&self) -> Option<Vec<f64>> {
        match &self.origin {
            Stored::Paths(_) => None,
            Stored::Matrix(rows) => Some(grades(rows)),
        }
    }

    /// The label paths of a kind; none for a matrix.
    pub(super) fn paths(&self, kind: u32) -> &[Vec<u32>] {
        match &self.origin {
            Stored::Paths(paths) => &paths[kind as usize],
            Stored::Matrix(_) => &[],
        }
    }
}

impl Taxonomy {
    /// The taxonomy of labels with a matrix of relevance: every level has all classes.
    ///
    /// # Errors
    ///
    /// [`Kind::Taxonomy`] when a level or a class has no name or the name of another.
    pub fn of_grades(levels: &[String], classes: &[String]) -> Result<Self> {
        let parents = (0..levels.len()).map(|level| match level {
            0 => Vec::new(),
            _ => (0..classes.len() as u32).collect(),
        });
        let parents = parents.collect();
        Self::try_from(Tree {
            levels: levels.to_vec(),
            classes: vec![classes.to_vec(); levels.len()],
            parents,
        })
    }
}

impl Labels {
    /// The labels of items that may have several label paths each, as rows of class ids. See [`Kinship`]. If each has one,
    /// these are the labels of a tree.
    ///
    /// The row of an item is its path with the fewest known labels, the first of these.
    ///
    /// # Errors
    ///
    /// [`Kind::Taxonomy`] as for [`Labels::new`]; an item without a path; more than [`MOST_KINDS`] different sets of
    /// paths.
    pub fn from_paths(levels: usize, items: &[Vec<Vec<u32>>]) -> Result<Self> {
        let mut kinds: HashMap<Vec<Vec<u32>>, u32> = HashMap::new();
        let (mut paths, mut kind_of_item, mut ids) = (Vec::new(), Vec::new(), Vec::new());
        for item in items {
            let mut kind: Vec<Vec<u32>> = Vec::new();
            for path in item {
                if !kind.contains(path) {
                    kind.push(path.clone());
                }
            }
            kind.sort_by_key(|path| known_levels(path));
            ids.extend(kind.first().into_iter().flatten());
            let next = kinds.len() as u32;
            kind_of_item.push(*kinds.entry(kind).or_insert_with_key(|kind| {
                paths.push(kind.clone());
                next
            }));
        }
        let labels = Self::new(levels, ids)?;
        if paths.iter().all(|kind| kind.len() == 1) {
            return Ok(labels);
        }
        labels.with_kinship(Kinship::of_paths(paths)?.into(), kind_of_item)
    }

    /// The labels of items whose classes have a matrix of relevance: the class of each item, a row of the matrix. Every
    /// level of an item has the id of its class.
    ///
    /// # Errors
    ///
    /// [`Kind::Taxonomy`] when the matrix does not have one of the classes, or the kinship is not one of a matrix.
    pub fn from_grades(kinship: std::sync::Arc<Kinship>, classes: Vec<u32>) -> Result<Self> {
        let levels = kinship.grades().map_or(0, |grades| grades.len());
        let ids = classes.iter().flat_map(|&class| std::iter::repeat_n(class, levels)).collect();
        Self::new(levels, ids)?.with_kinship(kinship, classes)
    }

    /// These labels with the kinship of their items: the kind of each.
    ///
    /// # Errors
    ///
    /// [`Kind::Taxonomy`] when the kinship has other levels, it does not have one of the kinds, or there is not one for each
    /// item.
    pub fn with_kinship(mut self, kinship: std::sync::Arc<Kinship>, kinds: Vec<u32>) -> Result<Self> {
        let are_known = kinds.iter().all(|&kind| (kind as usize) < kinship.len());
        if kinds.len() != self.len() || !are_known || kinship.levels() != self.levels {
            return Err(Error::new(
                Kind::Taxonomy,
                format!(
                    "the kinship of {} kinds at {} levels does not fit {} items with labels of {} levels",
                    kinship.len(),
                    kinship.levels(),
                    self.len(),
                    self.levels
                ),
                "give each item one kind, counted from 0, and the kinship as many levels as the labels",
            ));
        }
        self.kin = Some(super::Kin { kinds, kinship });
        Ok(self)
    }

    /// The kinship of the items with the kind of each; `None` in a tree.
    pub fn kinship(&self) -> Option<(&std::sync::Arc<Kinship>, &[u32])> {
        self.kin.as_ref().map(|kin| (&kin.kinship, &kin.kinds[..]))
    }

    /// Whether each item has one label path.
    pub fn has_one_path(&self) -> bool {
        self.kin.is_none()
    }

    /// All label paths of item `i`.
    pub fn paths(&self, i: usize) -> Vec<&[u32]> {
        let paths = self.kin.as_ref().map_or(&[][..], |kin| kin.kinship.paths(kin.kinds[i]));
        match paths {
            [] => vec![self.row(i)],
            paths => paths.iter().map(Vec::as_slice).collect(),
        }
    }

    /// The levels that item `i` may share with item `j` of `others`, which has the same taxonomy.
    pub fn shared(&self, i: usize, others: &Self, j: usize) -> SharedInterval {
        self.sharing(i, others)(j)
    }

    /// The levels that item `i` may share with each item of `others`, which has the same taxonomy.
    #[inline]
    pub fn sharing<'a>(&'a self, i: usize, others: &'a Self) -> impl Fn(usize) -> SharedInterval + 'a {
        let row = self.row(i);
        let kin = self.kin.as_ref().zip(others.kin.as_ref());
        move |j| match kin {
            Some((kin, other)) => {
                let SharedInterval { least, most } = kin.kinship.shared(kin.kinds[i], other.kinds[j]);
                SharedInterval { least: least.min(self.levels), most: most.min(self.levels) }
            }
            None => shared_interval(row, others.row(j)),
        }
    }

    /// Whether two items share a level exactly if they have the same known class there: every label is known, and each item
    /// has one label path.
    pub fn are_classes(&self) -> bool {
        self.kin.is_none() && self.are_known()
    }
}

fn check_kinds(count: usize, what: &str) -> Result<()> {
    if (1..=MOST_KINDS).contains(&count) {
        return Ok(());
    }
    Err(Error::new(
        Kind::Taxonomy,
        format!(
            "there are {count} {what}, and a table of all pairs holds at least 1 and at most {MOST_KINDS}"
        ),
        "use a coarser level, or a tree, which has no limit",
    ))
}

/// The different values above 0, in increasing order.
fn grades(rows: &[Vec<f64>]) -> Vec<f64> {
    let mut values: Vec<f64> = Vec::new();
    for value in rows.iter().flatten().copied().filter(|value| *value > 0.0) {
        let place = values.partition_point(|other| *other < value);
        if values.get(place) != Some(&value) {
            values.insert(place, value);
            if values.len() > MOST_GRADES {
                break;
            }
        }
    }
    values
}

/// A symmetric table of all pairs of kinds.
fn table(kinds: usize, entry: impl Fn(usize, usize) -> [u8; 2]) -> Vec<[u8; 2]> {
    let mut table = vec![[0, 0]; kinds * kinds];
    for a in 0..kinds {
        for b in 0..=a {
            let shared = entry(a, b);
            table[a * kinds + b] = shared;
            table[b * kinds + a] = shared;
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::taxonomy::UNKNOWN;

    #[test]
    fn a_tomato_is_kin_to_fruit_and_to_vegetables_which_are_strangers() {
        let (apple, carrot) = (vec![vec![0, 0]], vec![vec![1, 1]]);
        let tomato = vec![vec![0, 2], vec![1, 3]];
        let labels = Labels::from_paths(2, &[apple, tomato.clone(), carrot, tomato]).unwrap();
        let shared = |i, j| labels.shared(i, &labels, j).level().unwrap();
        assert_eq!((shared(0, 1), shared(1, 2), shared(0, 2), shared(1, 3)), (1, 1, 0, 2));
        assert_eq!(labels.paths(1), [[0, 2], [1, 3]]);
        assert!(!labels.are_classes() && labels.are_known());
        let coarse = labels.up_to(1);
        assert_eq!(coarse.shared(1, &coarse, 3).level(), Some(1));
        assert_eq!(labels.select(&[2, 1]).shared(0, &labels, 3).level(), Some(1));
    }

    #[test]
    fn one_path_each_is_a_tree() {
        let paths = [vec![vec![0, 0]], vec![vec![1, UNKNOWN], vec![1, UNKNOWN]]];
        let labels = Labels::from_paths(2, &paths).unwrap();
        assert_eq!(labels, Labels::new(2, vec![0, 0, 1, UNKNOWN]).unwrap());
        assert!(Labels::from_paths(2, &[vec![]]).is_err());
    }

    #[test]
    fn the_values_of_a_matrix_are_grades() {
        let rows = vec![vec![1.0, 0.5, 0.0], vec![0.5, 1.0, 0.25], vec![0.0, 0.25, 1.0]];
        let kinship = Arc::new(Kinship::of_matrix(rows).unwrap());
        assert_eq!(kinship.grades().unwrap(), [0.25, 0.5, 1.0]);
        let labels = Labels::from_grades(Arc::clone(&kinship), vec![0, 1, 2, 1]).unwrap();
        let shared = |i, j| labels.shared(i, &labels, j).level().unwrap();
        assert_eq!([shared(0, 1), shared(0, 2), shared(1, 2), shared(1, 3)], [2, 0, 1, 3]);
        assert_eq!(labels.heights(), [0.25, 0.5, 1.0]);
        assert!(Labels::from_grades(Arc::clone(&kinship), vec![3]).is_err());
        let json = serde_json::to_string(&*kinship).unwrap();
        assert_eq!(serde_json::from_str::<Kinship>(&json).unwrap(), *kinship);
    }

    #[test]
    fn a_matrix_that_is_no_relevance_is_refused_with_its_place() {
        let fault = |rows: &[&[f64]]| {
            Kinship::of_matrix(rows.iter().map(|row| row.to_vec()).collect()).unwrap_err().to_string()
        };
        assert!(fault(&[&[1.0, 0.5], &[0.4, 1.0]]).contains("of classes 1 and 2 is 0.5, and 0.4"));
        assert!(fault(&[&[1.0, f64::NAN], &[f64::NAN, 1.0]]).contains("of classes 1 and 2 is NaN"));
        assert!(fault(&[&[-1.0]]).contains("is -1"));
        assert!(fault(&[&[1.0, 0.0]]).contains("row 1 of the relevance has 2 values for 1 classes"));
        assert!(fault(&[&[0.0]]).contains("has 0 different values above 0"));
        assert!(fault(&[]).contains("there are 0 classes"));
        let side = 102;
        let many: Vec<Vec<f64>> = (0..side).map(|a| (0..side).map(|b| (a * b) as f64).collect()).collect();
        assert!(Kinship::of_matrix(many).unwrap_err().to_string().contains("different values"));
        assert!(Kinship::of_matrix(vec![vec![]; 20_000]).unwrap_err().to_string().contains("at most 16384"));
    }

    /// A random graph of classes: class c has parents among the classes before it; none is the root.
    fn graphs() -> impl Strategy<Value = Vec<Vec<usize>>> {
        prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..3), 1..9).prop_map(
            |classes| {
                let parents = |(class, places): (usize, &Vec<prop::sample::Index>)| {
                    let mut parents: Vec<usize> = match class {
                        0 => Vec::new(),
                        _ => places.iter().map(|place| place.index(class)).collect(),
                    };
                    parents.sort_unstable();
                    parents.dedup();
                    parents
                };
                classes.iter().enumerate().map(parents).collect()
            },
        )
    }

    /// All ways from the root down to a class.
    fn ways(graph: &[Vec<usize>], class: usize) -> Vec<Vec<usize>> {
        if graph[class].is_empty() {
            return vec![vec![class]];
        }
        let above = graph[class].iter().flat_map(|&parent| ways(graph, parent));
        above
            .map(|mut way| {
                way.push(class);
                way
            })
            .collect()
    }

    proptest! {
        /// The naive reading: walk up from both classes, and take the deepest class that is above both.
        #[test]
        fn the_shared_level_is_the_depth_of_the_deepest_common_ancestor(graph in graphs()) {
            let all: Vec<Vec<Vec<usize>>> = (0..graph.len()).map(|class| ways(&graph, class)).collect();
            let depth = all.iter().flatten().map(Vec::len).max().unwrap();
            // The id of a path's node is the number of the way that leads to it.
            let mut nodes: HashMap<Vec<usize>, u32> = HashMap::new();
            let mut rows = |class: usize| {
                let row = |way: &Vec<usize>| {
                    let mut row = vec![UNKNOWN; depth];
                    for level in 0..way.len() {
                        let next = nodes.len() as u32;
                        row[level] = *nodes.entry(way[..=level].to_vec()).or_insert(next);
                    }
                    row
                };
                all[class].iter().map(row).collect::<Vec<_>>()
            };
            let paths: Vec<Vec<Vec<u32>>> = (0..graph.len()).map(&mut rows).collect();
            let labels = Labels::from_paths(depth, &paths).unwrap();
            let ancestors = |class: usize| all[class].iter().flatten().copied().collect::<HashSet<_>>();
            let depth_of = |class: usize| all[class].iter().map(Vec::len).max().unwrap();
            for a in 0..graph.len() {
                for b in 0..graph.len() {
                    let expected = ancestors(a).intersection(&ancestors(b)).map(|&c| depth_of(c)).max();
                    prop_assert_eq!(labels.shared(a, &labels, b).least, expected.unwrap_or(0));
                }
            }
        }
    }
}
