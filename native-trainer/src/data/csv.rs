//! A CSV file: one line per image, with columns for its path, its label at each level, and its split.

use std::path::Path;

use akin_formats::csv_file::CsvFile;
use anyhow::Result;

use super::listing::{Entry, ListedImage, Listing, LocalCopy, Source};
use super::table::{Rows, row_name};
use crate::config::TableConfig;

/// A CSV file of the user.
pub static ENTRY: Entry = Entry {
    title: "CSV file",
    layout: "a header line, then a line per image: path, a column per level, split",
    content: "the levels, classes and splits that the file names",
    counts: None,
    licence: "yours",
    source: Source::Own,
};

/// Lists the images of the file whose split is used.
pub fn list(copy: &LocalCopy<TableConfig>) -> Result<Listing> {
    Ok(Listing::from_files(images(copy)?, copy.settings.identity()))
}

/// The places of the columns that are read.
struct Columns {
    path: usize,
    split: Option<usize>,
    levels: Vec<usize>,
    junk: Option<usize>,
}

impl Columns {
    fn of(table: &CsvFile, copy: &LocalCopy<TableConfig>) -> Result<Self> {
        let data = copy.settings;
        Ok(Self {
            path: table.column(&data.path_column, "set data.path_column")?,
            split: match copy.draws_test {
                true => None,
                false => Some(
                    table
                        .column(&data.split_column, "set data.split_column, or split.test_fraction = 0.5")?,
                ),
            },
            levels: table.columns(data.label_columns(), "correct data.levels or data.class_column")?,
            junk: match &data.junk_column {
                None => None,
                Some(name) => Some(table.column(name, "remove data.junk_column")?),
            },
        })
    }
}

/// Checks that the file has the columns that are read, without reading its rows.
///
/// # Errors
///
/// A file that cannot be read, and a missing column.
pub fn check_columns(copy: &LocalCopy<TableConfig>) -> Result<()> {
    Columns::of(&CsvFile::open(copy.data_path)?, copy).map(drop)
}

fn images(copy: &LocalCopy<TableConfig>) -> Result<Vec<ListedImage>> {
    let file = copy.data_path;
    let mut table = CsvFile::open(file)?;
    let columns = Columns::of(&table, copy)?;
    let rows = Rows::new(copy.settings, file.parent().unwrap_or(Path::new("")));

    let mut images = Vec::new();
    while let Some((row, record)) = table.next_row()? {
        let place = || row_name(file, row);
        let split = match columns.split {
            None => None,
            Some(column) => match rows.split(record[column].trim(), place)? {
                None => continue,
                split => split,
            },
        };
        let labels = columns.levels.iter().map(|&column| record[column].trim().to_owned()).collect();
        let image = rows.file(record[columns.path].trim(), labels, split, place)?;
        let junk = Rows::junk(columns.junk.map_or("", |column| &record[column]));
        images.push(ListedImage { junk, ..image });
    }
    Ok(images)
}

#[cfg(test)]
mod tests {
    use super::super::Dataset;
    use super::super::fixtures::*;
    use crate::config::DataConfig;

    const GOOD: &str = "path,variety,kind,split
a.jpg, Gala,Apple,train
sub/b.jpg,Fuji,Apple,test
c.jpg,Fuji,Apple,test
d.jpg,Fuji,Apple,
";

    fn refused(text: &str, more: &str) -> (String, String) {
        let (_directory, data) = csv(text, more);
        refusal(Dataset::read(&data))
    }

    #[test]
    fn labels_are_read_coarse_to_fine_whatever_the_order_of_the_columns() {
        let (directory, data) = csv(&format!("\u{feff}{GOOD}"), "");
        let dataset = Dataset::read(&data).unwrap();
        assert_eq!(dataset.paths.len(), 3, "a line without a split is skipped");
        assert_eq!(dataset.paths[1], directory.path().join("sub/b.jpg"));
        assert_eq!(dataset.taxonomy.class_name(1, dataset.labels.row(0)[0]), "Apple");
        assert_eq!(dataset.taxonomy.class_name(2, dataset.labels.row(0)[1]), "Gala");

        let (_directory, data) = csv(GOOD, "images = '/pictures'");
        assert_eq!(Dataset::read(&data).unwrap().paths[1].to_str(), Some("/pictures/sub/b.jpg"));
    }

    #[test]
    fn a_missing_column_is_named_with_the_columns_of_the_file() {
        let (message, hint) = refused(&GOOD.replace("variety", "vareity"), "");
        assert!(
            message.contains("has no column `variety`; its columns are path, vareity, kind, split"),
            "{message}"
        );
        assert!(hint.starts_with("did you mean `vareity`?"), "{hint}");
        let columns: Vec<String> = (0..300_000).map(|number| format!("column {number}")).collect();
        assert!(refused(&columns.join(","), "").0.ends_with("column 23 and 299976 more"));
        assert!(refused(&GOOD.replace("split", "set"), "").1.contains("split.test_fraction"));
        assert!(refused(GOOD, "path_column = 'file'").0.contains("no column `file`"));
    }

    #[test]
    fn a_file_of_a_spreadsheet_in_latin_letters_is_read_as_such() {
        let (directory, data) = csv(GOOD, "");
        let text: Vec<u8> = GOOD.replace("Gala", "Königin").chars().map(|letter| letter as u8).collect();
        std::fs::write(directory.path().join("labels.csv"), text).unwrap();
        let dataset = Dataset::read(&data).unwrap();
        assert_eq!(dataset.taxonomy.class_name(2, dataset.labels.row(0)[1]), "Königin");
    }

    #[test]
    fn semicolons_and_tabs_may_stand_between_the_columns() {
        for separator in [";", "\t"] {
            let (_directory, data) = csv(&GOOD.replace(',', separator), "");
            assert_eq!(Dataset::read(&data).unwrap().paths.len(), 3, "{separator:?}");
        }
    }

    #[test]
    fn a_column_that_is_used_stands_once() {
        let (message, hint) = refused(&GOOD.replace("split\n", "kind\n"), "[split]\ntest_fraction = 0.5");
        assert!(message.ends_with("has the column `kind` more than once"), "{message}");
        assert!(hint.contains("rename"), "{hint}");
        // A column that is not used may stand twice.
        let text = "path,kind,variety,split,note,note\na,x,y,train,1,2\nb,x,y,test,1,2\n";
        let (_directory, data) = csv(text, "");
        Dataset::read(&data).unwrap();
    }

    #[test]
    fn an_unknown_split_is_named_with_its_line() {
        let (message, hint) = refused(&GOOD.replace("Gala,Apple,train", "Gala,Apple,trian"), "");
        assert!(message.ends_with("labels.csv, row 2: `trian` is not a split"), "{message}");
        assert!(hint.starts_with("did you mean `train`?"), "{hint}");
    }

    #[test]
    fn another_evaluation_split_is_not_used() {
        let text = GOOD.replace("d.jpg,Fuji,Apple,", "d.jpg,Fuji,Apple,Validation");
        let (directory, mut data) = csv(&text, "");
        assert_eq!(Dataset::read(&data).unwrap().paths.len(), 3);
        let DataConfig::Csv(table) = &mut data.data else { panic!("a CSV file") };
        table.splits.test = "Validation".into();
        let paths = ["a.jpg", "d.jpg"].map(|name| directory.path().join(name));
        assert_eq!(Dataset::read(&data).unwrap().paths, paths);
        // Which of two spellings is meant?
        assert!(
            refused(&GOOD.replace("d.jpg,Fuji,Apple,", "d.jpg,Fuji,Apple,Test"), "").0.contains("`Test`")
        );
        let (message, hint) = refused(&GOOD.replace("Apple,test", "Apple,val"), "");
        assert!(message.ends_with("has no evaluation split"), "{message}");
        assert!(hint.contains("set data.splits.test to the name"), "{hint}");
    }

    #[test]
    fn a_missing_label_is_refused_unknown_or_the_one_above() {
        let text = GOOD.replace(" Gala", "");
        let (message, hint) = refused(&text, "missing = 'refuse'");
        assert!(message.ends_with("row 2: the label `variety` is missing"), "{message}");
        assert!(hint.contains("data.missing"));
        let (_directory, data) = csv(&text, "missing = 'parent'");
        let dataset = Dataset::read(&data).unwrap();
        assert_eq!(dataset.taxonomy.class_name(2, dataset.labels.row(0)[1]), "Apple");
        let (_directory, data) = csv(&text, "");
        assert_eq!(Dataset::read(&data).unwrap().labels.known(0), 1);
        for missing in ["unknown", "parent"] {
            let (message, _) = refused(&GOOD.replace(" Gala,Apple", ","), &format!("missing = '{missing}'"));
            assert!(message.contains("row 2: the label `kind` is missing"), "{message}");
        }
    }

    #[test]
    fn a_label_above_a_known_one_is_filled_from_the_tree_or_refused() {
        let (_directory, data) = csv(&GOOD.replace("sub/b.jpg,Fuji,Apple", "sub/b.jpg,Fuji,"), "");
        let dataset = Dataset::read(&data).unwrap();
        assert_eq!(dataset.labels.row(1), dataset.labels.row(2));
        let (message, hint) = refused(&GOOD.replace(" Gala,Apple", "Gala,"), "");
        assert!(
            message.contains("kind of") && message.contains("a.jpg is empty, and no other row has \"Gala\""),
            "{message}"
        );
        assert!(hint.contains("fill it in"), "{hint}");
    }

    #[test]
    fn rows_whose_file_does_not_exist_are_left_out_if_the_config_says_so() {
        let rows = ["a.jpg", "b.jpg", "gone.jpg", "c.jpg"].map(|path| format!("{path},Gala,Apple,test\n"));
        let text = format!("path,variety,kind,split\n{}t.jpg,Gala,Apple,train\n", rows.concat());
        let (directory, data) = csv(&text, "missing_files = 'skip'");
        for name in ["a.jpg", "b.jpg", "c.jpg", "t.jpg"] {
            std::fs::write(directory.path().join(name), b"").unwrap();
        }
        let dataset = Dataset::load(&data).unwrap();
        assert_eq!((dataset.splits.query.len(), dataset.splits.train.len()), (3, 1));
        let words = dataset.missing_files_in_words().unwrap();
        assert!(
            words.starts_with("1 of 5 images do not exist and are left out: ") && words.ends_with("gone.jpg"),
            "{words}"
        );
        std::fs::write(directory.path().join("gone.jpg"), b"").unwrap();
        assert_eq!(Dataset::load(&data).unwrap().missing_files_in_words(), None);
    }

    #[test]
    fn a_path_of_a_windows_machine_names_the_same_file() {
        let (directory, data) = csv(&GOOD.replace("sub/b.jpg", "sub\\b.jpg"), "");
        assert_eq!(Dataset::read(&data).unwrap().paths[1], directory.path().join("sub/b.jpg"));
    }

    #[test]
    fn words_for_an_unknown_label_are_those_of_the_config() {
        let text = GOOD.replace(" Gala", "Malus SP.").replace("c.jpg,Fuji", "c.jpg,Unknown");
        let (_directory, data) = csv(&text, "unknown_words = ['sp.', 'unknown']");
        let dataset = Dataset::read(&data).unwrap();
        assert_eq!([0, 1, 2].map(|item| dataset.labels.known(item)), [1, 2, 1]);
        let (_directory, data) = csv(&text, "");
        assert_eq!(Dataset::read(&data).unwrap().taxonomy.class_count(2), 3);
    }

    #[test]
    fn a_missing_empty_or_uneven_file_is_refused() {
        let (directory, mut data) = csv("", "");
        let (message, hint) = refusal(Dataset::read(&data));
        assert!(
            message.ends_with("labels.csv is empty") && hint.contains("the names of the columns"),
            "{message}"
        );
        data.data.set_path(directory.path().join("nowhere.csv"));
        assert!(refusal(Dataset::read(&data)).0.contains("nowhere.csv cannot be read"));
        assert!(refused("path,variety,kind,split\n", "").0.ends_with("has no images"));
        let (message, _) = refused("path,variety,kind,split\na.jpg,Gala\n", "");
        assert!(
            message.ends_with("labels.csv, row 2: the row has 2 cells, but the header has 4"),
            "{message}"
        );
        assert!(refused("path,variety,kind,split\n,Gala,Apple,train\n", "").0.contains("the path is empty"));
    }
}
