//! A file that gives the classes of CUB-200-2011 or Cars-196 their coarse labels, which are not part of these data sets.
//!
//! Two formats are read. The published code of Chang et al. (CVPR 2021) has rows of numbers such as `[4,6,9],`: the
//! class, and its coarse classes. A CSV file has a column `class`, with numbers or names, and a column for each coarse
//! level. The columns of the published code are not in order: the one with the fewest classes is the coarsest level.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use akin_base::problem::problem;
use akin_base::quantities::counted;
use akin_formats::csv_file::CsvFile;
use anyhow::Result;

use super::listing::LocalCopy;
use crate::config::HierarchyConfig;

/// Where the published hierarchies are.
const WHERE: &str = "the repository PRIS-CV/Fine-Grained-or-Not on GitHub has it: birds/birds_get_tree_target_2.py for \
                     `cub200`, cars/cars_get_tree_target_2.py for `cars196`; or write a CSV file with a column `class` \
                     and a column per coarse level";

/// The coarse labels of each class.
pub struct Hierarchy {
    file: Option<PathBuf>,
    /// By the number or the name of a class, coarse → fine.
    labels: HashMap<String, Vec<String>>,
}

impl Hierarchy {
    /// Reads `data.hierarchy` for a data set. Without it, no class has coarse labels.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, that is in neither format, or that has other levels than the data set.
    pub fn read(copy: &LocalCopy<HierarchyConfig>) -> Result<Self> {
        let Some(file) = copy.settings.hierarchy.clone() else {
            return Ok(Self { file: None, labels: HashMap::new() });
        };
        let levels = copy.kind.levels(true);
        let levels = &levels[..levels.len() - 1];
        let is_csv = file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
        let labels = if is_csv { csv(&file, levels)? } else { published(copy, &file, levels)? };
        Ok(Self { file: Some(file), labels })
    }

    /// The coarse labels of a class with this number and name, coarse → fine.
    ///
    /// # Errors
    ///
    /// A class that the file does not have.
    pub fn above(&self, number: usize, name: &str) -> Result<Vec<String>> {
        let Some(file) = &self.file else { return Ok(Vec::new()) };
        let labels = self.labels.get(name).or_else(|| self.labels.get(&number.to_string()));
        labels.cloned().ok_or_else(|| {
            problem(
                format!("{} has no parent for class {number} ({name})", file.display()),
                "add the class to the file, or check that the file belongs to this data set",
            )
        })
    }
}

fn csv(file: &Path, levels: &[&str]) -> Result<HashMap<String, Vec<String>>> {
    let mut table = CsvFile::open(file)?;
    let class = table.column("class", "name the column of the classes so")?;
    let names: Vec<String> = levels.iter().map(|&level| level.to_owned()).collect();
    let columns = table.columns(&names, "name a column after each coarse level")?;
    let mut labels = HashMap::new();
    while let Some((row, record)) = table.next_row()? {
        let above: Vec<String> = columns.iter().map(|&column| record[column].trim().to_owned()).collect();
        if let Some(level) = above.iter().position(String::is_empty) {
            return Err(problem(
                format!("{}, row {row}: the class has no {}", file.display(), levels[level]),
                "write its label into the cell",
            ));
        }
        labels.insert(record[class].trim().to_owned(), above);
    }
    Ok(labels)
}

fn published(
    copy: &LocalCopy<HierarchyConfig>,
    file: &Path,
    levels: &[&str],
) -> Result<HashMap<String, Vec<String>>> {
    let text = copy.text(file)?;
    let row = |line: &str| -> Option<Vec<usize>> {
        let numbers = line.trim().strip_prefix('[')?.split_once(']')?.0;
        numbers.split(',').map(|number| number.trim().parse().ok()).collect()
    };
    let rows: Vec<Vec<usize>> = text.lines().filter_map(row).collect();
    if rows.is_empty() {
        return Err(problem(format!("{} has no rows of numbers such as [4,6,9]", file.display()), WHERE));
    }
    if let Some(row) = rows.iter().find(|row| row.len() != levels.len() + 1) {
        return Err(problem(
            format!(
                "{} has the row {row:?}, which is not a class and {} ({})",
                file.display(),
                counted(levels.len(), "coarse class", "coarse classes"),
                levels.join(", ")
            ),
            WHERE,
        ));
    }
    let mut columns: Vec<usize> = (1..=levels.len()).collect();
    columns.sort_by_key(|&column| rows.iter().map(|row| row[column]).collect::<BTreeSet<_>>().len());
    let label = |(level, &column): (&&str, &usize), row: &[usize]| format!("{level} {}", row[column]);
    let labels = |row: &Vec<usize>| levels.iter().zip(&columns).map(|place| label(place, row)).collect();
    Ok(rows.iter().map(|row| (row[0].to_string(), labels(row))).collect())
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::*;
    use super::*;
    use crate::config::DataKind;

    fn hierarchy(name: &str, text: &str) -> Result<Hierarchy> {
        let directory = files(&[(name, text.as_bytes())]);
        let file = directory.path().join(name);
        let settings = HierarchyConfig {
            path: directory.path().to_owned(),
            levels: vec!["species".into()],
            hierarchy: Some(file),
        };
        Hierarchy::read(&LocalCopy {
            settings: &settings,
            data_path: &settings.path,
            kind: DataKind::Cub200,
            layout: "",
            draws_test: false,
        })
    }

    #[test]
    fn a_csv_file_names_classes_by_number_or_name() {
        let read = hierarchy("h.csv", "class,family,order\n1,Gulls,Shorebirds\n002.Tern,Terns,Shorebirds\n")
            .unwrap();
        assert_eq!(read.above(1, "001.Gull").unwrap(), ["Shorebirds", "Gulls"]);
        assert_eq!(read.above(2, "002.Tern").unwrap(), ["Shorebirds", "Terns"]);
        let (message, hint) = refusal(read.above(3, "003.Owl"));
        assert!(message.ends_with("h.csv has no parent for class 3 (003.Owl)"), "{message}");
        assert!(hint.contains("add the class"));
    }

    #[test]
    fn a_file_of_another_format_is_refused_with_the_place_of_the_right_one() {
        let (message, hint) = refusal(hierarchy("h.txt", "1 2\n3 4\n"));
        assert!(message.contains("has no rows of numbers") && hint.contains("PRIS-CV"), "{message} {hint}");
        let (message, _) = refusal(hierarchy("cars.py", "[1, 7],\n"));
        assert!(message.contains("is not a class and 2 coarse classes (order, family)"), "{message}");
        assert!(refusal(hierarchy("h.csv", "class,family\n1,Gulls\n")).0.contains("has no column `order`"));
        let (message, _) = refusal(hierarchy("h.csv", "class,family,order\n1,,Owls\n"));
        assert!(message.ends_with("row 2: the class has no family"), "{message}");
    }
}
