//! iNaturalist 2018 with the retrieval splits of Smooth-AP (Brown et al., ECCV 2020): with species and the groups that
//! are folders ([`BASE`]), or with the seven ranks of biology from `train2018.json` ([`FULL`]).

use std::collections::HashMap;
use std::path::Path;

use akin_base::problem::{Advise, problem};
use akin_core::taxonomy::ClassIdentity;
use anyhow::Result;
use serde::Deserialize;

use super::listing::{
    Count, Counts, Entry, ListedImage, Listing, LocalCopy, Source, Split, SplitCounts, damaged,
};

const LAYOUT: &str = "Inat_dataset_splits/Inaturalist_train_set1.txt and …_test_set1.txt, train2018.json, \
                      train_val2018/GROUP/SPECIES/*.jpg";
const LICENCE: &str = "licences of the photographers, for non-commercial research";
const SOURCE: Source = Source::Page("https://github.com/visipedia/inat_comp/tree/master/2018");
const SPLITS: &[SplitCounts] = &[
    SplitCounts { split: "train", images: Count::Exactly(325_846), classes: &[("species", 5_690)] },
    SplitCounts { split: "test", images: Count::Exactly(136_093), classes: &[("species", 2_452)] },
];
const PUBLISHED_IN: &str = "Brown et al., ECCV 2020 (Smooth-AP); the sums: HAPPIER, section B.1";

/// iNat-base.
pub static BASE: Entry = Entry {
    title: "iNaturalist 2018, base",
    layout: LAYOUT,
    content: "the folders' groups of 8,142 species; training and test species differ",
    counts: Some(Counts { splits: SPLITS, classes: &[("species", 8_142)], published_in: PUBLISHED_IN }),
    licence: LICENCE,
    source: SOURCE,
};

/// iNat-full.
pub static FULL: Entry = Entry {
    title: "iNaturalist 2018, full",
    layout: LAYOUT,
    content: "seven ranks, from kingdom to 8,142 species; training and test species differ",
    counts: Some(Counts { splits: SPLITS, classes: &[("species", 8_142)], published_in: PUBLISHED_IN }),
    licence: LICENCE,
    source: SOURCE,
};

/// `train2018.json`, of which only the classes are read.
#[derive(Deserialize)]
struct Annotations {
    categories: Vec<Category>,
}

#[derive(Deserialize)]
struct Category {
    id: u64,
    name: String,
    #[serde(flatten)]
    ranks: Option<Ranks>,
}

#[derive(Deserialize)]
struct Ranks {
    kingdom: String,
    phylum: String,
    class: String,
    order: String,
    family: String,
    genus: String,
}

/// Lists the images with their species and the groups that the folders name.
pub fn list_base(copy: &LocalCopy) -> Result<Listing> {
    list(copy, false)
}

/// Lists the images with all seven ranks.
pub fn list_full(copy: &LocalCopy) -> Result<Listing> {
    list(copy, true)
}

fn list(copy: &LocalCopy, full: bool) -> Result<Listing> {
    let json = copy.path("train2018.json");
    let annotations: Annotations = serde_json::from_slice(&copy.bytes(&json)?).advise(
        || format!("{} is not the list of iNaturalist's classes", json.display()),
        "unpack train2018.json.tar.gz of iNaturalist 2018 again",
    )?;
    let mut with_name: HashMap<&str, usize> = HashMap::new();
    for category in &annotations.categories {
        *with_name.entry(&category.name).or_default() += 1;
    }
    let mut species: HashMap<u64, (String, Option<&Ranks>)> = HashMap::new();
    for Category { id, name, ranks } in &annotations.categories {
        // Two species of one name are two classes.
        let label = if with_name[name.as_str()] == 1 { name.clone() } else { format!("{name} ({id})") };
        species.insert(*id, (label, ranks.as_ref()));
    }
    let mut images = Vec::new();
    for (split, name) in [(Split::Train, "train"), (Split::Test, "test")] {
        let file = copy.path(&format!("Inat_dataset_splits/Inaturalist_{name}_set1.txt"));
        for (line, [path]) in (1..).zip(copy.lines::<1>(&file, 0)?) {
            let folders: Vec<&str> = path.rsplit('/').collect();
            let [_, id, group, ..] = folders[..] else {
                return Err(damaged(&file, line, &format!("{path} has no folders for group and species")));
            };
            let (label, ranks) =
                id.parse().ok().and_then(|id: u64| species.get(&id)).ok_or_else(|| {
                    damaged(&file, line, &format!("the class {id} is not in train2018.json"))
                })?;
            let mut labels = if full { ranks_above(*ranks, id, &json)? } else { vec![group.to_owned()] };
            labels.push(label.clone());
            images.push(ListedImage::file(copy.path(&path), labels, split));
        }
    }
    // A genus of animals may have the name of a genus of plants.
    Ok(Listing::from_files(images, ClassIdentity::Path))
}

/// The ranks above a species, coarse → fine.
fn ranks_above(ranks: Option<&Ranks>, id: &str, json: &Path) -> Result<Vec<String>> {
    let Some(ranks) = ranks else {
        return Err(problem(
            format!(
                "{}: the class {id} has no kingdom, phylum, class, order, family and genus",
                json.display()
            ),
            "take the train2018.json that iNaturalist published after the competition, which has them",
        ));
    };
    let Ranks { kingdom, phylum, class, order, family, genus } = ranks;
    Ok([kingdom, phylum, class, order, family, genus].map(String::clone).to_vec())
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::*;

    const JSON: &str = r#"{"info": {}, "images": [{"id": 1, "file_name": "x"}], "categories": [
        {"id": 3, "name": "Bufo bufo", "supercategory": "Amphibia", "kingdom": "Animalia", "phylum": "Chordata",
         "class": "Amphibia", "order": "Anura", "family": "Bufonidae", "genus": "Bufo"},
        {"id": 7, "name": "Rana arvalis", "supercategory": "Amphibia", "kingdom": "Animalia", "phylum": "Chordata",
         "class": "Amphibia", "order": "Anura", "family": "Ranidae", "genus": "Rana"}], "annotations": []}"#;
    const TRAIN: &str = "train_val2018/Amphibia/3/a.jpg\ntrain_val2018/Amphibia/3/b.jpg\n";
    const TEST: &str = "train_val2018/Amphibia/7/c.jpg\ntrain_val2018/Amphibia/7/d.jpg\n";

    fn copy(json: &str, test: &str) -> tempfile::TempDir {
        files(&[
            ("train2018.json", json.as_bytes()),
            ("Inat_dataset_splits/Inaturalist_train_set1.txt", TRAIN.as_bytes()),
            ("Inat_dataset_splits/Inaturalist_test_set1.txt", test.as_bytes()),
        ])
    }

    #[test]
    fn full_has_seven_levels_and_base_two() {
        let copy = copy(JSON, TEST);
        let full = read(&copy, "kind = 'inat_full'");
        assert_eq!(splits(&full), [("train", 2), ("test", 2)]);
        let row = ["Animalia", "Chordata", "Amphibia", "Anura", "Ranidae", "Rana", "Rana arvalis"];
        assert_eq!(labels(&full, 2), row);
        assert_eq!(labels(&read(&copy, "kind = 'inat_base'"), 0), ["Amphibia", "Bufo bufo"]);
    }

    #[test]
    fn classes_without_ranks_or_of_no_list_are_refused() {
        let (message, _) = refusal(try_to_read(&copy(JSON, &TEST.replace('7', "8")), "kind = 'inat_base'"));
        assert!(
            message.ends_with("test_set1.txt, line 1: the class 8 is not in train2018.json"),
            "{message}"
        );
        let old = r#"{"categories": [{"id": 3, "name": "3"}, {"id": 7, "name": "7"}]}"#;
        read(&copy(old, TEST), "kind = 'inat_base'");
        let (message, hint) = refusal(try_to_read(&copy(old, TEST), "kind = 'inat_full'"));
        assert!(message.contains("the class 3 has no kingdom"), "{message}");
        assert!(hint.contains("after the competition"), "{hint}");
    }
}
