//! The README's config, used as a reader would use it.

mod workplace;

use std::fs;

use workplace::Workplace;

const README: &str = include_str!("../../README.md");

/// The config of the README's section on one's own images.
fn config() -> &'static str {
    let (_, after) = README.split_once("```toml\n[run]").expect("the README has a config");
    let (config, _) = after.split_once("```").expect("the config ends");
    config
}

#[test]
fn the_config_of_the_readme_trains_on_200_photos_in_14_classes() {
    let at = Workplace::empty();
    at.write("photos.toml", format!("[run]{}", config()));
    for class in 0..14 {
        for (split, images) in [("train", 10), ("test", 4)] {
            let folder = format!("photos/{split}/group-{}/family-{}/{split}-{class}", class % 2, class % 4);
            fs::create_dir_all(at.path(&folder)).unwrap();
            for image in 0..images {
                let colour = image::Rgb([(class * 16) as u8, (image * 20) as u8, 128]);
                image::RgbImage::from_pixel(120, 90, colour)
                    .save(at.path(&format!("{folder}/{image}.jpg")))
                    .unwrap();
            }
        }
    }
    // One epoch instead of twenty, for a fast test.
    at.akin(&["train", "photos.toml", "--set", "run.epochs=1"])
        .expect_code(0)
        .expect_stderr("14 classes × 4 images a batch")
        .expect_stderr("akin export");
    assert_eq!(at.json("runs/photos/run.json")["classes_per_batch"], 14);
}
