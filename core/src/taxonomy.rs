//! The label tree, the labels of a data set, and the level that two items share.
//!
//! Levels run coarse to fine: level 1 is the coarsest, level L the finest. Level 0 is the root: items that share only
//! the root have nothing in common. Column 0 of a label row is level 1.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::{Error, Kind, Result};

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
    /// # Errors
    ///
    /// [`Kind::Taxonomy`], naming the rows (counted from 0) or classes, when there is no level or no row, a level has
    /// no name or the name of another, a row has too few or too many labels, a label is empty, or, with
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
        check_rows(levels, rows, name)?;

        let depth = levels.len();
        let mut classes = vec![Vec::new(); depth];
        let mut parents = vec![Vec::new(); depth];
        let mut known: Vec<HashMap<(Option<u32>, &str), u32>> = vec![HashMap::new(); depth];
        let mut ids = Vec::with_capacity(rows.len() * depth);
        let mut conflicts = Vec::new();
        // Each conflict is reported once, however many rows have it.
        let mut known_conflicts = HashSet::new();

        for (number, row) in rows.iter().enumerate() {
            let mut parent = None;
            for (level, label) in row.iter().map(AsRef::as_ref).enumerate() {
                let key = match identity {
                    ClassIdentity::Name => (None, label),
                    ClassIdentity::Path => (parent, label),
                };
                let class = *known[level].entry(key).or_insert_with(|| {
                    classes[level].push(label.to_owned());
                    parents[level].extend(parent);
                    classes[level].len() as u32 - 1
                });
                if let Some(second) = parent
                    && parents[level][class as usize] != second
                    && known_conflicts.insert((level, class, second))
                {
                    let above: &Vec<String> = &classes[level - 1];
                    let first = &above[parents[level][class as usize] as usize];
                    let second = &above[second as usize];
                    let level = &levels[level];
                    let place = name(number);
                    conflicts.push(format!("{level} {label:?} under {first:?} and, in {place}, {second:?}"));
                }
                ids.push(class);
                parent = Some(class);
            }
        }
        let hint = match coarse_to_fine(levels, rows).filter(|_| !conflicts.is_empty()) {
            Some(order) => {
                format!("the levels are not in order; from coarse to fine they are {}", named(levels, &order))
            }
            None => "check that the levels are in order, coarse to fine; then rename one, or identify a class by its full path (`qualify = true`)".into(),
        };
        refuse_any(conflicts, "a class has two parents", &hint)?;
        Ok((Self { levels: levels.to_vec(), classes, parents }, Labels { levels: depth, ids }))
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
        check_rows(&self.levels, &[row], &row_name)?;
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

/// The class ids of N items at L levels: [N, L], row-major, coarse → fine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    levels: usize,
    ids: Vec<u32>,
}

impl Labels {
    /// Labels from row-major ids.
    ///
    /// # Errors
    ///
    /// [`Kind::Taxonomy`] when there is no level, or the ids do not fill whole rows.
    pub fn new(levels: usize, ids: Vec<u32>) -> Result<Self> {
        if levels == 0 || !ids.len().is_multiple_of(levels) {
            return Err(Error::new(
                Kind::Taxonomy,
                format!("{} class ids do not fill rows of {levels} levels", ids.len()),
                "give each item one class id per level, and at least one level",
            ));
        }
        Ok(Self { levels, ids })
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

    /// Every item's class at a level, 1 … L.
    pub fn column(&self, level: usize) -> Vec<u32> {
        self.ids[level - 1..].iter().step_by(self.levels).copied().collect()
    }

    /// The labels of levels 1 … `level`, as if the taxonomy ended there.
    pub fn up_to(&self, level: usize) -> Self {
        let ids = (0..self.len()).flat_map(|i| &self.row(i)[..level]).copied().collect();
        Self { levels: level, ids }
    }

    /// One label path for each class of the finest level that an item has, in the order of the class ids.
    pub fn classes(&self) -> Self {
        let mut rows: Vec<&[u32]> = self.ids.chunks_exact(self.levels).collect();
        rows.sort_unstable_by_key(|row| row[self.levels - 1]);
        rows.dedup_by_key(|row| row[self.levels - 1]);
        Self { levels: self.levels, ids: rows.concat() }
    }

    /// The labels of these items, in this order.
    pub fn select(&self, items: &[usize]) -> Self {
        let ids = items.iter().flat_map(|&i| self.row(i)).copied().collect();
        Self { levels: self.levels, ids }
    }

    /// All ids, [N, L], row-major.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }
}

/// l(q, x): the finest level at which two label rows agree, 0 … L.
pub fn shared_level(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).rposition(|(a, b)| a == b).map_or(0, |level| level + 1)
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
/// one: by the number of names.
fn coarse_to_fine<S: AsRef<str>>(levels: &[String], rows: &[Vec<S>]) -> Option<Vec<usize>> {
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

fn check_rows<S: AsRef<str>, R: AsRef<[S]>>(
    levels: &[String],
    rows: &[R],
    name: &dyn Fn(usize) -> String,
) -> Result<()> {
    if rows.is_empty() {
        return Err(Error::new(Kind::Taxonomy, "there are no labels", "give at least one labelled item"));
    }
    let ragged = rows.iter().map(AsRef::as_ref).enumerate().filter(|(_, row)| row.len() != levels.len());
    let ragged = ragged.map(|(number, row)| format!("{} has {}", name(number), row.len()));
    refuse_any(
        ragged.collect(),
        &format!("a row needs {} labels, one per level", levels.len()),
        "give each item a label at every level, or let missing ones be filled with the parent's",
    )?;
    let labels = rows.iter().enumerate().flat_map(|(number, row)| {
        row.as_ref().iter().zip(levels).map(move |(label, level)| (number, label.as_ref(), level))
    });
    let empty = labels.filter(|(_, label, _)| label.trim().is_empty());
    refuse_any(
        empty.map(|(number, _, level)| format!("{level} of {}", name(number))).collect(),
        "a label is empty",
        "fill it in, or let missing labels be filled with the parent's",
    )
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
    fn empty_labels_and_ragged_rows_are_refused_with_their_row() {
        assert!(fault(&[&["apple", "gala"], &["apple", " "]]).contains("variety of row 1"));
        let ragged = fault(&[&["apple", "gala"], &["apple"]]);
        assert!(ragged.contains("a row needs 2 labels, one per level: row 1 has 1"), "{ragged}");
        assert!(fault(&[]).contains("there are no labels"));
        let many = vec![[""; 2].as_slice(); 9];
        assert!(fault(&many).contains("and 13 more"));
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
