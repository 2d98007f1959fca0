//! Settings of `[data]` that a data set has no use for. Those that no data set could use are in
//! [`crate::config::Config::idle_settings`].

use super::Dataset;
use crate::config::DataConfig;

/// A sentence for each setting that is not at its default and has no effect on this data set.
pub fn idle_settings(data: &DataConfig, dataset: &Dataset) -> Vec<String> {
    let mut sentences = Vec::new();
    // Other settings say then which images are evaluated on.
    let are_drawn = data.draws_split() || data.train_is_gallery || !data.kind.levels(false).is_empty();
    let splits = &dataset.splits;
    let names: &[(&str, &String)] = match splits.leave_one_out() {
        _ if are_drawn => &[],
        true => &[("query", &data.query), ("gallery", &data.gallery)],
        false => &[("test", &data.test)],
    };
    for (key, name) in names.iter().filter(|(key, name)| key != name) {
        let evaluated = match splits.leave_one_out() {
            true => format!("the images of `{}` rank each other", data.test),
            false => format!("the queries are `{}` and the gallery is `{}`", data.query, data.gallery),
        };
        sentences.push(format!("data.{key} is {name}, but no image is in that split: {evaluated}"));
    }
    if let Some(folder) = &data.images
        && !dataset.paths.iter().any(|path| path.starts_with(folder))
    {
        sentences.push(format!(
            "data.images is {}, but {} names no image in that folder",
            folder.display(),
            data.path.display()
        ));
    }
    sentences
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// What is idle with a CSV of these rows, and with these settings.
    fn idle(rows: &[&str], more: &str) -> Vec<String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("labels.csv");
        let picture = directory.path().join("a.png").display().to_string();
        let rows: Vec<String> = rows.iter().map(|row| row.replace("PICTURE", &picture)).collect();
        fs::write(&path, format!("path,kind,split\n{}\n", rows.join("\n"))).unwrap();
        let text =
            format!("kind = 'csv'\npath = {:?}\nlevels = ['kind']\n{more}", path.display().to_string());
        let data: DataConfig = toml::from_str(&text).unwrap();
        let dataset = Dataset::read(&data, 0).unwrap();
        let folder = format!("{}/", directory.path().display());
        idle_settings(&data, &dataset).into_iter().map(|sentence| sentence.replace(&folder, "")).collect()
    }

    #[test]
    fn splits_without_an_image_are_named() {
        let one = ["a.png,owl,train", "a.png,owl,test"];
        assert_eq!(
            idle(&one, "gallery = 'database'\nquery = 'probe'"),
            [
                "data.query is probe, but no image is in that split: the images of `test` rank each other",
                "data.gallery is database, but no image is in that split: the images of `test` rank each other",
            ]
        );
        let two = ["a.png,owl,train", "a.png,owl,probe", "a.png,owl,gallery"];
        assert_eq!(
            idle(&two, "query = 'probe'\ntest = 'held-out'"),
            [
                "data.test is held-out, but no image is in that split: the queries are `probe` and the gallery is `gallery`"
            ]
        );
        assert_eq!(idle(&two, "query = 'probe'"), Vec::<String>::new());
    }

    #[test]
    fn a_folder_without_an_image_of_the_file_is_named() {
        let inside = ["a.png,owl,train", "a.png,owl,test"];
        let whole = ["PICTURE,owl,train", "PICTURE,owl,test"];
        let folder = std::env::temp_dir().join("akin-pictures-elsewhere");
        let elsewhere = format!("images = {:?}", folder.display().to_string());
        assert_eq!(idle(&inside, &elsewhere), Vec::<String>::new());
        let [sentence] = &idle(&whole, &elsewhere)[..] else { panic!("one sentence") };
        assert!(sentence.ends_with("but labels.csv names no image in that folder"), "{sentence}");
    }
}
