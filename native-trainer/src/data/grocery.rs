//! Grocery Store: photos of groceries. `train.txt` and `test.txt` list the images with their class, and `classes.csv` its
//! name and kind; the department is a folder of the path. `val.txt` is not used.

use std::collections::HashMap;

use akin_core::taxonomy::ClassIdentity;
use anyhow::Result;

use super::listing::{
    Count, Counts, Entry, ListedImage, Listing, LocalCopy, Source, Split, SplitCounts, damaged,
};

/// Grocery Store.
pub static ENTRY: Entry = Entry {
    title: "Grocery Store",
    layout: "classes.csv, train.txt, test.txt, train/DEPARTMENT/*/*.jpg, test/DEPARTMENT/*/*.jpg (also in dataset)",
    content: "3 departments, 43 kinds, 81 varieties; training and test photos are of the same varieties",
    counts: Some(Counts {
        splits: &[
            SplitCounts { split: "train", images: Count::Exactly(2_640), classes: &[("variety", 81)] },
            SplitCounts { split: "test", images: Count::Exactly(2_485), classes: &[("variety", 81)] },
        ],
        classes: &[("department", 3), ("kind", 43), ("variety", 81)],
        published_in: "Klasson et al., WACV 2019, and counted in the published files",
    }),
    licence: "MIT",
    source: Source::Page("https://github.com/marcusklasson/GroceryStoreDataset"),
};

/// Lists the images of a copy.
pub fn list(copy: &LocalCopy) -> Result<Listing> {
    let root = copy.root("classes.csv", &["dataset"]);
    let file = if root == copy.data_path { "classes.csv" } else { "dataset/classes.csv" };
    let columns = ["Class ID (int)", "Class Name (str)", "Coarse Class Name (str)"];
    let rows = copy.rows(file, columns)?;
    let names: HashMap<String, [String; 2]> =
        rows.into_iter().map(|(_, [class, variety, kind])| (class, [kind, variety])).collect();
    let mut images = Vec::new();
    for (split, name) in [(Split::Train, "train.txt"), (Split::Test, "test.txt")] {
        let file = root.join(name);
        for (line, [text]) in (1..).zip(copy.lines::<1>(&file, 0)?) {
            let cells: Vec<&str> = text.split(',').map(str::trim).collect();
            let [path, class, ..] = cells[..] else {
                return Err(damaged(&file, line, &format!("{text:?} is not a path and its classes")));
            };
            let Some(department) = path.split('/').nth(1) else {
                return Err(damaged(&file, line, &format!("{path} has no folder for its department")));
            };
            let Some([kind, variety]) = names.get(class) else {
                return Err(damaged(&file, line, &format!("class {class} is not in classes.csv")));
            };
            images.push(ListedImage::file(
                root.join(path),
                vec![department.to_owned(), kind.clone(), variety.clone()],
                split,
            ));
        }
    }
    Ok(Listing::from_files(images, ClassIdentity::Name))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::*;

    #[test]
    fn the_department_is_a_folder_and_the_rest_is_in_a_table() {
        let tree: [(&str, &[u8]); 3] = [
            (
                "dataset/classes.csv",
                b"Class Name (str),Class ID (int),Coarse Class Name (str),Coarse Class ID (int)\nGala,4,Apple,0\nCabbage,61,Cabbage,30\n",
            ),
            ("dataset/train.txt", b"train/Fruit/Apple/Gala/Gala_001.jpg, 4, 0\ntrain/Vegetables/Cabbage/Cabbage_001.jpg, 61, 30\n"),
            ("dataset/test.txt", b"test/Fruit/Apple/Gala/Gala_002.jpg, 4, 0\n"),
        ];
        let copy = files(&tree);
        let dataset = read(&copy, "kind = 'grocery'");
        assert_eq!(splits(&dataset), [("train", 2), ("test", 1)]);
        assert_eq!(labels(&dataset, 0), ["Fruit", "Apple", "Gala"]);
        assert_eq!(labels(&dataset, 1), ["Vegetables", "Cabbage", "Cabbage"]);
        let mut tree = tree;
        tree[2].1 = b"test/Fruit/Apple/Gala/Gala_002.jpg, 5, 0\n";
        let (message, _) = refusal(try_to_read(&files(&tree), "kind = 'grocery'"));
        assert!(message.ends_with("test.txt, line 1: class 5 is not in classes.csv"), "{message}");
    }
}
