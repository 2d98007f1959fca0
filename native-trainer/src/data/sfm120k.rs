//! SfM-120k (Radenović et al., TPAMI 2019): photos of landmarks, on which landmark retrieval is trained. A class is the 3D
//! model that was reconstructed from its photos.
//!
//! Two published lists name the images. The pickle of the training code has images to train on, and images of other models
//! to validate on. The list of image names and models has more images, without splits; the published code of ROADMAP and
//! of SupRank trains on all of them.

use std::path::{Path, PathBuf};

use akin_base::problem::problem;
use akin_base::quantities::counted;
use akin_core::pickle::{Pickle, Value};
use akin_core::taxonomy::ClassIdentity;
use akin_formats::mat;
use anyhow::{Context, Result};

use super::listing::{
    Count, Counts, Entry, ListedImage, Listing, LocalCopy, Source, Split, SplitCounts, unpickle,
};

const PICKLE: &str = "retrieval-SfM-120k.pkl";
const NAMES: &str = "retrieval-SfM-120k-imagenames-clusterids.mat";
const LICENCE: &str = "photos from Flickr with the licences of their photographers, for research";
const SOURCE: Source = Source::Page("http://cmp.felk.cvut.cz/cnnimageretrieval");

/// SfM-120k with the splits of the training code.
pub static TUPLES: Entry = Entry {
    title: "SfM-120k",
    layout: "retrieval-SfM-120k.pkl, ims/56/34/12/…123456",
    content: "3D models of landmarks; training and validation models differ",
    counts: Some(Counts {
        splits: &[
            SplitCounts { split: "train", images: Count::Exactly(91_642), classes: &[] },
            SplitCounts { split: "test", images: Count::Exactly(6_403), classes: &[] },
        ],
        classes: &[],
        published_in: "issue 12 of https://github.com/filipradenovic/cnnimageretrieval-pytorch",
    }),
    licence: LICENCE,
    source: SOURCE,
};

/// All images of SfM-120k.
pub static ALL: Entry = Entry {
    title: "SfM-120k with all images",
    layout: "retrieval-SfM-120k-imagenames-clusterids.mat, ims/56/34/12/…123456",
    content: "3D models of landmarks, all to train on; `split.test_fraction` holds some out",
    counts: None,
    licence: LICENCE,
    source: SOURCE,
};

/// Lists the images of the pickle: `train` to train on, `val` to evaluate.
pub fn list_tuples(copy: &LocalCopy) -> Result<Listing> {
    let file = copy.path(PICKLE);
    let bytes = copy.bytes(&file)?;
    let (pickle, root) = unpickle(
        &bytes,
        &file,
        "load it in Python, and write it again with lists in place of arrays: `pickle.dump(data, file, protocol=2)`",
    )?;
    let mut images = Vec::new();
    for (part, split) in [("train", Split::Train), ("val", Split::Test)] {
        let lacks = |what: &str| {
            problem(
                format!("{} has no {what} in its part `{part}`", file.display()),
                "copy the file from the data set again",
            )
        };
        let list = |key: &str| items(&pickle, root, part, key).ok_or_else(|| lacks(&format!("list `{key}`")));
        let names: Vec<&str> = list("cids")?
            .iter()
            .map(|name| name.text())
            .collect::<Option<_>>()
            .ok_or_else(|| lacks("texts in the list `cids`"))?;
        let models: Vec<f64> = list("cluster")?
            .iter()
            .map(|model| model.number())
            .collect::<Option<_>>()
            .ok_or_else(|| lacks("numbers in the list `cluster`"))?;
        check_lengths(&file, names.len(), models.len())?;
        for (name, model) in names.into_iter().zip(models) {
            // No model is in both parts, whatever its number.
            let labels = vec![format!("{part} {model}")];
            images.push(ListedImage::file(image_path(copy, name, &file)?, labels, split));
        }
    }
    Ok(Listing::from_files(images, ClassIdentity::Name))
}

/// A list of a part of the pickle.
fn items<'p, 'a>(pickle: &'p Pickle<'a>, root: Value<'a>, part: &str, key: &str) -> Option<&'p [Value<'a>]> {
    pickle.items(pickle.get(pickle.get(root, part)?, key)?)
}

/// Lists all images, to train on.
pub fn list_all(copy: &LocalCopy) -> Result<Listing> {
    let file = copy.path(NAMES);
    let variables = mat::parse(&copy.bytes(&file)?).with_context(|| file.display().to_string())?;
    let lacks = |what: &str| {
        problem(format!("{} has no {what}", file.display()), "copy the file from the data set again")
    };
    let variable = |name: &str| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value);
    let Some(mat::Value::Cell(names)) = variable("cids") else { return Err(lacks("list `cids`")) };
    let Some(mat::Value::Numbers(models)) = variable("cluster") else {
        return Err(lacks("list `cluster`"));
    };
    check_lengths(&file, names.len(), models.len())?;
    let image = |(name, model): (&mat::Value, &f64)| {
        let name = name.text().ok_or_else(|| lacks("texts in the list `cids`"))?;
        Ok(ListedImage::file(image_path(copy, name, &file)?, vec![model.to_string()], Split::Train))
    };
    let images = names.iter().zip(models).map(image).collect::<Result<_>>()?;
    Ok(Listing::from_files(images, ClassIdentity::Name))
}

fn check_lengths(file: &Path, names: usize, models: usize) -> Result<()> {
    if names == models {
        return Ok(());
    }
    Err(problem(
        format!(
            "{} has {} (`cids`) and {} (`cluster`)",
            file.display(),
            counted(names, "image name", "image names"),
            counted(models, "model", "models")
        ),
        "copy the file from the data set again",
    ))
}

/// The file of an image: its three folders are the last six characters of its name, in pairs from the end.
fn image_path(copy: &LocalCopy, name: &str, file: &Path) -> Result<PathBuf> {
    let is_allowed = |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'_' | b'-');
    if name.len() < 6 || !name.bytes().all(is_allowed) {
        return Err(problem(
            format!(
                "{} names an image {name:?}, and a name has at least six characters, all of them letters a to z, \
                 digits, `_` or `-`",
                file.display()
            ),
            "copy the file from the data set again",
        ));
    }
    let pair = |end: usize| &name[name.len() - end..name.len() - end + 2];
    Ok(copy.path("ims").join(pair(2)).join(pair(4)).join(pair(6)).join(name))
}

#[cfg(test)]
mod tests {
    use akin_formats::mat::fixtures::{cell, file, numbers, text};

    use super::super::fixtures::*;
    use super::{NAMES, PICKLE};
    use crate::data::Dataset;

    /// Printed by Python: `pickle.dumps(db, 2)` of three images to train on, of the models 4 and 9, and two of the model 4 to
    /// validate on, with the lists `cids`, `cluster`, `qidxs` and `pidxs`.
    const TINY: &[u8] = include_bytes!("../../tests/fixtures/sfm_tiny.pkl");

    /// A pickle with the same names and models in both parts.
    fn pickled(names: &[&str], models: &[u8]) -> Vec<u8> {
        let text = |text: &str| [&b"X"[..], &(text.len() as u32).to_le_bytes(), text.as_bytes()].concat();
        let list = |items: Vec<Vec<u8>>| [&b"]("[..], &items.concat(), b"e"].concat();
        let names = list(names.iter().map(|name| text(name)).collect());
        let models = list(models.iter().map(|&model| vec![b'K', model]).collect());
        let part = [b"}(", &text("cids")[..], &names, &text("cluster"), &models, b"u"].concat();
        [b"\x80\x02}(", &text("train")[..], &part, &text("val"), &part, b"u."].concat()
    }

    #[test]
    fn the_pickle_has_models_to_train_on_and_others_to_validate_on() {
        let copy = files(&[(PICKLE, TINY)]);
        let dataset = read(&copy, "kind = 'sfm120k'");
        assert_eq!(splits(&dataset), [("train", 3), ("test", 2)]);
        assert_eq!(dataset.paths[0], copy.path().join("ims/ef/cd/ab/00abcdef"));
        assert_eq!([0, 1, 2, 3, 4].map(|item| dataset.labels.row(item)[0]), [0, 0, 1, 2, 2]);
        assert_eq!(labels(&dataset, 3), ["val 4"], "the model 4 of the other part is another model");
    }

    #[test]
    fn the_list_of_all_images_is_to_train_on() {
        let names = ["00abcdef", "11abcdef", "22abcdef", "33abcdef"].map(|name| text("", name));
        let mat = file(&[cell("cids", &names), numbers("cluster", &[4, 4, 9, 9])]);
        let copy = files(&[(NAMES, &mat)]);
        let dataset = read(&copy, "kind = 'sfm120k_all'\n[split]\ntest_fraction = 0.5");
        assert_eq!(splits(&dataset), [("train", 2), ("test", 2)]);
        assert_eq!((labels(&dataset, 0), labels(&dataset, 3)), (vec!["4".into()], vec!["9".into()]));
        assert_eq!(dataset.paths[3], copy.path().join("ims/ef/cd/ab/33abcdef"));
        let (message, hint) = refusal(try_to_read(&copy, "kind = 'sfm120k_all'"));
        assert!(message.ends_with("has no evaluation split"), "{message}");
        assert!(hint.contains("split.test_fraction"), "{hint}");
    }

    #[test]
    fn a_copy_without_its_list_or_an_image_is_refused() {
        let (message, hint) = refusal(try_to_read(&files(&[]), "kind = 'sfm120k'"));
        assert!(message.contains("retrieval-SfM-120k.pkl cannot be read"), "{message}");
        assert!(hint.contains("`sfm120k` holds retrieval-SfM-120k.pkl, ims"), "{hint}");
        let (message, _) = refusal(try_to_read(&files(&[]), "kind = 'sfm120k_all'"));
        assert!(message.contains("clusterids.mat cannot be read"), "{message}");
        let copy = files(&[
            (PICKLE, TINY),
            ("ims/ef/cd/ab/00abcdef", b""),
            ("ims/ef/cd/ab/11abcdef", b""),
            ("ims/ef/cd/ab/22abcdef", b""),
            ("ims/ef/cd/ab/33abcdef", b""),
        ]);
        let (message, _) = refusal(Dataset::load(&config(&copy, "kind = 'sfm120k'").unwrap()));
        assert!(message.starts_with("1 image does not exist") && message.contains("44abcdef"), "{message}");
    }

    #[test]
    fn damaged_lists_are_refused() {
        let refused = |pickle: &[u8]| refusal(try_to_read(&files(&[(PICKLE, pickle)]), "kind = 'sfm120k'"));
        let (message, hint) = refused(&pickled(&["00abcdef", "11abcdef"], &[1]));
        assert!(message.ends_with("has 2 image names (`cids`) and 1 model (`cluster`)"), "{message}");
        assert!(hint.contains("again"));
        for name in ["bcdef", "../abcdef", "äbcdefgh"] {
            let (message, _) = refused(&pickled(&[name], &[1]));
            assert!(message.ends_with("letters a to z, digits, `_` or `-`"), "{message}");
        }
        assert!(refused(b"\x80\x02}.").0.ends_with("has no list `cids` in its part `train`"));
        assert!(refused(&TINY[..TINY.len() - 1]).0.contains("is cut short"));
        let (message, hint) = refused(b"cos\nsystem\n(S'true'\ntR.");
        assert!(message.contains("would run code") && hint.contains("protocol=2"), "{message} {hint}");

        let refused = |mat: &[u8]| refusal(try_to_read(&files(&[(NAMES, mat)]), "kind = 'sfm120k_all'")).0;
        let name = text("", "00abcdef");
        let mat = file(&[cell("cids", std::slice::from_ref(&name)), numbers("cluster", &[1, 2])]);
        assert!(refused(&mat).ends_with("has 1 image name (`cids`) and 2 models (`cluster`)"));
        assert!(refused(&file(&[cell("cids", &[name])])).ends_with("has no list `cluster`"));
        let mat = file(&[cell("cids", &[numbers("", &[1])]), numbers("cluster", &[1])]);
        assert!(refused(&mat).ends_with("has no texts in the list `cids`"));
    }
}
