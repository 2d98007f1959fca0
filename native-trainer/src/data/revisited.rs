//! Revisited Oxford and Paris (Radenović et al., CVPR 2018). Each query has gallery images that are easy, hard or unclear
//! to match; `data.difficulty` says which are positives and which are junk, left out of the query's ranking. A query is
//! the part of its photo inside a box. There is no training split.
//!
//! Queries with the same lists are one class. A gallery image that is a positive of several classes is listed once for
//! each, and for the queries of one class its other copies are left out, so that every ranking is that of the protocol.

use std::path::Path;

use akin_base::problem::problem;
use akin_core::taxonomy::ClassIdentity;
use akin_formats::mat::{self, Value};
use anyhow::{Context, Result};

use super::listing::{
    Count, Counts, Entry, ListedImage, Listing, LocalCopy, Source, Split, SplitCounts, unpickle,
};
use super::storage::{Part, Region};
use crate::config::{DataKind, Difficulty, RevisitedConfig};

const LICENCE: &str = "photos from Flickr with the licences of their photographers, for research";
const SOURCE: Source =
    Source::Page("https://www.robots.ox.ac.uk/~vgg/data; the lists: http://cmp.felk.cvut.cz/revisitop");
const CONTENT: &str =
    "70 queries of 11 landmarks, and a gallery in which some images are left out of a query's ranking";
const PUBLISHED_IN: &str = "Radenović et al., CVPR 2018";

/// Revisited Oxford.
pub static OXFORD: Entry = Entry {
    title: "Revisited Oxford",
    layout: "gnd_roxford5k.mat or gnd_roxford5k.pkl, jpg/*.jpg",
    content: CONTENT,
    counts: Some(Counts {
        splits: &[
            SplitCounts { split: "query", images: Count::Exactly(70), classes: &[] },
            SplitCounts { split: "gallery", images: Count::Exactly(4_993), classes: &[] },
        ],
        classes: &[],
        published_in: PUBLISHED_IN,
    }),
    licence: LICENCE,
    source: SOURCE,
};

/// Revisited Paris.
pub static PARIS: Entry = Entry {
    title: "Revisited Paris",
    layout: "gnd_rparis6k.mat or gnd_rparis6k.pkl, jpg/*.jpg",
    content: CONTENT,
    counts: Some(Counts {
        splits: &[
            SplitCounts { split: "query", images: Count::Exactly(70), classes: &[] },
            SplitCounts { split: "gallery", images: Count::Exactly(6_322), classes: &[] },
        ],
        classes: &[],
        published_in: PUBLISHED_IN,
    }),
    licence: LICENCE,
    source: SOURCE,
};

/// The published lists.
#[derive(Debug, Default)]
struct GroundTruth {
    gallery: Vec<String>,
    queries: Vec<Query>,
}

#[derive(Debug)]
struct Query {
    name: String,
    region: [f64; 4],
    /// Positions in the gallery, from 0, sorted.
    easy: Vec<usize>,
    hard: Vec<usize>,
    junk: Vec<usize>,
}

/// Lists the images of a copy.
pub fn list(copy: &LocalCopy<RevisitedConfig>) -> Result<Listing> {
    let name = if copy.kind == DataKind::Rparis6k { "rparis6k" } else { "roxford5k" };
    let [mat, pickle] = ["mat", "pkl"].map(|ending| copy.path(&format!("gnd_{name}.{ending}")));
    let truth = if mat.exists() || !pickle.exists() {
        from_mat(&copy.bytes(&mat)?, &mat)
    } else {
        from_pickle(&copy.bytes(&pickle)?, &pickle)
    }?;
    Ok(images(&truth, copy.settings.difficulty, |name| copy.path("jpg").join(format!("{name}.jpg"))))
}

/// The lists of a query for a difficulty: positives and junk.
fn lists(query: &Query, difficulty: Difficulty) -> (Vec<usize>, Vec<usize>) {
    let Query { easy, hard, junk, .. } = query;
    let sorted = |parts: &[&[usize]]| {
        let mut all = parts.concat();
        all.sort_unstable();
        all.dedup();
        all
    };
    match difficulty {
        Difficulty::Easy => (easy.clone(), sorted(&[hard, junk])),
        Difficulty::Medium => (sorted(&[easy, hard]), junk.clone()),
        Difficulty::Hard => (hard.clone(), sorted(&[easy, junk])),
    }
}

fn images(truth: &GroundTruth, difficulty: Difficulty, path: impl Fn(&str) -> std::path::PathBuf) -> Listing {
    let mut classes: Vec<(Vec<usize>, Vec<usize>)> = Vec::new();
    let mut images = Vec::new();
    for query in &truth.queries {
        let lists = lists(query, difficulty);
        let class = classes.iter().position(|known| *known == lists).unwrap_or_else(|| {
            classes.push(lists);
            classes.len() - 1
        });
        let [left, top, right, bottom] = query.region.map(|edge| edge.max(0.0).round() as u32);
        images.push(ListedImage {
            path: path(&query.name),
            part: Part::Region(Region { left, top, right, bottom }),
            labels: vec![class_name(class)],
            junk: Vec::new(),
            split: Some(Split::Query),
        });
    }
    for (position, name) in truth.gallery.iter().enumerate() {
        let holds = |list: &[usize]| list.binary_search(&position).is_ok();
        let of: Vec<usize> = (0..classes.len()).filter(|&class| holds(&classes[class].0)).collect();
        let junk_of: Vec<usize> =
            (0..classes.len()).filter(|&class| holds(&classes[class].1) && !of.contains(&class)).collect();
        // Without a class it is a stranger to every query.
        let copies = if of.is_empty() { vec![None] } else { of.iter().copied().map(Some).collect() };
        for (number, class) in copies.iter().enumerate() {
            // The queries of a class rank its copy; all others rank the first.
            let left_out = (0..classes.len()).filter(|&other| {
                let ranks = if of.contains(&other) { *class == Some(other) } else { number == 0 };
                !ranks || junk_of.contains(&other)
            });
            images.push(ListedImage {
                path: path(name),
                part: Part::Whole,
                labels: vec![class.map_or("other".to_owned(), class_name)],
                junk: left_out.map(class_name).collect(),
                split: Some(Split::Gallery),
            });
        }
    }
    Listing::from_files(images, ClassIdentity::Name)
}

fn class_name(class: usize) -> String {
    format!("landmark {}", class + 1)
}

fn lacks(file: &Path, what: &str) -> anyhow::Error {
    problem(
        format!("{} has no {what}", file.display()),
        "take the file of the revisited data set from http://cmp.felk.cvut.cz/revisitop",
    )
}

/// Positions from numbers that are counted from `first`.
fn positions(numbers: &[f64], first: f64, gallery: usize) -> Option<Vec<usize>> {
    let position = |number: &f64| {
        let position = number - first;
        (position >= 0.0 && position < gallery as f64 && position.fract() == 0.0).then_some(position as usize)
    };
    let mut positions: Vec<usize> = numbers.iter().map(position).collect::<Option<_>>()?;
    positions.sort_unstable();
    Some(positions)
}

/// MATLAB counts from 1.
fn from_mat(bytes: &[u8], file: &Path) -> Result<GroundTruth> {
    let variables = mat::parse(bytes).with_context(|| file.display().to_string())?;
    let variable = |name: &str| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value);
    let names = |name: &str| -> Result<Vec<String>> {
        let Some(Value::Cell(names)) = variable(name) else {
            return Err(lacks(file, &format!("list `{name}`")));
        };
        let names = names.iter().map(|name| name.text().map(str::to_owned)).collect::<Option<_>>();
        names.ok_or_else(|| lacks(file, &format!("names in `{name}`")))
    };
    let (gallery, queries) = (names("imlist")?, names("qimlist")?);
    let truth = variable("gnd").and_then(Value::structs).ok_or_else(|| lacks(file, "list `gnd`"))?;
    let numbers = |query: usize, field: &str| match truth.get(query, field) {
        Some(Value::Numbers(numbers)) => Some(numbers.as_slice()),
        _ => None,
    };
    let query = |(number, name): (usize, String)| {
        let list = |field| positions(numbers(number, field)?, 1.0, gallery.len());
        Some(Query {
            name,
            region: numbers(number, "bbx")?.try_into().ok()?,
            easy: list("easy")?,
            hard: list("hard")?,
            junk: list("junk")?,
        })
    };
    let queries = queries.into_iter().enumerate().map(query).collect::<Option<_>>();
    let queries = queries.ok_or_else(|| lacks(file, "box and lists for every query"))?;
    Ok(GroundTruth { gallery, queries })
}

/// Python counts from 0.
fn from_pickle(bytes: &[u8], file: &Path) -> Result<GroundTruth> {
    let (pickle, root) = unpickle(bytes, file, "use the MATLAB file (.mat) that is published beside it")?;
    let items = |value, key: &str| pickle.items(pickle.get(value, key)?);
    let names = |name: &str| -> Option<Vec<String>> {
        items(root, name)?.iter().map(|name| name.text().map(str::to_owned)).collect()
    };
    let gallery = names("imlist").ok_or_else(|| lacks(file, "list `imlist`"))?;
    let queries = names("qimlist").ok_or_else(|| lacks(file, "list `qimlist`"))?;
    let truth = items(root, "gnd").ok_or_else(|| lacks(file, "list `gnd`"))?;
    let query = |(name, truth)| {
        let numbers = |field: &str| -> Option<Vec<f64>> {
            items(truth, field)?.iter().map(|number| number.number()).collect()
        };
        let list = |field| positions(&numbers(field)?, 0.0, gallery.len());
        Some(Query {
            name,
            region: numbers("bbx")?.try_into().ok()?,
            easy: list("easy")?,
            hard: list("hard")?,
            junk: list("junk")?,
        })
    };
    if truth.len() < queries.len() {
        return Err(lacks(file, "box and lists for every query"));
    }
    let queries = queries.into_iter().zip(truth.iter().copied()).map(query).collect::<Option<_>>();
    let queries = queries.ok_or_else(|| lacks(file, "box and lists for every query"))?;
    Ok(GroundTruth { gallery, queries })
}

#[cfg(test)]
mod tests {
    use akin_formats::mat::fixtures::{cell, file, numbers, structs, text};

    use super::super::fixtures::*;

    /// Five gallery images and three queries, of which the first two have the same lists.
    fn matlab() -> Vec<u8> {
        let gallery: Vec<Vec<u8>> = ["a", "b", "c", "d", "e"].map(|name| text("", name)).to_vec();
        let queries: Vec<Vec<u8>> = ["q", "r", "s"].map(|name| text("", name)).to_vec();
        let truth = |easy: &[u8], hard: &[u8], junk: &[u8]| {
            [numbers("", &[1, 2, 30, 40]), numbers("", easy), numbers("", hard), numbers("", junk)]
        };
        let lists = [truth(&[1], &[2], &[3]), truth(&[1], &[2], &[3]), truth(&[2], &[4], &[])];
        file(&[
            cell("imlist", &gallery),
            cell("qimlist", &queries),
            structs("gnd", &["bbx", "easy", "hard", "junk"], &lists.concat()),
        ])
    }

    /// For each query: the images that it ranks, with a mark for positives.
    fn ranked(dataset: &super::super::Dataset) -> Vec<String> {
        let of = |&query: &usize| {
            let class = dataset.labels.row(query)[0];
            let ranked = dataset.gallery().iter().filter(|&&item| !dataset.junk[item].contains(&class));
            let mut names: Vec<String> = ranked
                .map(|&item| {
                    let name = dataset.paths[item].file_stem().unwrap().to_str().unwrap();
                    format!("{name}{}", if dataset.labels.row(item)[0] == class { "+" } else { "" })
                })
                .collect();
            names.sort();
            names.join(" ")
        };
        dataset.splits.query.iter().map(of).collect()
    }

    #[test]
    fn every_query_ranks_what_the_protocol_says() {
        let copy = files(&[("gnd_roxford5k.mat", &matlab())]);
        let of = |difficulty: &str| {
            ranked(&read(&copy, &format!("kind = 'roxford5k'\ndifficulty = '{difficulty}'")))
        };
        assert_eq!(of("medium"), ["a+ b+ d e", "a+ b+ d e", "a b+ c d+ e"]);
        assert_eq!(of("easy"), ["a+ d e", "a+ d e", "a b+ c e"]);
        assert_eq!(of("hard"), ["b+ d e", "b+ d e", "a c d+ e"]);
    }

    #[test]
    fn a_query_is_the_part_of_its_photo_in_a_box() {
        let photo = image::GrayImage::new(50, 60);
        let mut png = std::io::Cursor::new(Vec::new());
        photo.write_to(&mut png, image::ImageFormat::Png).unwrap();
        let copy = files(&[("gnd_rparis6k.mat", &matlab()), ("jpg/q.jpg", &png.into_inner())]);
        let picture = picture(&read(&copy, "kind = 'rparis6k'"), 0);
        assert_eq!((picture.width(), picture.height()), (29, 38));
    }

    #[test]
    fn the_pickle_is_read_as_the_matlab_file_is() {
        // Printed by Python: pickle.dumps(gnd, 2), with the lists of `matlab` counted from 0.
        let copy = files(&[("gnd_roxford5k.pkl", include_bytes!("../../tests/fixtures/gnd_tiny.pkl"))]);
        assert_eq!(ranked(&read(&copy, "kind = 'roxford5k'")), ["a+ b+ d e", "a+ b+ d e", "a b+ c d+ e"]);
    }

    #[test]
    fn lists_that_leave_the_gallery_are_refused() {
        let mat = file(&[
            cell("imlist", &[text("", "a")]),
            cell("qimlist", &[text("", "q")]),
            structs(
                "gnd",
                &["bbx", "easy", "hard", "junk"],
                &[numbers("", &[1, 2, 3, 4]), numbers("", &[2]), numbers("", &[]), numbers("", &[])],
            ),
        ]);
        let (message, _) = refusal(try_to_read(&files(&[("gnd_roxford5k.mat", &mat)]), "kind = 'roxford5k'"));
        assert!(message.ends_with("has no box and lists for every query"), "{message}");
        let (message, hint) = refusal(try_to_read(&files(&[]), "kind = 'roxford5k'"));
        assert!(
            message.contains("gnd_roxford5k.mat cannot be read") && hint.contains("jpg/*.jpg"),
            "{message}"
        );
    }
}
