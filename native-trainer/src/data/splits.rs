//! The splits of a data set: as its files say, or with classes held out.

use std::collections::{HashMap, HashSet};

use akin_base::problem::problem;
use akin_base::quantities::{count, counted};
use akin_core::taxonomy::{Labels, Taxonomy, known_levels};
use anyhow::{Context, Result};
use rand::seq::SliceRandom;

use super::listing::{ListedImage, Split};
use crate::config::{DataConfig, Selection, SplitNames};

/// The items of each split, in increasing order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Splits {
    /// The training images.
    pub train: Vec<usize>,
    /// The queries.
    pub query: Vec<usize>,
    /// The gallery, which may be the training images. Empty if the queries rank each other, each without itself.
    pub gallery: Vec<usize>,
}

impl Splits {
    /// The splits that the images have, or that the config draws.
    ///
    /// # Errors
    ///
    /// Splits that contradict each other, and fewer classes than folds.
    pub(super) fn new(
        images: &[ListedImage],
        taxonomy: &Taxonomy,
        labels: &Labels,
        selection: &Selection,
    ) -> Result<Self> {
        let Selection { data, split, seed } = selection;
        let splits: Vec<Split> = match split.test_fraction {
            Some(share) => {
                let all: Vec<usize> = (0..images.len()).collect();
                let held_out = hold_out(taxonomy, labels, &all, share, *seed);
                held_out.into_iter().map(|out| if out { Split::Test } else { Split::Train }).collect()
            }
            None => images.iter().filter_map(|image| image.split).collect(),
        };
        let mut splits = group_by_split(&splits, selection)?;
        if let Some(share) = split.validation_fraction {
            let held_out = hold_out(taxonomy, labels, &splits.train, share, *seed);
            let (query, train) = splits.train.iter().copied().partition(|&item| held_out[item]);
            splits = Self { train, query, gallery: Vec::new() };
        }
        if let Some(fold) = split.fold {
            let fold_of_item = draw_folds(taxonomy, labels, &splits.train, fold.of, *seed)
                .with_context(|| data.path().display().to_string())?;
            let (query, train) =
                splits.train.iter().copied().partition(|&item| fold_of_item[item] == Some(fold.number));
            splits = Self { train, query, gallery: Vec::new() };
        }
        Ok(splits)
    }

    /// Whether the queries rank each other.
    pub fn leave_one_out(&self) -> bool {
        self.gallery.is_empty()
    }

    /// The number of items that a query ranks, without junk.
    pub fn ranked(&self) -> usize {
        if self.leave_one_out() { self.query.len().saturating_sub(1) } else { self.gallery.len() }
    }

    /// The splits by name, in a fixed order: `train` and then `test`, or `query` and `gallery`. None has the images of
    /// another: with the training images as gallery there are `train` and `test`.
    pub fn named(&self) -> Vec<(&'static str, &[usize])> {
        let train = ("train", self.train.as_slice());
        if self.leave_one_out() || self.gallery == self.train {
            vec![train, ("test", &self.query)]
        } else {
            vec![train, ("query", &self.query), ("gallery", &self.gallery)]
        }
    }
}

/// Holds out a share of the finest classes of the items `among`. Returns for every item whether its
/// class is held out.
///
/// Images of one path whose finest class is unknown are held out together, as if they were a class: their hidden classes may
/// be among those that are trained on, or held out.
///
/// The classes are shuffled and then sorted by parent, and every n-th is taken, so that each parent
/// gives about the same share.
fn hold_out(taxonomy: &Taxonomy, labels: &Labels, among: &[usize], share: f64, seed: u64) -> Vec<bool> {
    let taken = |position: usize| (position as f64 * share).floor();
    let classes = shuffled_classes(taxonomy, labels, among, seed);
    let held_out: HashSet<&[u32]> = classes
        .into_iter()
        .enumerate()
        .filter(|&(position, _)| taken(position + 1) > taken(position))
        .map(|(_, class)| class)
        .collect();
    (0..labels.len()).map(|item| held_out.contains(labels.row(item))).collect()
}

/// Divides the finest classes of the items `among` into folds. Returns for every item the fold of its class, from 1; none
/// for a class of other items. Each fold gets a like number of classes, and a like number of each parent.
///
/// # Errors
///
/// Fewer classes than folds.
fn draw_folds(
    taxonomy: &Taxonomy,
    labels: &Labels,
    among: &[usize],
    folds: usize,
    seed: u64,
) -> Result<Vec<Option<usize>>> {
    let level = taxonomy.depth();
    let classes = shuffled_classes(taxonomy, labels, among, seed);
    if classes.iter().filter(|path| known_levels(path) == level).count() < folds {
        return Err(problem(
            format!(
                "the training split has {} of {}, which is too few for {} folds",
                counted(classes.len(), "class", "classes"),
                taxonomy.level_names()[level - 1],
                count(folds)
            ),
            "use fewer folds: each holds out classes of its own",
        ));
    }
    let folds = (1..=folds).cycle();
    let fold: HashMap<&[u32], usize> = classes.into_iter().zip(folds).collect();
    Ok((0..labels.len()).map(|item| fold.get(labels.row(item)).copied()).collect())
}

/// The label paths of the items `among`, one for each finest class, shuffled and then sorted by parent.
fn shuffled_classes<'a>(
    taxonomy: &Taxonomy,
    labels: &'a Labels,
    among: &[usize],
    seed: u64,
) -> Vec<&'a [u32]> {
    let depth = taxonomy.depth();
    let mut classes: Vec<&[u32]> = among.iter().map(|&item| labels.row(item)).collect();
    classes.sort_unstable_by(|a, b| a.iter().rev().cmp(b.iter().rev()));
    classes.dedup();
    classes.shuffle(&mut akin_core::random::stream(seed, "splits", &[]));
    classes.sort_by_key(|path| &path[..depth - 1]);
    classes
}

/// The classes whose queries leave each item out of their rankings.
pub(super) fn junk(
    images: &[ListedImage],
    taxonomy: &Taxonomy,
    splits: &Splits,
    data: &DataConfig,
) -> Result<Vec<Vec<u32>>> {
    if images.iter().all(|image| image.junk.is_empty()) {
        return Ok(Vec::new());
    }
    if splits.leave_one_out() {
        return Err(problem(
            format!(
                "{} leaves images out of rankings, but its queries rank each other",
                data.path().display()
            ),
            "give it the splits `query` and `gallery`, or remove data.junk_column",
        ));
    }
    let level = taxonomy.depth();
    let mut classes: HashMap<&str, Vec<u32>> = HashMap::new();
    for class in 0..taxonomy.class_count(level) as u32 {
        classes.entry(taxonomy.class_name(level, class)).or_default().push(class);
    }
    let classes_of = |image: &ListedImage| -> Result<Vec<u32>> {
        let classes_named = |name: &String| {
            classes.get(name.as_str()).ok_or_else(|| {
                problem(
                    format!(
                        "{} is junk for `{name}`, which is no {}",
                        image.path.display(),
                        data.levels()[level - 1]
                    ),
                    "correct the class, or remove it",
                )
            })
        };
        Ok(image
            .junk
            .iter()
            .map(classes_named)
            .collect::<Result<Vec<_>>>()?
            .into_iter()
            .flatten()
            .copied()
            .collect())
    };
    images.iter().map(classes_of).collect()
}

/// Lists the items of each split. The evaluation splits are either `test` alone, or `query` and
/// `gallery`.
fn group_by_split(splits: &[Split], selection: &Selection) -> Result<Splits> {
    let data = &selection.data;
    let SplitNames { train: train_name, test: test_name, query: query_name, gallery: gallery_name } =
        data.split_names().cloned().unwrap_or_default();
    let items_in =
        |wanted| -> Vec<usize> { (0..splits.len()).filter(|&item| splits[item] == wanted).collect() };
    let [train, test, query, gallery] =
        [Split::Train, Split::Test, Split::Query, Split::Gallery].map(items_in);
    let lacks = |missing: &str, present: &str| {
        problem(
            format!("{} has a split `{present}` but no `{missing}`", data.path().display()),
            format!(
                "add `{missing}`, or rename `{present}` to `{test_name}`: its images are then queries and \
                 gallery at once"
            ),
        )
    };
    if selection.split.train_is_gallery {
        return match (test.is_empty(), query.is_empty(), gallery.is_empty()) {
            (_, _, false) => Err(problem(
                format!(
                    "split.train_is_gallery is set, but {} has a split `{gallery_name}`",
                    data.path().display()
                ),
                "remove one of them: there is one gallery",
            )),
            _ if train.is_empty() => Err(problem(
                format!(
                    "split.train_is_gallery is set, but {} has no training images",
                    data.path().display()
                ),
                format!("add a split `{train_name}`, or remove split.train_is_gallery"),
            )),
            (false, true, _) => Ok(Splits { gallery: train.clone(), train, query: test }),
            (true, false, _) => Ok(Splits { gallery: train.clone(), train, query }),
            _ => Err(problem(
                format!(
                    "split.train_is_gallery is set, and {} needs one split of queries",
                    data.path().display()
                ),
                format!("give it a split `{test_name}` or a split `{query_name}`"),
            )),
        };
    }
    match (test.is_empty(), query.is_empty() && gallery.is_empty()) {
        (false, true) => Ok(Splits { train, query: test, gallery: Vec::new() }),
        (true, false) if query.is_empty() => Err(lacks(&query_name, &gallery_name)),
        (true, false) if gallery.is_empty() => Err(lacks(&gallery_name, &query_name)),
        (true, false) => Ok(Splits { train, query, gallery }),
        (true, true) => Err(problem(
            format!("{} has no evaluation split", data.path().display()),
            format!(
                "add `{test_name}`, or `{query_name}` and `{gallery_name}`, set data.splits.test to the name of the split \
                 that is evaluated, or set split.test_fraction = 0.5"
            ),
        )),
        (false, false) => Err(problem(
            format!(
                "{} has the split `{test_name}` and also `{query_name}` or `{gallery_name}`",
                data.path().display()
            ),
            format!(
                "use `{test_name}` alone (queries and gallery at once), or `{query_name}` and `{gallery_name}`"
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Dataset;
    use super::super::fixtures::*;
    use super::*;

    #[test]
    fn a_missing_split_is_named() {
        let (_directory, data) = csv(&QUERY_AND_GALLERY.replace("query", "train"), "");
        assert!(refusal(Dataset::load(&data)).0.contains("`gallery` but no `query`"));
        let (_directory, data) =
            csv(&QUERY_AND_GALLERY.replace("gallery", "train").replace("query", "train"), "");
        assert!(refusal(Dataset::load(&data)).0.contains("no evaluation split"));
        let (_directory, data) =
            csv(&QUERY_AND_GALLERY.replace("c.jpg,Conference,Pear,query", "c.jpg,Conference,Pear,test"), "");
        assert!(refusal(Dataset::load(&data)).0.contains("`test` and also `query` or `gallery`"));
        let (_directory, data) = csv(
            &QUERY_AND_GALLERY.replace("train", "test").replace("query", "test").replace("gallery", "test"),
            "",
        );
        assert!(refusal(Dataset::load(&data)).0.contains("split `train`"));
    }

    #[test]
    fn queries_can_rank_the_training_images() {
        let text = QUERY_AND_GALLERY.replace("query", "test").replace("gallery", "train");
        let (_directory, data) = csv(&text, "[split]\ntrain_is_gallery = true");
        let dataset = Dataset::read(&data).unwrap();
        assert!(!dataset.splits.leave_one_out());
        let Splits { train, query, gallery } = &dataset.splits;
        assert_eq!((&train[..], &query[..], &gallery[..]), (&[0, 1, 3, 4][..], &[2][..], &[0, 1, 3, 4][..]));
        assert_eq!(dataset.paths.len(), 5, "no image is listed twice");
        assert_eq!(dataset.queries_with_positives(2), 1);
        assert_eq!(splits(&dataset), [("train", 4), ("test", 1)]);

        let (_directory, data) = csv(&text.replace("test", "query"), "[split]\ntrain_is_gallery = true");
        assert_eq!(Dataset::read(&data).unwrap().splits, dataset.splits);

        let (_directory, data) = csv(QUERY_AND_GALLERY, "[split]\ntrain_is_gallery = true");
        let (message, hint) = refusal(Dataset::read(&data));
        assert!(message.contains("has a split `gallery`") && hint.contains("one gallery"), "{message}");
        let (_directory, data) = csv(&text.replace("test", "train"), "[split]\ntrain_is_gallery = true");
        assert!(refusal(Dataset::read(&data)).0.contains("needs one split of queries"));
        let (_directory, data) = csv(&text.replace("train", "test"), "[split]\ntrain_is_gallery = true");
        assert!(refusal(Dataset::read(&data)).0.contains("has no training images"));
    }

    #[test]
    fn held_out_classes_are_spread_evenly_over_parents_and_depend_on_the_seed() {
        let mut text = String::from("path,variety,kind\n");
        for kind in 0..3 {
            for variety in 0..4 {
                for image in 0..2 {
                    text += &format!("{kind}-{variety}-{image}.jpg,{kind}-{variety},{kind}\n");
                }
            }
        }
        let (_directory, data) = csv(&text, "[split]\ntest_fraction = 0.5");
        let dataset = Dataset::read(&data).unwrap();
        let Splits { train, query, .. } = &dataset.splits;
        assert_eq!((train.len(), query.len()), (12, 12));
        let classes = |items: &[usize]| {
            dataset.classes(items, 2).into_iter().collect::<std::collections::BTreeSet<_>>()
        };
        assert!(classes(train).is_disjoint(&classes(query)));
        for kind in 0..3 {
            assert_eq!(dataset.classes(query, 1).iter().filter(|&&class| class == kind).count(), 4);
        }
        assert_eq!(Dataset::read(&data).unwrap().splits, dataset.splits);
        assert!(
            (2..9)
                .any(|seed| Dataset::read(&Selection { seed, ..data.clone() }).unwrap().splits
                    != dataset.splits)
        );
    }

    /// Two images of each of some varieties, which descend from `kinds` in turn. The first `trained` are the training split.
    fn table(trained: usize, varieties: usize, kinds: usize) -> String {
        let mut text = String::from("path,variety,kind,split\n");
        for variety in 0..varieties {
            for image in 0..2 {
                let split = if variety < trained { "train" } else { "test" };
                text += &format!("{variety}-{image}.jpg,{variety},{},{split}\n", variety % kinds);
            }
        }
        text
    }

    #[test]
    fn validation_classes_are_taken_from_the_training_split_only() {
        let text = table(4, 8, 2);
        let (_directory, data) = csv(&text, "");
        let whole = Dataset::read(&data).unwrap().splits;
        let (_directory, data) = csv(&text, "[split]\nvalidation_fraction = 0.5");
        let Splits { train, query, gallery } = Dataset::read(&data).unwrap().splits;
        assert_eq!((train.len(), query.len(), gallery.len()), (4, 4, 0));
        let mut both = [train, query].concat();
        both.sort_unstable();
        assert_eq!(both, whole.train);
    }

    #[test]
    fn folds_hold_out_every_training_class_once_and_spread_parents_evenly() {
        let text = table(12, 16, 3);
        let (_directory, data) = csv(&text, "");
        let whole = Dataset::read(&data).unwrap().splits;
        let mut held_out: Vec<usize> = Vec::new();
        for number in 1..=4 {
            let (_directory, data) = csv(&text, &format!("[split]\nfold = {{ number = {number}, of = 4 }}"));
            let dataset = Dataset::read(&data).unwrap();
            let Splits { train, query, gallery } = &dataset.splits;
            assert_eq!((train.len(), query.len(), gallery.len()), (18, 6, 0));
            let mut kinds = dataset.classes(query, 1);
            kinds.sort_unstable();
            assert_eq!(kinds, [0, 0, 1, 1, 2, 2], "one class of each parent");
            held_out.extend(query);
        }
        held_out.sort_unstable();
        assert_eq!(held_out, whole.train);

        let (_directory, data) = csv(&text, "[split]\nfold = { number = 1, of = 13 }");
        let (message, hint) = refusal(Dataset::read(&data));
        assert!(message.contains("12 classes of variety") && hint.contains("fewer folds"), "{message}");
    }
}
