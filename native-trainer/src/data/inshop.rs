//! In-Shop Clothes Retrieval: `list_eval_partition.txt` lists the images with their item and split; gender and category
//! are folders of the path.

use akin_core::taxonomy::ClassIdentity;
use anyhow::Result;

use super::listing::{
    Count, Counts, Entry, ListedImage, Listing, LocalCopy, Source, Split, SplitCounts, damaged,
};

/// In-Shop Clothes Retrieval.
pub static ENTRY: Entry = Entry {
    title: "In-Shop Clothes Retrieval",
    layout: "list_eval_partition.txt (also in Eval or Anno), img/GENDER/CATEGORY/id_*/*.jpg (also in Img)",
    content: "2 genders, their categories, 7,982 items; queries and gallery show the same items",
    counts: Some(Counts {
        splits: &[
            SplitCounts { split: "train", images: Count::Exactly(25_882), classes: &[("item", 3_997)] },
            SplitCounts { split: "query", images: Count::Exactly(14_218), classes: &[("item", 3_985)] },
            SplitCounts { split: "gallery", images: Count::Exactly(12_612), classes: &[("item", 3_985)] },
        ],
        classes: &[("gender", 2), ("item", 7_982)],
        published_in: "Liu et al., CVPR 2016 (DeepFashion)",
    }),
    licence: "non-commercial research, after an agreement with the Chinese University of Hong Kong",
    source: Source::Page("https://mmlab.ie.cuhk.edu.hk/projects/DeepFashion/InShopRetrieval.html"),
};

/// The number of images, and the names of the columns.
const HEADER_LINES: usize = 2;

/// Lists the images of a copy.
pub fn list(copy: &LocalCopy) -> Result<Listing> {
    let list = "list_eval_partition.txt";
    let file = copy.root(list, &["Eval", "Anno"]).join(list);
    let root = copy.root("img", &["Img"]);
    let mut images = Vec::new();
    for (line, [path, item, split]) in (HEADER_LINES + 1..).zip(copy.lines(&file, HEADER_LINES)?) {
        let split = match split.as_str() {
            "train" => Split::Train,
            "query" => Split::Query,
            "gallery" => Split::Gallery,
            other => return Err(damaged(&file, line, &format!("`{other}` is not a split"))),
        };
        let folders: Vec<&str> = path.split('/').collect();
        let [_, gender, category, ..] = folders[..] else {
            return Err(damaged(&file, line, &format!("{path} has no folders for gender and category")));
        };
        let labels = vec![gender.to_owned(), category.to_owned(), item];
        images.push(ListedImage::file(root.join(&path), labels, split));
    }
    // Both genders have shirts.
    Ok(Listing::from_files(images, ClassIdentity::Path))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::*;

    #[test]
    fn queries_and_gallery_are_two_splits() {
        let text = "4\nimage_name item_id evaluation_status\n\
            img/WOMEN/Shirts/id_00000002/02_1_front.jpg      id_00000002 train\n\
            img/MEN/Shirts/id_00000003/01_1_front.jpg id_00000003 query\n\
            img/MEN/Shirts/id_00000003/02_1_side.jpg id_00000003 gallery\n";
        for (list, root) in [("list_eval_partition.txt", ""), ("Eval/list_eval_partition.txt", "Img")] {
            let image = |name: &str| format!("{root}/img/{name}").trim_start_matches('/').to_owned();
            let first = image("WOMEN/Shirts/id_00000002/02_1_front.jpg");
            let copy = files(&[(list, text.as_bytes()), (&first, b"")]);
            let dataset = read(&copy, "kind = 'inshop'");
            assert_eq!(splits(&dataset), [("train", 1), ("query", 1), ("gallery", 1)]);
            assert_eq!(labels(&dataset, 1), ["MEN", "Shirts", "id_00000003"]);
            assert_eq!(dataset.taxonomy.class_count(2), 2, "shirts of men are not those of women");
            assert_eq!(dataset.paths[0], copy.path().join(first));
        }
        let copy = files(&[("list_eval_partition.txt", text.replace("query", "querry").as_bytes())]);
        let (message, _) = refusal(try_to_read(&copy, "kind = 'inshop'"));
        assert!(message.ends_with("list_eval_partition.txt, line 4: `querry` is not a split"), "{message}");
    }
}
