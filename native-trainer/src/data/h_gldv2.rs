//! H-GLDv2: Google Landmarks v2 (clean training set, index and test queries) with the categories of SupRank (Ramzi et al.,
//! TPAMI 2025). Landmarks without a category are left out. A query has the landmark of its first gallery image.

use std::collections::HashMap;
use std::path::PathBuf;

use akin_core::taxonomy::ClassIdentity;
use anyhow::Result;

use super::listing::{
    Count, Counts, Entry, ListedImage, Listing, LocalCopy, Source, Split, SplitCounts, damaged,
};

/// H-GLDv2.
pub static ENTRY: Entry = Entry {
    title: "H-GLDv2",
    layout: "train_clean.csv, index_image_to_landmark.csv, retrieval_solution_v2.1.csv, \
             {train,index}_label_to_subcategory_with_clusters.csv, and the images as {images/train,index,test}/a/b/c/abc….jpg",
    content: "supercategories, 78 categories and landmarks; queries and gallery show the same landmarks",
    counts: Some(Counts {
        splits: &[SplitCounts {
            split: "train",
            images: Count::Exactly(970_981),
            classes: &[("landmark", 46_593)],
        }],
        classes: &[],
        published_in: "Ramzi et al., TPAMI 2025 (SupRank), section on data sets",
    }),
    licence: "the licences of the photographers (Creative Commons or public domain)",
    source: Source::Page(
        "https://github.com/cvdf/google-landmark; the categories: https://github.com/elias-ramzi/SupRank",
    ),
};

/// The supercategory and the category of each landmark.
type Categories = HashMap<String, [String; 2]>;

/// Lists the images of a copy.
pub fn list(copy: &LocalCopy) -> Result<Listing> {
    let train_categories = categories(copy, "train_label_to_subcategory_with_clusters.csv")?;
    let index_categories = categories(copy, "index_label_to_subcategory_with_clusters.csv")?;
    let mut images = Vec::new();
    let mut add = |categories: &Categories, folder: &str, landmark: &str, id: &str, split: Split| {
        if let Some([supercategory, category]) = categories.get(landmark) {
            images.push(ListedImage::file(
                image_path(copy, folder, id),
                vec![supercategory.clone(), category.clone(), landmark.to_owned()],
                split,
            ));
        }
    };
    for (_, [landmark, ids]) in copy.rows("train_clean.csv", ["landmark_id", "images"])? {
        for id in ids.split_whitespace() {
            add(&train_categories, "images/train", &landmark, id, Split::Train);
        }
    }
    let index = copy.rows("index_image_to_landmark.csv", ["id", "landmark_id"])?;
    for (_, [id, landmark]) in &index {
        add(&index_categories, "index", landmark, id, Split::Gallery);
    }
    let landmark_of: HashMap<&str, &str> =
        index.iter().map(|(_, [id, landmark])| (id.as_str(), landmark.as_str())).collect();
    let solution = "retrieval_solution_v2.1.csv";
    for (line, [id, positives]) in copy.rows(solution, ["id", "images"])? {
        // Such a query shows no landmark.
        if positives == "None" {
            continue;
        }
        let first = positives.split_whitespace().next().unwrap_or_default();
        let landmark = landmark_of.get(first).ok_or_else(|| {
            damaged(
                &copy.path(solution),
                line,
                &format!("image {first:?} is not in index_image_to_landmark.csv"),
            )
        })?;
        add(&index_categories, "test", landmark, &id, Split::Query);
    }
    Ok(Listing::from_files(images, ClassIdentity::Path))
}

fn categories(copy: &LocalCopy, file: &str) -> Result<Categories> {
    let rows = copy.rows(file, ["landmark_id", "cluster", "overall_cluster"])?;
    let known =
        rows.into_iter().filter(|(_, [_, category, above])| !category.is_empty() && !above.is_empty());
    Ok(known.map(|(_, [landmark, category, above])| (landmark, [above, category])).collect())
}

/// The file of an image: its folders are the first three characters of its name.
fn image_path(copy: &LocalCopy, folder: &str, id: &str) -> PathBuf {
    let folders = id.chars().take(3).map(String::from);
    copy.path(folder).join(folders.collect::<PathBuf>()).join(format!("{id}.jpg"))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::*;

    #[test]
    fn landmarks_without_a_category_are_left_out() {
        let mut tree: Vec<(&str, &[u8])> = vec![
            ("train_clean.csv", b"landmark_id,images\n1,aaa1 bbb2\n2,ccc3\n"),
            (
                "train_label_to_subcategory_with_clusters.csv",
                b"landmark_id,category,cluster,overall_cluster\n1,x,castle,human made\n2,y,,\n",
            ),
            ("index_image_to_landmark.csv", b"id,landmark_id\nddd4,7\neee5,8\nfff6,7\n"),
            (
                "index_label_to_subcategory_with_clusters.csv",
                b"landmark_id,cluster,overall_cluster\n7,lake,natural\n8,,\n",
            ),
            (
                "retrieval_solution_v2.1.csv",
                b"id,images,Usage\nqqq1,ddd4 fff6,Public\nqqq2,None,Ignored\nqqq3,eee5,Private\n",
            ),
        ];
        let copy = files(&tree);
        let dataset = read(&copy, "kind = 'h_gldv2'");
        assert_eq!(splits(&dataset), [("train", 2), ("query", 1), ("gallery", 2)]);
        assert_eq!(labels(&dataset, 0), ["human made", "castle", "1"]);
        assert_eq!(dataset.paths[1], copy.path().join("images/train/b/b/b/bbb2.jpg"));
        let query = dataset.splits.query[0];
        assert_eq!(labels(&dataset, query), ["natural", "lake", "7"]);
        assert_eq!(dataset.paths[query], copy.path().join("test/q/q/q/qqq1.jpg"));
        tree[4].1 = b"id,images,Usage\nqqq1,zzz9,Public\n";
        let (message, _) = refusal(try_to_read(&files(&tree), "kind = 'h_gldv2'"));
        assert!(
            message.ends_with("line 2: image \"zzz9\" is not in index_image_to_landmark.csv"),
            "{message}"
        );
    }
}
