//! Cars-196: `cars_annos.mat` lists the images with their car model. The coarse level is not part of it; it comes from a
//! [hierarchy](super::hierarchy).

use akin_base::problem::problem;
use akin_core::taxonomy::ClassIdentity;
use akin_formats::mat::{self, Value};
use anyhow::{Context, Result};

use super::hierarchy::Hierarchy;
use super::listing::{Count, Counts, Entry, ListedImage, Listing, LocalCopy, Source, Split, SplitCounts};
use crate::config::HierarchyConfig;

/// Classes 1 to 98 are the training classes.
const LAST_TRAINING_CLASS: usize = 98;

/// Cars-196.
pub static ENTRY: Entry = Entry {
    title: "Cars-196",
    layout: "cars_annos.mat, car_ims/*.jpg",
    content: "196 car models, of which the first 98 are trained on; with data.hierarchy also 9 types",
    counts: Some(Counts {
        splits: &[
            SplitCounts { split: "train", images: Count::Exactly(8_054), classes: &[("model", 98)] },
            SplitCounts { split: "test", images: Count::Exactly(8_131), classes: &[("model", 98)] },
        ],
        classes: &[("type", 9), ("model", 196)],
        published_in: "Song et al., CVPR 2016; the hierarchy: Chang et al., CVPR 2021",
    }),
    licence: "photos from the web, for research as ImageNet",
    source: Source::Page("https://ai.stanford.edu/~jkrause/cars/car_dataset.html"),
};

/// Lists the images of a copy.
pub fn list(copy: &LocalCopy<HierarchyConfig>) -> Result<Listing> {
    let root = copy.root("cars_annos.mat", &["cars196", "stanford_cars"]);
    let file = root.join("cars_annos.mat");
    let variables = mat::parse(&copy.bytes(&file)?).with_context(|| file.display().to_string())?;
    let variable = |name: &str| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value);
    let lacks = |what: &str| {
        problem(
            format!("{} has no {what}", file.display()),
            "take cars_annos.mat of all 16,185 images, not the lists of the training and test images of the \
             classification task",
        )
    };
    let annotations =
        variable("annotations").and_then(Value::structs).ok_or_else(|| lacks("`annotations`"))?;
    let Some(Value::Cell(names)) = variable("class_names") else { return Err(lacks("`class_names`")) };
    let hierarchy = Hierarchy::read(copy)?;
    let mut images = Vec::new();
    for number in 0..annotations.count() {
        let path = annotations.get(number, "relative_im_path").and_then(Value::text);
        let class = annotations.get(number, "class").and_then(Value::number).filter(|class| *class >= 1.0);
        let (Some(path), Some(class)) = (path, class) else {
            return Err(lacks(&format!("path or class for image {}", number + 1)));
        };
        let class = class as usize;
        let name = names
            .get(class - 1)
            .and_then(Value::text)
            .ok_or_else(|| lacks(&format!("name for class {class} of image {}", number + 1)))?;
        let mut labels = hierarchy.above(class, name)?;
        labels.push(name.to_owned());
        let split = if class <= LAST_TRAINING_CLASS { Split::Train } else { Split::Test };
        images.push(ListedImage::file(root.join(path), labels, split));
    }
    Ok(Listing::from_files(images, ClassIdentity::Name))
}

#[cfg(test)]
mod tests {
    use akin_formats::mat::fixtures::{cell, compressed, file, numbers, structs, text};

    use super::super::fixtures::*;

    fn annotations(classes: &[u8]) -> Vec<u8> {
        let image = |(number, &class): (usize, &u8)| {
            [text("", &format!("car_ims/{number:06}.jpg")), numbers("", &[1]), numbers("", &[class])]
        };
        let values: Vec<Vec<u8>> = (1..).zip(classes).flat_map(image).collect();
        structs("annotations", &["relative_im_path", "bbox_x1", "class"], &values)
    }

    fn class_names() -> Vec<u8> {
        let names: Vec<Vec<u8>> = (1..=196).map(|class| text("", &format!("Model {class}"))).collect();
        cell("class_names", &names)
    }

    #[test]
    fn the_first_98_models_are_trained_on() {
        let mat = file(&[compressed(&annotations(&[1, 98, 99, 196])), compressed(&class_names())]);
        let copy = files(&[
            ("cars_annos.mat", &mat),
            ("cars.py", b"trees = [\n[1, 7],\n[98, 6],\n[99, 6],\n[196, 2],\n]\n"),
        ]);
        let dataset = read(&copy, "kind = 'cars196'");
        assert_eq!(splits(&dataset), [("train", 2), ("test", 2)]);
        assert_eq!(labels(&dataset, 2), ["Model 99"]);
        assert_eq!(dataset.paths[3], copy.path().join("car_ims/000004.jpg"));
        let file = copy.path().join("cars.py");
        let dataset = read(&copy, &format!("kind = 'cars196'\nhierarchy = '{}'", file.display()));
        assert_eq!(labels(&dataset, 2), ["type 6", "Model 99"]);
    }

    #[test]
    fn a_file_of_the_classification_task_is_refused() {
        let (message, hint) = refusal(try_to_read(
            &files(&[("cars_annos.mat", &file(&[annotations(&[1])]))]),
            "kind = 'cars196'",
        ));
        assert!(message.ends_with("cars_annos.mat has no `class_names`"), "{message}");
        assert!(hint.contains("16,185"));
        let mat = file(&[annotations(&[1, 200]), class_names()]);
        let (message, _) = refusal(try_to_read(&files(&[("cars_annos.mat", &mat)]), "kind = 'cars196'"));
        assert!(message.ends_with("has no name for class 200 of image 2"), "{message}");
        let (message, _) = refusal(try_to_read(&files(&[("cars_annos.mat", b"no")]), "kind = 'cars196'"));
        assert!(
            message.contains("cars_annos.mat: the MATLAB file is damaged: it has no header"),
            "{message}"
        );
    }
}
