//! Labels that are no tree: several label paths for each item, from cells with several labels or from a file of parents,
//! or a matrix of relevance. [`akin_core::taxonomy::Kinship`] says what items then share.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use akin_base::problem::{a_few, did_you_mean, problem};
use akin_base::quantities::{count, counted};
use akin_core::taxonomy::{ClassIdentity, Kinship, Labels, MOST_KINDS, Taxonomy};
use akin_formats::csv_file::CsvFile;
use anyhow::{Context, Result};

use crate::config::KinshipSource;

/// The most ways from the root down to a class, so that a graph of many diamonds ends.
const MOST_PATHS: usize = 1000;
/// The longest way from the root down to a class.
const DEEPEST: usize = 255;

/// A taxonomy of label paths in the making.
type PathsOfRows = Vec<Vec<Vec<String>>>;

impl KinshipSource {
    /// The taxonomy and the labels of some rows of labels. `levels` names the levels; without it, they are called after
    /// their depth or their value. `name` says in messages what a row is.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, a class that it does not have, a graph with a cycle, a matrix that is no relevance, cells
    /// of a row with different numbers of labels, and names for another number of levels than there are.
    pub fn labels<S: AsRef<str>>(
        &self,
        levels: Option<&[String]>,
        rows: &[Vec<S>],
        name: &dyn Fn(usize) -> String,
    ) -> Result<(Taxonomy, Labels)> {
        let class = |row: &'_ Vec<S>| row.first().map(|class| class.as_ref().to_owned()).unwrap_or_default();
        match self {
            Self::Separator(separator) => {
                let paths = rows.iter().enumerate();
                let paths = paths.map(|(row, cells)| paths_in_cells(cells, separator, &|| name(row)));
                let levels = levels.unwrap_or_default().to_vec();
                of_paths(&levels, &paths.collect::<Result<PathsOfRows>>()?, name)
            }
            Self::Parents(file) => {
                let graph = Graph::read(file)?;
                let classes: Vec<String> = rows.iter().map(class).collect();
                let mut known: HashMap<&str, Vec<Vec<String>>> = HashMap::new();
                for (row, class) in classes.iter().enumerate() {
                    if !known.contains_key(class.as_str()) {
                        let paths = graph.paths(class).with_context(|| name(row))?;
                        known.insert(class, paths);
                    }
                }
                let depth = known.values().flatten().map(Vec::len).max().unwrap_or_default();
                let names: Vec<String> = (1..=depth).map(|level| format!("depth {level}")).collect();
                let levels = checked_levels(levels, names, file)?;
                for (class, paths) in &mut known {
                    graph.fill(class, paths, depth);
                }
                let paths: PathsOfRows = classes.iter().map(|class| known[class.as_str()].clone()).collect();
                of_paths(&levels, &paths, name)
            }
            Self::Matrix(file) => {
                let (classes, kinship) = read_matrix(file)?;
                let grades = kinship.grades().unwrap_or_default();
                let names = grades.iter().map(|grade| format!("relevance {grade}")).collect();
                let levels = checked_levels(levels, names, file)?;
                let places: HashMap<&str, u32> = classes.iter().map(String::as_str).zip(0..).collect();
                let place = |(row, cells): (usize, &Vec<S>)| {
                    let class = class(cells);
                    places.get(class.as_str()).copied().ok_or_else(|| {
                        problem(
                            format!("{}: {} has no row for the class {class:?}", name(row), file.display()),
                            did_you_mean(&class, classes.iter().map(String::as_str))
                                + "add a row and a column for it",
                        )
                    })
                };
                let ids = rows.iter().enumerate().map(place).collect::<Result<Vec<u32>>>()?;
                let labels = Labels::from_grades(Arc::new(kinship), ids)?;
                Ok((Taxonomy::of_grades(&levels, &classes)?, labels))
            }
        }
    }
}

/// The names of the levels that a file gives, or the names that a config gives them.
fn checked_levels(given: Option<&[String]>, names: Vec<String>, file: &Path) -> Result<Vec<String>> {
    let Some(given) = given else { return Ok(names) };
    if given.len() == names.len() {
        return Ok(given.to_vec());
    }
    Err(problem(
        format!(
            "data.levels names {}, and {} makes {}",
            counted(given.len(), "level", "levels"),
            file.display(),
            count(names.len())
        ),
        format!("name each level, coarse to fine, for example data.levels = {names:?}"),
    ))
}

/// The label paths of a row whose cells hold several labels each.
fn paths_in_cells<S: AsRef<str>>(
    cells: &[S],
    separator: &str,
    place: &dyn Fn() -> String,
) -> Result<Vec<Vec<String>>> {
    let labels: Vec<Vec<&str>> =
        cells.iter().map(|cell| cell.as_ref().split(separator).map(str::trim).collect()).collect();
    let paths = labels.iter().map(Vec::len).max().unwrap_or(1);
    if labels.iter().any(|labels| labels.len() != 1 && labels.len() != paths) {
        let numbers: Vec<usize> = labels.iter().map(Vec::len).collect();
        return Err(problem(
            format!("{}: the cells have {numbers:?} labels, which do not form paths", place()),
            "give each level as many labels as there are paths, in their order, or one for all paths",
        ));
    }
    let label = |labels: &Vec<&str>, path: usize| (*labels.get(path).unwrap_or(&labels[0])).to_owned();
    Ok((0..paths).map(|path| labels.iter().map(|labels| label(labels, path)).collect()).collect())
}

/// The taxonomy of all label paths, in which a class is its whole path.
fn of_paths(
    levels: &[String],
    items: &[Vec<Vec<String>>],
    name: &dyn Fn(usize) -> String,
) -> Result<(Taxonomy, Labels)> {
    let mut different: HashMap<&[String], usize> = HashMap::new();
    let (mut rows, mut items_of_rows) = (Vec::new(), Vec::new());
    for (item, path) in
        items.iter().enumerate().flat_map(|(item, paths)| paths.iter().map(move |path| (item, path)))
    {
        different.entry(path).or_insert_with(|| {
            rows.push(path.clone());
            items_of_rows.push(item);
            rows.len() - 1
        });
    }
    let place = |row: usize| name(items_of_rows[row]);
    let (taxonomy, labels) = Taxonomy::from_named_rows(levels, &rows, ClassIdentity::Path, &place)?;
    let ids = |paths: &Vec<Vec<String>>| -> Vec<Vec<u32>> {
        paths.iter().map(|path| labels.row(different[path.as_slice()]).to_vec()).collect()
    };
    let labels = Labels::from_paths(levels.len(), &items.iter().map(ids).collect::<Vec<_>>())?;
    Ok((taxonomy, labels))
}

/// Classes with their parents: a directed acyclic graph.
struct Graph {
    file: PathBuf,
    parents: HashMap<String, Vec<String>>,
    /// The classes that are a parent.
    inner: HashSet<String>,
}

impl Graph {
    fn read(file: &Path) -> Result<Self> {
        let mut table = CsvFile::open(file)?;
        let class = table.column("class", "name the column of the classes so")?;
        let parent = table.column("parent", "name the column of their parents so")?;
        let mut parents: HashMap<String, Vec<String>> = HashMap::new();
        while let Some((row, record)) = table.next_row()? {
            let [class, parent] = [class, parent].map(|column| record[column].trim().to_owned());
            if class.is_empty() {
                return Err(problem(
                    format!("{}, row {row}: the class is empty", file.display()),
                    "write the class, or remove the row",
                ));
            }
            let own = parents.entry(class).or_default();
            if !parent.is_empty() && !own.contains(&parent) {
                own.push(parent);
            }
        }
        let inner: HashSet<String> = parents.values().flatten().cloned().collect();
        let missing: Vec<String> = inner
            .iter()
            .filter(|class| !parents.contains_key(*class))
            .map(|class| format!("{class:?}"))
            .collect();
        let roots = parents.values().filter(|parents| parents.is_empty()).count();
        // A file of edges names its root only as a parent.
        let is_root = |missing: &[String]| missing.len() == 1 && roots == 0;
        if !missing.is_empty() && !is_root(&missing) {
            let mut missing = missing;
            missing.sort();
            return Err(problem(
                format!("{} has no row for {}, which it names as parents", file.display(), a_few(&missing)),
                "add a row for each of them, with an empty parent for those at the top",
            ));
        }
        let graph = Self { file: file.to_owned(), parents, inner };
        graph.check_cycles()?;
        Ok(graph)
    }

    fn parents(&self, class: &str) -> &[String] {
        self.parents.get(class).map_or(&[], Vec::as_slice)
    }

    /// Refuses a class that is above itself.
    fn check_cycles(&self) -> Result<()> {
        let mut done: HashSet<&str> = HashSet::new();
        for start in self.parents.keys() {
            // The way up to the class that is looked at, with the next parent of each class on it.
            let mut way: Vec<(&str, usize)> = vec![(start, 0)];
            while let Some((class, next)) = way.last_mut() {
                if done.contains(*class) {
                    way.pop();
                    continue;
                }
                let Some(parent) = self.parents(class).get(*next) else {
                    done.insert(class);
                    way.pop();
                    continue;
                };
                *next += 1;
                if let Some(place) = way.iter().position(|(class, _)| class == parent) {
                    let mut cycle: Vec<&str> = way[place..].iter().map(|(class, _)| *class).collect();
                    cycle.push(parent);
                    return Err(problem(
                        format!("{}: a class is above itself: {}", self.file.display(), cycle.join(" < ")),
                        "remove one of these parents",
                    ));
                }
                way.push((parent, 0));
            }
        }
        Ok(())
    }

    /// The one class at the top, if all others are below it: that is the root, and no level.
    fn root(&self) -> Option<&str> {
        let classes = self.parents.keys().chain(&self.inner);
        let mut tops: Vec<&str> =
            classes.map(String::as_str).filter(|class| self.parents(class).is_empty()).collect();
        tops.sort_unstable();
        tops.dedup();
        match tops[..] {
            [top] => Some(top),
            _ => None,
        }
    }

    /// All ways from the root down to a class.
    fn paths(&self, class: &str) -> Result<Vec<Vec<String>>> {
        if !self.parents.contains_key(class) {
            return Err(problem(
                format!("{} has no class {class:?}", self.file.display()),
                did_you_mean(class, self.parents.keys().map(String::as_str)) + "add a row with its parent",
            ));
        }
        let root = self.root();
        let mut paths = Vec::new();
        let mut ways = vec![vec![class]];
        while let Some(way) = ways.pop() {
            // A way has at least its first class.
            let parents = self.parents(way[way.len() - 1]);
            if parents.is_empty() {
                let below_root = way.iter().rev().skip_while(|class| Some(**class) == root);
                paths.push(below_root.map(|class| (*class).to_owned()).collect());
            }
            if way.len() > DEEPEST || paths.len() + ways.len() > MOST_PATHS {
                return Err(problem(
                    format!(
                        "{} has more than {MOST_PATHS} ways down to {class:?}, or one of more than {DEEPEST} steps",
                        self.file.display()
                    ),
                    "leave out parents that say little",
                ));
            }
            for parent in parents.iter().rev() {
                let mut longer = way.clone();
                longer.push(parent);
                ways.push(longer);
            }
        }
        if paths.iter().any(Vec::is_empty) {
            return Err(problem(
                format!("{class:?} is the root of {}, which says nothing", self.file.display()),
                "give the item a class below it",
            ));
        }
        Ok(paths)
    }

    /// Makes the paths of a class `depth` long. A class without children is known to the finest level: all its items are
    /// alike. What is below another class is unknown.
    fn fill(&self, class: &str, paths: &mut [Vec<String>], depth: usize) {
        let below = if self.inner.contains(class) { String::new() } else { class.to_owned() };
        paths.iter_mut().for_each(|path| path.resize(depth, below.clone()));
    }
}

/// The classes of a matrix of relevance, in the order of its columns, and the matrix.
fn read_matrix(file: &Path) -> Result<(Vec<String>, Kinship)> {
    let mut table = CsvFile::open(file)?;
    let classes: Vec<String> = table.header().into_iter().skip(1).collect();
    let refuse = |what: String, hint: &str| problem(format!("{}{what}", file.display()), hint.to_owned());
    if classes.len() > MOST_KINDS {
        return Err(refuse(
            format!(" has {} classes, and at most {MOST_KINDS} are possible", count(classes.len())),
            "use a coarser level, or a tree, which has no limit",
        ));
    }
    let places: HashMap<&str, usize> = classes.iter().map(String::as_str).zip(0..).collect();
    if places.len() < classes.len() {
        return Err(refuse(" has two columns of one name".into(), "give each class one column"));
    }
    let mut rows: Vec<Vec<f64>> = vec![Vec::new(); classes.len()];
    while let Some((row, record)) = table.next_row()? {
        let class = record[0].trim();
        let Some(&place) = places.get(class) else {
            return Err(refuse(
                format!(", row {row}: the class {class:?} has no column"),
                "give each class a row and a column",
            ));
        };
        if !rows[place].is_empty() {
            return Err(refuse(format!(", row {row}: the class {class:?} has a row already"), "remove one"));
        }
        let number = |(column, cell): (usize, &str)| {
            cell.trim().parse::<f64>().map_err(|_| {
                refuse(
                    format!(", row {row}, column {:?}: {cell:?} is no number", classes[column]),
                    "write a number of at least 0",
                )
            })
        };
        rows[place] = record.iter().skip(1).enumerate().map(number).collect::<Result<_>>()?;
    }
    if let Some(place) = rows.iter().position(Vec::is_empty) {
        return Err(refuse(
            format!(" has no row for the class {:?}", classes[place]),
            "give each class a row and a column",
        ));
    }
    let kinship = Kinship::of_matrix(rows).with_context(|| file.display().to_string())?;
    Ok((classes, kinship))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::*;
    use super::*;

    fn read(
        source: impl Fn(PathBuf) -> KinshipSource,
        text: &str,
        rows: &[&[&str]],
    ) -> Result<(Taxonomy, Labels)> {
        let directory = files(&[("kin.csv", text.as_bytes())]);
        let rows: Vec<Vec<&str>> = rows.iter().map(|row| row.to_vec()).collect();
        source(directory.path().join("kin.csv")).labels(None, &rows, &|row| format!("item {row}"))
    }

    const PARENTS: &str = "class,parent\nfood,\nfruit,food\nvegetable,food\ntomato,fruit\ntomato,vegetable\n\
                           cherry tomato,tomato\napple,fruit\ncarrot,vegetable\n";

    #[test]
    fn a_class_has_all_ways_from_the_root_down_to_it() {
        let rows: [&[&str]; 5] = [&["cherry tomato"], &["apple"], &["carrot"], &["tomato"], &["fruit"]];
        let (taxonomy, labels) = read(KinshipSource::Parents, PARENTS, &rows).unwrap();
        assert_eq!(taxonomy.level_names(), ["depth 1", "depth 2", "depth 3"]);
        let names = |item| {
            labels.paths(item).iter().map(|path| taxonomy.path_names(path).join("/")).collect::<Vec<_>>()
        };
        assert_eq!(names(0), ["fruit/tomato/cherry tomato", "vegetable/tomato/cherry tomato"]);
        assert_eq!(names(1), ["fruit/apple/apple"]);
        assert_eq!(names(4), ["fruit"]);
        let shared = |a, b| labels.shared(a, &labels, b);
        assert_eq!(
            (shared(0, 1).level(), shared(0, 2).level(), shared(1, 2).level()),
            (Some(1), Some(1), Some(0))
        );
        assert_eq!((shared(0, 3).least, shared(0, 3).most), (2, 3), "it may be another kind of tomato");
    }

    #[test]
    fn a_graph_that_is_none_is_refused() {
        let fault = |text: &str, class: &str| {
            let (message, hint) = refusal(read(KinshipSource::Parents, text, &[&[class]]));
            format!("{message} {hint}")
        };
        let text = fault("class,parent\na,b\nb,c\nc,a\n", "a");
        assert!(text.contains("a class is above itself: ") && text.contains(" < "), "{text}");
        let text = fault("class,parent\na,b\nc,\n", "a");
        assert!(text.contains("has no row for \"b\", which it names as parents"), "{text}");
        let text = fault(PARENTS, "tomatoe");
        assert!(
            text.contains("has no class \"tomatoe\"") && text.contains("did you mean `tomato`"),
            "{text}"
        );
        assert!(fault("class,parent\n,b\n", "a").contains("row 2: the class is empty"));
        assert!(fault(PARENTS, "food").contains("is the root"));
        let diamonds: String =
            (0..12).map(|n| format!("l{n},t{n}\nr{n},t{n}\nt{0},l{n}\nt{0},r{n}\n", n + 1)).collect();
        let text = fault(&format!("class,parent\nt0,\n{diamonds}"), "t12");
        assert!(text.contains("more than 1000 ways"), "{text}");
    }

    #[test]
    fn cells_may_hold_several_labels() {
        let source = KinshipSource::Separator(";".into());
        let levels = ["kind", "name"].map(String::from);
        let rows =
            [vec!["fruit; vegetable", "tomato"], vec!["fruit", "apple;Gala"], vec!["vegetable", "tomato"]];
        let (taxonomy, labels) = source.labels(Some(&levels), &rows, &|row| format!("item {row}")).unwrap();
        assert_eq!(labels.paths(0).len(), 2);
        assert_eq!(taxonomy.path_names(labels.paths(1)[1]), ["fruit", "Gala"]);
        assert_eq!(labels.shared(0, &labels, 2).level(), Some(2));
        let uneven = [vec!["a;b;c", "d;e"]];
        let (message, _) = refusal(source.labels(Some(&levels), &uneven, &|row| format!("item {row}")));
        assert!(message.contains("item 0: the cells have [3, 2] labels"), "{message}");
    }

    #[test]
    fn a_matrix_gives_each_pair_of_classes_its_relevance() {
        let text = "class,a,b,c\nb,0.5,1,0\na,1,0.5,0.25\nc,0.25,0,1\n";
        let (taxonomy, labels) = read(KinshipSource::Matrix, text, &[&["c"], &["a"], &["b"]]).unwrap();
        assert_eq!(taxonomy.level_names(), ["relevance 0.25", "relevance 0.5", "relevance 1"]);
        assert_eq!(labels.shared(1, &labels, 2).level(), Some(2));
        assert_eq!(labels.shared(0, &labels, 2).level(), Some(0));
        assert_eq!(taxonomy.finest_name(labels.row(0)), "c");
        let fault = |text: &str| refusal(read(KinshipSource::Matrix, text, &[&["a"]])).0;
        assert!(fault("class,a,b\na,1,0\n").contains("has no row for the class \"b\""));
        assert!(fault("class,a\na,one\n").contains("row 2, column \"a\": \"one\" is no number"));
        assert!(fault("class,a,b\na,1,0.5\nb,0.4,1\n").contains("0.4 the other way round"));
        assert!(fault("class,b\nb,1\n").contains("has no row for the class \"a\""));
        assert!(fault("class,a,a\na,1,1\n").contains("two columns of one name"));
    }
}
