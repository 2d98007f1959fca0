//! The label tree, the labels of a data set, and the level that two items share.
//!
//! Levels run coarse to fine: level 1 is the coarsest, level L the finest. Level 0 is the root: items that share only
//! the root have nothing in common. Column 0 of a label row is level 1.
//!
//! A label may be unknown from some level down: its id is [`UNKNOWN`] there. Unknown is not a class. The shared level of
//! two items is then an interval, see [`shared_interval`].
//!
//! An item may have several label paths, or its classes a matrix of relevance instead of a tree: see [`Kinship`].

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Error, Kind, Result};

mod filter;
mod kinship;

pub use filter::{Class, Filter};
pub use kinship::{Kinship, MOST_GRADES, MOST_KINDS};

/// Whether two equal labels of one level are the same class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClassIdentity {
    /// Equal names are one class, which must have one parent.
    #[default]
    Name,
    /// A class is its whole label path: `Apple / Gala` and `Pear / Gala` are two classes.
    Path,
}

/// The class id of a label that is not known.
///
/// Unknown labels are the last of a row: an item whose family is known and whose genus is not has no known species.
/// Two unknown labels are not equal.
pub const UNKNOWN: u32 = u32::MAX;

/// A tree of classes with L levels.
///
/// Classes of a level are numbered from 0 in the order in which they first appear.
///
/// ```
/// use akin_core::taxonomy::{ClassIdentity, Taxonomy, shared_level};
///
/// let levels = ["kind", "variety"].map(String::from);
/// let rows = [vec!["apple", "gala"], vec!["apple", "fuji"], vec!["pear", "kaiser"]];
/// let (taxonomy, labels) = Taxonomy::from_rows(&levels, &rows, ClassIdentity::Name)?;
///
/// assert_eq!(taxonomy.class_name(2, 1), "fuji");
/// assert_eq!(taxonomy.parent(2, 1), Some(0));
/// assert_eq!(shared_level(labels.row(0), labels.row(1)), 1);
/// # Ok::<(), akin_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(try_from = "Tree")]
pub struct Taxonomy {
    levels: Vec<String>,
    classes: Vec<Vec<String>>,
    parents: Vec<Vec<u32>>,
}

/// A stored taxonomy, before it is checked.
#[derive(Deserialize)]
struct Tree {
    levels: Vec<String>,
    classes: Vec<Vec<String>>,
    parents: Vec<Vec<u32>>,
}

impl Taxonomy {
    /// The taxonomy of label rows (coarse → fine, one name per level), and the class ids of each row.
    ///
    /// An empty label is unknown. If a finer label of the row is known, it is filled from the tree that the other rows
    /// form: the finer label has to name one class there, below the labels that the row has.
    ///
    /// # Errors
    ///
    /// [`Kind::Taxonomy`], naming the rows (counted from 0) or classes, when there is no level or no row, a level has
    /// no name or the name of another, a row has too few or too many labels, a level has no known label, an empty label
    /// cannot be filled and is not among the last of its row, a row has no label at all, or, with
    /// [`ClassIdentity::Name`], a class has two parents.
    pub fn from_rows<S: AsRef<str>>(
        levels: &[String],
        rows: &[Vec<S>],
        identity: ClassIdentity,
    ) -> Result<(Self, Labels)> {
        Self::from_named_rows(levels, rows, identity, &row_name)
    }

    /// As [`Taxonomy::from_rows`]. `name` says in messages what a row is, such as the line of a file.
    ///
    /// # Errors
    ///
    /// As [`Taxonomy::from_rows`].
    pub fn from_named_rows<S: AsRef<str>>(
        levels: &[String],
        rows: &[Vec<S>],
        identity: ClassIdentity,
        name: &dyn Fn(usize) -> String,
    ) -> Result<(Self, Labels)> {
        check_level_names(levels)?;
        if rows.is_empty() {
            return Err(Error::new(Kind::Taxonomy, "there are no labels", "give at least one labelled item"));
        }
        check_lengths(levels, rows, name)?;

        let mut tree = GrowingTree::new(levels.len(), identity);
        let mut ids = vec![UNKNOWN; rows.len() * levels.len()];
        let has_gap = |row: &Vec<S>| {
            let known = row.iter().rposition(|label| is_known(label.as_ref())).map_or(0, |last| last + 1);
            known == 0 || row[..known].iter().any(|label| !is_known(label.as_ref()))
        };
        let (gaps, whole): (Vec<usize>, Vec<usize>) = (0..rows.len()).partition(|&row| has_gap(&rows[row]));
        for row in whole {
            tree.add(&rows[row], &mut ids[row * levels.len()..][..levels.len()], row);
        }
        let mut faults = Vec::new();
        let by_name = if gaps.is_empty() { Vec::new() } else { tree.classes_by_name() };
        for row in gaps {
            match tree.fill(&rows[row], &by_name) {
                Ok(path) => ids[row * levels.len()..][..path.len()].copy_from_slice(&path),
                Err((level, fault)) => faults.push(format!("{} of {} {fault}", levels[level], name(row))),
            }
        }
        let GrowingTree { classes, parents, conflicts, .. } = tree;
        let hint = match coarse_to_fine(levels, rows).filter(|_| !conflicts.is_empty()) {
            Some(order) => {
                format!("the levels are not in order; from coarse to fine they are {}", named(levels, &order))
            }
            None => "check that the levels are in order, coarse to fine; then rename one, or identify a class by its full path (`qualify = true`)".into(),
        };
        let conflict = |Conflict { row, level, class, first, second }: Conflict| {
            let (label, above) = (&classes[level][class as usize], &classes[level - 1]);
            let [first, second] = [first, second].map(|parent| &above[parent as usize]);
            format!("{} {label:?} under {first:?} and, in {}, {second:?}", levels[level], name(row))
        };
        refuse_any(conflicts.into_iter().map(conflict).collect(), "a class has two parents", &hint)?;
        refuse_any(
            faults,
            "a label is empty, and the tree does not say what it is",
            "fill it in, remove the finer labels of the row, or remove the row",
        )?;
        let unknown = levels.iter().zip(&classes).filter(|(_, classes)| classes.is_empty());
        refuse_any(
            unknown.map(|(level, _)| level.clone()).collect(),
            "no row has a label at a level",
            "leave the level out, or give some rows their label",
        )?;
        Ok((
            Self { levels: levels.to_vec(), classes, parents },
            Labels { levels: levels.len(), ids, kin: None },
        ))
    }

    /// L, the number of levels.
    pub fn depth(&self) -> usize {
        self.levels.len()
    }

    /// The names of the levels, coarse → fine.
    pub fn level_names(&self) -> &[String] {
        &self.levels
    }

    /// The number of classes at a level, 1 … L.
    pub fn class_count(&self, level: usize) -> usize {
        self.classes[level - 1].len()
    }

    /// The name of a class at a level, 1 … L.
    pub fn class_name(&self, level: usize, class: u32) -> &str {
        &self.classes[level - 1][class as usize]
    }

    /// The names of the known classes of a label row, coarse → fine.
    pub fn path_names(&self, row: &[u32]) -> Vec<&str> {
        (1..).zip(&row[..known_levels(row)]).map(|(level, &class)| self.class_name(level, class)).collect()
    }

    /// The name of the finest known class of a label row, with the level below it if that is unknown:
    /// `Owls (species unknown)`.
    pub fn finest_name(&self, row: &[u32]) -> String {
        let name = self.path_names(row).last().copied().unwrap_or_default();
        match self.levels.get(known_levels(row)) {
            Some(level) => format!("{name} ({level} unknown)"),
            None => name.to_owned(),
        }
    }

    /// The class one level up, or `None` at level 1.
    pub fn parent(&self, level: usize, class: u32) -> Option<u32> {
        self.parents[level - 1].get(class as usize).copied()
    }

    /// The class ids of a label path, coarse → fine.
    ///
    /// # Errors
    ///
    /// [`Kind::Taxonomy`] when the path does not have L labels, or the taxonomy does not have one of them below the
    /// labels before it.
    pub fn class_ids<S: AsRef<str>>(&self, row: &[S]) -> Result<Vec<u32>> {
        check_lengths(&self.levels, &[row], &row_name)?;
        let mut path: Vec<u32> = Vec::with_capacity(row.len());
        for (level, label) in row.iter().map(AsRef::as_ref).enumerate() {
            let parent = path.last();
            let class = (0..self.classes[level].len())
                .find(|&c| self.parents[level].get(c) == parent && self.classes[level][c] == label);
            match class {
                Some(class) => path.push(class as u32),
                None => {
                    let names: Vec<&str> = row.iter().map(AsRef::as_ref).collect();
                    return Err(Error::new(
                        Kind::Taxonomy,
                        format!(
                            "{} {label:?} of {:?} is not in the taxonomy",
                            self.levels[level],
                            names.join(" / ")
                        ),
                        "correct the label, or build the taxonomy from rows that contain it",
                    ));
                }
            }
        }
        Ok(path)
    }
}

impl TryFrom<Tree> for Taxonomy {
    type Error = Error;

    fn try_from(tree: Tree) -> Result<Self> {
        let Tree { levels, classes, parents } = tree;
        check_level_names(&levels)?;
        let mut faults = Vec::new();
        if classes.len() != levels.len() || parents.len() != levels.len() {
            faults.push(format!(
                "it has {} levels, {} lists of classes and {} lists of parents",
                levels.len(),
                classes.len(),
                parents.len()
            ));
        }
        for (level, ((name, classes), parents)) in levels.iter().zip(&classes).zip(&parents).enumerate() {
            if classes.is_empty() || classes.iter().any(|class| class.trim().is_empty()) {
                faults.push(format!("level {name:?} has no class, or a class without a name"));
            }
            if parents.len() != if level == 0 { 0 } else { classes.len() } {
                faults.push(format!(
                    "level {name:?} has {} classes and {} parents",
                    classes.len(),
                    parents.len()
                ));
            }
            let mut seen = HashSet::new();
            for (class, label) in classes.iter().enumerate() {
                if !seen.insert((parents.get(class), label)) {
                    faults.push(format!("{name} {label:?} is listed twice under one parent"));
                }
            }
        }
        for (above, below) in classes.iter().zip(parents.iter().skip(1)) {
            if let Some(parent) = below.iter().find(|&&parent| parent as usize >= above.len()) {
                faults.push(format!(
                    "a class has the parent {parent}, and the level above has {} classes",
                    above.len()
                ));
            }
        }
        refuse_any(faults, "the stored taxonomy is not a tree", "write the file again")?;
        Ok(Self { levels, classes, parents })
    }
}

/// The class ids of N items at L levels: [N, L], row-major, coarse → fine. The last ids of a row may be [`UNKNOWN`], but
/// not all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Labels {
    levels: usize,
    ids: Vec<u32>,
    /// None in a tree.
    kin: Option<Kin>,
}

/// What items share beyond their rows.
#[derive(Clone, Debug, PartialEq)]
struct Kin {
    /// The kind of each item.
    kinds: Vec<u32>,
    kinship: Arc<Kinship>,
}

impl Labels {
    /// Labels from row-major ids.
    ///
    /// # Errors
    ///
    /// [`Kind::Taxonomy`] when there is no level, the ids do not fill whole rows, or an unknown label is the first of its
    /// row or stands above a known one.
    pub fn new(levels: usize, ids: Vec<u32>) -> Result<Self> {
        if levels == 0 || !ids.len().is_multiple_of(levels) {
            return Err(Error::new(
                Kind::Taxonomy,
                format!("{} class ids do not fill rows of {levels} levels", ids.len()),
                "give each item one class id per level, and at least one level",
            ));
        }
        let labels = Self { levels, ids, kin: None };
        let is_wrong = |row: &&[u32]| row[..known_levels(row).max(1)].contains(&UNKNOWN);
        let wrong = labels.ids.chunks_exact(levels).enumerate().find(|(_, row)| is_wrong(row));
        match wrong {
            None => Ok(labels),
            Some((number, _)) => Err(Error::new(
                Kind::Taxonomy,
                format!("row {number} has an unknown label at level 1 or above a known label"),
                "give each item the label of level 1, and unknown labels only below its known ones",
            )),
        }
    }

    /// N, the number of items.
    #[expect(clippy::len_without_is_empty, reason = "labels are a column of a data set, not a container")]
    pub fn len(&self) -> usize {
        self.ids.len() / self.levels
    }

    /// L, the number of levels.
    pub fn levels(&self) -> usize {
        self.levels
    }

    /// The labels of item `i`, coarse → fine.
    pub fn row(&self, i: usize) -> &[u32] {
        &self.ids[i * self.levels..][..self.levels]
    }

    /// The number of levels at which the label of item `i` is known: 1 … L.
    pub fn known(&self, i: usize) -> usize {
        known_levels(self.row(i))
    }

    /// Whether every label is known.
    pub fn are_known(&self) -> bool {
        self.ids.iter().skip(self.levels - 1).step_by(self.levels).all(|&id| id != UNKNOWN)
    }

    /// The number of items whose label is known at each level, 1 … L.
    pub fn known_counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.levels];
        for row in self.ids.chunks_exact(self.levels) {
            counts[..known_levels(row)].iter_mut().for_each(|count| *count += 1);
        }
        counts
    }

    /// Every item's class at a level, 1 … L; [`UNKNOWN`] where it is not known.
    pub fn column(&self, level: usize) -> Vec<u32> {
        self.ids[level - 1..].iter().step_by(self.levels).copied().collect()
    }

    /// The labels of levels 1 … `level`, as if the taxonomy ended there.
    pub fn up_to(&self, level: usize) -> Self {
        let ids = (0..self.len()).flat_map(|i| &self.row(i)[..level]).copied().collect();
        Self { levels: level, ids, kin: self.kin.clone() }
    }

    /// One label path for each class of the finest level that an item has, in the order of the class ids. A path that is
    /// known to a coarser level follows, if no path before it agrees with it.
    pub fn classes(&self) -> Self {
        let mut items: Vec<usize> = (0..self.len()).collect();
        // Unknown labels are the greatest, so that a path of more known labels precedes the paths that it agrees with.
        items.sort_by(|&a, &b| self.row(a).iter().rev().cmp(self.row(b).iter().rev()));
        items.dedup_by_key(|item| self.row(*item));
        let mut known: HashSet<&[u32]> = HashSet::new();
        items.retain(|&item| {
            let (row, depth) = (self.row(item), self.known(item));
            let is_new = known.insert(&row[..depth]);
            known.extend((1..depth).map(|level| &row[..level]));
            is_new
        });
        items.dedup_by_key(|item| (self.known(*item), self.row(*item)[self.known(*item) - 1]));
        self.select(&items)
    }

    /// How much each level 1 … L means, from above 0 to 1: l/L in a tree, and the values of a matrix of relevance, divided
    /// by the largest.
    pub fn heights(&self) -> Vec<f64> {
        let grades = self.kin.as_ref().and_then(|kin| kin.kinship.grades());
        match grades {
            // Labels that end above the finest grade keep the heights of their grades.
            Some(grades) => {
                grades[..self.levels].iter().map(|grade| grade / grades[grades.len() - 1]).collect()
            }
            None => (1..=self.levels).map(|level| level as f64 / self.levels as f64).collect(),
        }
    }

    /// The labels of these items, in this order.
    pub fn select(&self, items: &[usize]) -> Self {
        let ids = items.iter().flat_map(|&i| self.row(i)).copied().collect();
        let kin = self.kin.as_ref().map(|Kin { kinds, kinship }| Kin {
            kinds: items.iter().map(|&i| kinds[i]).collect(),
            kinship: Arc::clone(kinship),
        });
        Self { levels: self.levels, ids, kin }
    }

    /// All ids, [N, L], row-major.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }
}

/// The number of levels at which a label row is known.
pub fn known_levels(row: &[u32]) -> usize {
    row.iter().rposition(|&id| id != UNKNOWN).map_or(0, |last| last + 1)
}

/// l(q, x): the finest level at which two label rows are known and agree, 0 … L. Where labels are unknown, it is the least
/// level that the two may share.
#[inline]
pub fn shared_level(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).rposition(|(a, b)| a == b && *a != UNKNOWN).map_or(0, |level| level + 1)
}

/// The levels that two items may share: all from `least` to `most`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedInterval {
    /// The level that they are known to share, 0 … L.
    pub least: usize,
    /// The finest level that they may share, `least` … L.
    pub most: usize,
}

impl SharedInterval {
    /// Whether they share a level, 1 … L; `None` if that is not decided.
    pub fn share(self, level: usize) -> Option<bool> {
        if self.least >= level {
            Some(true)
        } else if self.most < level {
            Some(false)
        } else {
            None
        }
    }

    /// The shared level; `None` if it is not decided.
    pub fn level(self) -> Option<usize> {
        (self.least == self.most).then_some(self.least)
    }
}

/// The levels that two items of a tree may share.
///
/// Let k be the level down to which both are known. If their labels differ at a level down to k, they share what is above
/// it and nothing below. If they agree at all of them, they share k and, unless k is L, perhaps more: \[k, L\].
///
/// ```
/// use akin_core::taxonomy::{SharedInterval, UNKNOWN, shared_interval};
///
/// // Two owls without species, and a tawny owl: they share "owl", level 2, and perhaps the species.
/// let (owl, tawny_owl, finch) = ([0, 4, UNKNOWN], [0, 4, 7], [0, 5, UNKNOWN]);
/// assert_eq!(shared_interval(&owl, &owl), SharedInterval { least: 2, most: 3 });
/// assert_eq!(shared_interval(&owl, &tawny_owl), SharedInterval { least: 2, most: 3 });
/// assert_eq!(shared_interval(&owl, &finch), SharedInterval { least: 1, most: 1 });
/// ```
#[inline]
pub fn shared_interval(a: &[u32], b: &[u32]) -> SharedInterval {
    let least = shared_level(a, b);
    let is_open = [a, b].iter().any(|row| row.last() == Some(&UNKNOWN));
    let agree = |level: usize| a[level] == b[level] || a[level] == UNKNOWN || b[level] == UNKNOWN;
    let most = if is_open && (0..a.len()).all(agree) { a.len() } else { least };
    SharedInterval { least, most }
}

/// Fills a ragged label row up to `depth` levels: a missing or empty label becomes a copy of the label above it.
///
/// An empty first label stays empty, and [`Taxonomy::from_rows`] refuses it.
pub fn fill_from_parent(row: &mut Vec<String>, depth: usize) {
    row.resize(depth.max(row.len()), String::new());
    for level in 1..row.len() {
        if row[level].trim().is_empty() {
            row[level] = row[level - 1].clone();
        }
    }
}

/// Refuses levels that form a tree only in another order. With [`ClassIdentity::Path`], every order of the levels gives
/// some tree, and a wrong one would not be noticed.
///
/// # Errors
///
/// [`Kind::Taxonomy`], with the right order.
pub fn check_order<S: AsRef<str>>(levels: &[String], rows: &[Vec<S>]) -> Result<()> {
    let given: Vec<usize> = (0..levels.len()).collect();
    let Some(order) = coarse_to_fine(levels, rows).filter(|order| *order != given) else { return Ok(()) };
    Err(Error::new(
        Kind::Taxonomy,
        format!("the levels {} are not in order from coarse to fine", named(levels, &given)),
        format!("write them as {}", named(levels, &order)),
    ))
}

fn named(levels: &[String], order: &[usize]) -> String {
    order.iter().map(|&level| levels[level].as_str()).collect::<Vec<_>>().join(", ")
}

/// The order of the levels in which the names of the classes form a tree with at least two coarsest classes, if there is
/// one: by the number of names. Only the rows without an empty label are considered.
fn coarse_to_fine<S: AsRef<str>>(levels: &[String], rows: &[Vec<S>]) -> Option<Vec<usize>> {
    let rows: Vec<&Vec<S>> =
        rows.iter().filter(|row| row.iter().all(|label| is_known(label.as_ref()))).collect();
    let classes =
        |level: &usize| rows.iter().map(|row| row[*level].as_ref()).collect::<HashSet<&str>>().len();
    let mut order: Vec<usize> = (0..levels.len()).collect();
    order.sort_by_cached_key(classes);
    let is_tree = order.windows(2).all(|pair| {
        let mut parents = HashMap::new();
        let label = |row: &'_ Vec<S>, level: usize| -> String { row[level].as_ref().to_owned() };
        rows.iter().all(|row| {
            let parent = label(row, pair[0]);
            *parents.entry(label(row, pair[1])).or_insert_with(|| parent.clone()) == parent
        })
    });
    (is_tree && order.first().is_some_and(|level| classes(level) > 1)).then_some(order)
}

fn check_level_names(levels: &[String]) -> Result<()> {
    let mut seen = HashSet::new();
    let faults = levels.iter().enumerate().filter_map(|(position, name)| {
        if name.trim().is_empty() {
            Some(format!("level {} has no name", position + 1))
        } else {
            (!seen.insert(name)).then(|| format!("level {} is named {name:?} again", position + 1))
        }
    });
    let mut faults: Vec<String> = faults.collect();
    if levels.is_empty() {
        faults.push("there is no level".into());
    }
    refuse_any(faults, "the level names are not usable", "give each level its own name, coarse to fine")
}

fn row_name(number: usize) -> String {
    format!("row {number}")
}

fn check_lengths<S: AsRef<str>, R: AsRef<[S]>>(
    levels: &[String],
    rows: &[R],
    name: &dyn Fn(usize) -> String,
) -> Result<()> {
    let ragged = rows.iter().map(AsRef::as_ref).enumerate().filter(|(_, row)| row.len() != levels.len());
    let ragged = ragged.map(|(number, row)| format!("{} has {}", name(number), row.len()));
    refuse_any(
        ragged.collect(),
        &format!("a row needs {} labels, one per level", levels.len()),
        "give each item a label at every level, an empty one where it is not known",
    )
}

fn is_known(label: &str) -> bool {
    !label.trim().is_empty()
}

/// A tree in the making, to which rows are added.
struct GrowingTree<'a> {
    identity: ClassIdentity,
    classes: Vec<Vec<String>>,
    parents: Vec<Vec<u32>>,
    known: Vec<HashMap<(Option<u32>, &'a str), u32>>,
    conflicts: Vec<Conflict>,
    /// Each conflict is reported once, however many rows have it.
    known_conflicts: HashSet<(usize, u32, u32)>,
}

/// A class that a row has under another parent than the rows before it.
struct Conflict {
    row: usize,
    level: usize,
    class: u32,
    first: u32,
    second: u32,
}

impl<'a> GrowingTree<'a> {
    fn new(depth: usize, identity: ClassIdentity) -> Self {
        Self {
            identity,
            classes: vec![Vec::new(); depth],
            parents: vec![Vec::new(); depth],
            known: vec![HashMap::new(); depth],
            conflicts: Vec::new(),
            known_conflicts: HashSet::new(),
        }
    }

    /// Adds the known labels of a row, which are its first, and writes their class ids.
    fn add<S: AsRef<str>>(&mut self, row: &'a [S], ids: &mut [u32], number: usize) {
        let mut parent = None;
        let labels = row.iter().map(AsRef::as_ref).take_while(|label| is_known(label));
        for (level, (label, id)) in labels.zip(ids).enumerate() {
            let key = match self.identity {
                ClassIdentity::Name => (None, label),
                ClassIdentity::Path => (parent, label),
            };
            let (classes, parents) = (&mut self.classes[level], &mut self.parents[level]);
            let class = *self.known[level].entry(key).or_insert_with(|| {
                classes.push(label.to_owned());
                parents.extend(parent);
                classes.len() as u32 - 1
            });
            if let Some(second) = parent
                && parents[class as usize] != second
                && self.known_conflicts.insert((level, class, second))
            {
                let first = parents[class as usize];
                self.conflicts.push(Conflict { row: number, level, class, first, second });
            }
            *id = class;
            parent = Some(class);
        }
    }

    /// The classes of each name at each level.
    fn classes_by_name(&self) -> Vec<HashMap<&str, Vec<u32>>> {
        let mut by_name: Vec<HashMap<&str, Vec<u32>>> = vec![HashMap::new(); self.classes.len()];
        for (classes, by_name) in self.classes.iter().zip(&mut by_name) {
            for (name, class) in classes.iter().zip(0..) {
                by_name.entry(name).or_default().push(class);
            }
        }
        by_name
    }

    /// The class ids of a row that has a label below an empty one, down to its finest label; or the place of the empty label
    /// and why the tree does not say what it is.
    fn fill<S: AsRef<str>>(
        &self,
        row: &[S],
        by_name: &[HashMap<&str, Vec<u32>>],
    ) -> std::result::Result<Vec<u32>, (usize, String)> {
        let row: Vec<&str> = row.iter().map(AsRef::as_ref).collect();
        let empty = row.iter().position(|label| !is_known(label)).unwrap_or(0);
        let Some(finest) = row.iter().rposition(|label| is_known(label)) else {
            return Err((empty, "is empty, like all its labels".into()));
        };
        let path = |class: u32| {
            let mut path = vec![class];
            for level in (1..=finest).rev() {
                path.push(self.parents[level][path[path.len() - 1] as usize]);
            }
            path.reverse();
            path
        };
        let agrees = |path: &Vec<u32>| {
            let mut labels = row.iter().zip(&self.classes).zip(path);
            labels.all(|((label, classes), &class)| !is_known(label) || classes[class as usize] == *label)
        };
        let classes = by_name[finest].get(row[finest]).into_iter().flatten();
        let mut paths = classes.map(|&class| path(class)).filter(agrees);
        match (paths.next(), paths.next()) {
            (Some(path), None) => Ok(path),
            (None, _) => {
                Err((empty, format!("is empty, and no other row has {:?} below its labels", row[finest])))
            }
            (Some(_), Some(_)) => {
                Err((empty, format!("is empty, and several classes are called {:?}", row[finest])))
            }
        }
    }
}

/// An error that names the first five offenders; `Ok` when there are none.
fn refuse_any(offenders: Vec<String>, fault: &str, hint: &str) -> Result<()> {
    const NAMED: usize = 5;
    if offenders.is_empty() {
        return Ok(());
    }
    let more = offenders.len().saturating_sub(NAMED);
    let tail = if more > 0 { format!("; and {more} more") } else { String::new() };
    let named = offenders[..offenders.len().min(NAMED)].join("; ");
    Err(Error::new(Kind::Taxonomy, format!("{fault}: {named}{tail}"), hint))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn levels() -> Vec<String> {
        ["kind", "variety"].map(String::from).to_vec()
    }

    fn build(rows: &[&[&str]], identity: ClassIdentity) -> Result<(Taxonomy, Labels)> {
        let rows: Vec<Vec<&str>> = rows.iter().map(|row| row.to_vec()).collect();
        Taxonomy::from_rows(&levels(), &rows, identity)
    }

    fn fault(rows: &[&[&str]]) -> String {
        build(rows, ClassIdentity::Name).unwrap_err().to_string()
    }

    #[test]
    fn a_class_with_two_parents_is_refused_by_name() {
        let text = fault(&[&["apple", "gala"], &["pear", "gala"], &["pear", "gala"]]);
        assert!(text.contains(r#"variety "gala" under "apple" and, in row 1, "pear""#), "{text}");
        assert!(!text.contains("row 2"), "each conflict is named once: {text}");
        assert!(text.contains("qualify = true"), "{text}");
    }

    #[test]
    fn levels_in_the_wrong_order_are_named_in_the_right_one() {
        let levels = ["variety", "order", "kind"].map(String::from);
        let rows = [
            ["gala", "fruit", "apple"],
            ["fuji", "fruit", "apple"],
            ["kaiser", "fruit", "pear"],
            ["nantes", "root", "carrot"],
        ];
        let rows = rows.map(|row| row.to_vec());
        let error = Taxonomy::from_rows(&levels, &rows, ClassIdentity::Name).unwrap_err();
        assert_eq!(
            error.hint(),
            "the levels are not in order; from coarse to fine they are order, kind, variety"
        );
        // As paths, they would form a tree in this order, too.
        let error = check_order(&levels, &rows).unwrap_err();
        assert_eq!(error.message(), "the levels variety, order, kind are not in order from coarse to fine");
        assert_eq!(error.hint(), "write them as order, kind, variety");
    }

    #[test]
    fn levels_that_form_no_tree_by_name_are_in_any_order() {
        let rows = [vec!["apple", "other"], vec!["pear", "other"], vec!["pear", "kaiser"]];
        check_order(&levels(), &rows).unwrap();
        let in_order = [vec!["apple", "gala"], vec!["apple", "fuji"], vec!["pear", "kaiser"]];
        check_order(&levels(), &in_order).unwrap();
    }

    #[test]
    fn with_path_identity_two_paths_with_one_name_are_two_classes() {
        let (taxonomy, labels) =
            build(&[&["apple", "gala"], &["pear", "gala"]], ClassIdentity::Path).unwrap();
        assert_eq!(taxonomy.class_count(2), 2);
        assert_eq!(labels.ids(), [0, 0, 1, 1]);
        assert_eq!(taxonomy.class_ids(&["pear", "gala"]).unwrap(), [1, 1]);
        assert_eq!(taxonomy.parent(2, 1), Some(1));
        assert_eq!(taxonomy.parent(1, 1), None);
    }

    #[test]
    fn ragged_rows_and_rows_without_a_label_are_refused_with_their_row() {
        assert!(
            fault(&[&["apple", "gala"], &["", " "]]).contains("kind of row 1 is empty, like all its labels")
        );
        let ragged = fault(&[&["apple", "gala"], &["apple"]]);
        assert!(ragged.contains("a row needs 2 labels, one per level: row 1 has 1"), "{ragged}");
        assert!(fault(&[]).contains("there are no labels"));
        let many = vec![[""; 2].as_slice(); 9];
        assert!(fault(&many).contains("and 4 more"));
        assert!(fault(&[&["apple", ""], &["pear", ""]]).contains("no row has a label at a level: variety"));
    }

    #[test]
    fn empty_labels_are_unknown_and_those_above_a_known_one_are_filled_from_the_tree() {
        let rows: &[&[&str]] = &[&["", "gala"], &["apple", "gala"], &["apple", ""], &["pear", ""]];
        for identity in [ClassIdentity::Name, ClassIdentity::Path] {
            let (taxonomy, labels) = build(rows, identity).unwrap();
            assert_eq!(labels.ids(), [0, 0, 0, 0, 0, UNKNOWN, 1, UNKNOWN]);
            assert_eq!((taxonomy.class_count(1), taxonomy.class_count(2)), (2, 1));
        }
        let text = fault(&[&["apple", "gala"], &["", "fuji"]]);
        assert!(
            text.contains(r#"kind of row 1 is empty, and no other row has "fuji" below its labels"#),
            "{text}"
        );
        let rows: &[&[&str]] = &[&["apple", "gala"], &["pear", "gala"], &["", "gala"]];
        let text = build(rows, ClassIdentity::Path).unwrap_err().to_string();
        assert!(text.contains(r#"kind of row 2 is empty, and several classes are called "gala""#), "{text}");
    }

    #[test]
    fn unknown_labels_are_the_last_of_a_row_and_are_counted() {
        let labels = Labels::new(3, vec![0, 1, 2, 0, 1, UNKNOWN, 3, UNKNOWN, UNKNOWN, 0, 4, 5]).unwrap();
        assert_eq!((labels.known(0), labels.known(1), labels.known(2)), (3, 2, 1));
        assert_eq!(labels.known_counts(), [4, 3, 2]);
        assert!(!labels.are_known() && labels.select(&[0, 3]).are_known());
        // The path of level 1 alone is the only one that no finer path agrees with.
        assert_eq!(labels.classes().ids(), [0, 1, 2, 0, 4, 5, 3, UNKNOWN, UNKNOWN]);
        for wrong in [[UNKNOWN, 1, 2], [0, UNKNOWN, 2], [UNKNOWN; 3]] {
            assert!(Labels::new(3, wrong.to_vec()).is_err());
        }
    }

    proptest! {
        /// The naive reading: fill the holes in every way, and see which levels are shared.
        #[test]
        fn the_interval_holds_the_shared_levels_of_all_ways_to_fill_the_holes(
            [a, b] in prop::array::uniform2((0u32..12, 1usize..=3).prop_map(|(fine, known)| {
                let mut row = [fine / 6, fine / 2, fine];
                row[known..].fill(UNKNOWN);
                row
            })),
        ) {
            let fills = |row: [u32; 3]| (0..12).map(|fine| [fine / 6, fine / 2, fine]).filter(move |full| {
                full.iter().zip(row).all(|(full, id)| id == UNKNOWN || id == *full)
            });
            let mut shared: Vec<usize> =
                fills(a).flat_map(|a| fills(b).map(move |b| shared_level(&a, &b))).collect();
            shared.sort_unstable();
            let interval = shared_interval(&a, &b);
            prop_assert_eq!((interval.least, interval.most), (shared[0], shared[shared.len() - 1]));
            for level in 1..=3 {
                let answers = [shared[0] >= level, shared[shared.len() - 1] >= level];
                prop_assert_eq!(interval.share(level), (answers[0] == answers[1]).then_some(answers[0]));
            }
        }
    }

    #[test]
    fn each_level_needs_its_own_name() {
        let rows = [vec!["apple", "gala"]];
        for (names, text) in
            [(["kind", ""], "level 2 has no name"), (["kind", "kind"], "named \"kind\" again")]
        {
            let names = names.map(String::from);
            let error = Taxonomy::from_rows(&names, &rows, ClassIdentity::Name).unwrap_err();
            assert!(error.message().contains(text), "{error}");
        }
        assert!(Taxonomy::from_rows::<&str>(&[], &[], ClassIdentity::Name).is_err());
    }

    #[test]
    fn a_label_may_equal_its_parents() {
        let (taxonomy, _) = build(&[&["kiwi", "kiwi"], &["apple", "gala"]], ClassIdentity::Name).unwrap();
        assert_eq!(taxonomy.class_ids(&["kiwi", "kiwi"]).unwrap(), [0, 0]);
    }

    #[test]
    fn ragged_rows_can_be_filled_with_the_parent() {
        let mut row = vec!["fruit".to_string(), String::new()];
        fill_from_parent(&mut row, 3);
        assert_eq!(row, ["fruit", "fruit", "fruit"]);
    }

    #[test]
    fn an_unknown_path_is_refused() {
        let (taxonomy, _) = build(&[&["apple", "gala"], &["pear", "kaiser"]], ClassIdentity::Name).unwrap();
        let error = taxonomy.class_ids(&["apple", "kaiser"]).unwrap_err();
        assert!(error.message().contains(r#"variety "kaiser" of "apple / kaiser""#), "{error}");
        assert!(taxonomy.class_ids(&["apple"]).is_err());
    }

    #[test]
    fn a_stored_taxonomy_is_checked_when_it_is_read() {
        let (taxonomy, _) = build(&[&["apple", "gala"], &["pear", "kaiser"]], ClassIdentity::Name).unwrap();
        let json = serde_json::to_string(&taxonomy).unwrap();
        assert_eq!(serde_json::from_str::<Taxonomy>(&json).unwrap(), taxonomy);
        for (from, to) in
            [("[0,1]", "[0,2]"), ("[0,1]", "[0]"), ("\"pear\"", "\"apple\""), ("\"kaiser\"", "\"\"")]
        {
            let damaged = json.replace(from, to);
            assert!(serde_json::from_str::<Taxonomy>(&damaged).is_err(), "{damaged}");
        }
    }

    #[test]
    fn the_shared_level_is_the_finest_equal_label() {
        assert_eq!(shared_level(&[0, 1, 2], &[3, 4, 5]), 0);
        assert_eq!(shared_level(&[0, 1, 2], &[0, 4, 5]), 1);
        assert_eq!(shared_level(&[0, 1, 2], &[0, 1, 2]), 3);
    }

    #[test]
    fn labels_must_fill_whole_rows() {
        assert!(Labels::new(2, vec![1, 2, 3]).is_err());
        assert!(Labels::new(0, vec![]).is_err());
        let labels = Labels::new(2, vec![0, 1, 2, 3]).unwrap();
        assert_eq!((labels.len(), labels.levels()), (2, 2));
        assert_eq!(labels.column(2), [1, 3]);
        assert_eq!(labels.select(&[1, 0]).ids(), [2, 3, 0, 1]);
    }
}
