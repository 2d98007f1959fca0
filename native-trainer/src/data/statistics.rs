//! The classes of a data set in numbers: how many there are, how large they are, and how they form a tree.

use serde::Serialize;

use super::Dataset;

/// The sizes of the classes of a level.
#[derive(Debug, Serialize)]
pub struct LevelStatistics {
    /// The level's name.
    pub level: String,
    /// The number of classes.
    pub classes: usize,
    /// The images of the smallest class.
    pub fewest: usize,
    /// The median number of images of a class; the lower of the two in the middle.
    pub median: usize,
    /// The mean number of images of a class.
    pub mean: f64,
    /// The images of the largest class.
    pub most: usize,
    /// The images whose class is not known.
    pub unknown: usize,
    /// The mean number of classes that a class has at the next level; none at the finest.
    pub children: Option<f64>,
}

/// A class with what is below it.
#[derive(Debug, Serialize)]
pub struct ClassNode {
    /// Its name.
    pub name: String,
    /// The images of it in all splits.
    pub images: usize,
    /// The number of finest classes in it: 1 if it is one.
    pub finest: usize,
    /// The classes below it, the largest first.
    pub children: Vec<ClassNode>,
}

/// The sizes of the classes of each level, coarse → fine, over all splits.
pub fn level_statistics(dataset: &Dataset) -> Vec<LevelStatistics> {
    let taxonomy = &dataset.taxonomy;
    let depth = taxonomy.depth();
    (1..=depth)
        .map(|level| {
            let mut sizes = sizes(dataset, level);
            sizes.sort_unstable();
            let classes = sizes.len();
            LevelStatistics {
                level: taxonomy.level_names()[level - 1].clone(),
                classes,
                fewest: sizes[0],
                median: sizes[(classes - 1) / 2],
                mean: sizes.iter().sum::<usize>() as f64 / classes as f64,
                most: sizes[classes - 1],
                unknown: dataset.labels.len() - dataset.labels.known_counts()[level - 1],
                children: (level < depth).then(|| taxonomy.class_count(level + 1) as f64 / classes as f64),
            }
        })
        .collect()
}

/// The images of each class of a level, by class. An image with several label paths counts in the class of each.
fn sizes(dataset: &Dataset, level: usize) -> Vec<usize> {
    let mut sizes = vec![0; dataset.taxonomy.class_count(level)];
    let items: Vec<usize> = (0..dataset.labels.len()).collect();
    for class in dataset.classes(&items, level) {
        sizes[class as usize] += 1;
    }
    sizes
}

/// The classes of the coarsest level with all below them, the largest first. Equal ones are in the order of their names.
pub fn class_tree(dataset: &Dataset) -> Vec<ClassNode> {
    let taxonomy = &dataset.taxonomy;
    let mut below: Vec<Vec<ClassNode>> = Vec::new();
    for level in (1..=taxonomy.depth()).rev() {
        let mut nodes: Vec<Vec<ClassNode>> = Vec::new();
        nodes.resize_with(if level == 1 { 1 } else { taxonomy.class_count(level - 1) }, Vec::new);
        let mut children = below.into_iter();
        for (class, images) in sizes(dataset, level).into_iter().enumerate() {
            let class = class as u32;
            let children = children.next().unwrap_or_default();
            let finest = children.iter().map(|child| child.finest).sum();
            let node = ClassNode {
                name: taxonomy.class_name(level, class).to_owned(),
                images,
                finest: if level == taxonomy.depth() { 1 } else { finest },
                children,
            };
            nodes[taxonomy.parent(level, class).map_or(0, |parent| parent as usize)].push(node);
        }
        for siblings in &mut nodes {
            siblings.sort_by(|a, b| b.images.cmp(&a.images).then_with(|| a.name.cmp(&b.name)));
        }
        below = nodes;
    }
    below.pop().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::*;
    use super::*;

    #[test]
    fn classes_are_counted_and_form_a_tree() {
        let text = "path,kind,variety,split\na,Apple,Gala,train\nb,Apple,Gala,test\nc,Apple,Fuji,test\n\
                    d,Pear,Kaiser,test\n";
        let (_directory, data) = csv(text, "");
        let dataset = Dataset::read(&data).unwrap();
        let levels = level_statistics(&dataset);
        let numbers =
            |level: &LevelStatistics| (level.classes, level.fewest, level.median, level.mean, level.most);
        assert_eq!(numbers(&levels[0]), (2, 1, 1, 2.0, 3));
        assert_eq!(numbers(&levels[1]), (3, 1, 1, 4.0 / 3.0, 2));
        assert_eq!((levels[0].children, levels[1].children), (Some(1.5), None));
        let tree = class_tree(&dataset);
        let names = |nodes: &[ClassNode]| -> Vec<(String, usize)> {
            nodes.iter().map(|node| (node.name.clone(), node.images)).collect()
        };
        assert_eq!(names(&tree), [("Apple".to_owned(), 3), ("Pear".to_owned(), 1)]);
        assert_eq!(names(&tree[0].children), [("Gala".to_owned(), 2), ("Fuji".to_owned(), 1)]);
        assert_eq!((tree[0].finest, tree[1].finest), (2, 1));
        assert_eq!((levels[0].unknown, levels[1].unknown), (0, 0));
    }

    #[test]
    fn images_of_unknown_class_are_counted_as_such() {
        let text = "path,kind,variety,split\na,Apple,Gala,train\nb,Apple,,test\nc,Apple,Gala,test\n\
                    d,Pear,,test\n";
        let (_directory, data) = csv(text, "");
        let dataset = Dataset::read(&data).unwrap();
        let levels = level_statistics(&dataset);
        assert_eq!((levels[0].unknown, levels[1].unknown), (0, 2));
        assert_eq!((levels[1].classes, levels[1].most), (1, 2));
        let tree = class_tree(&dataset);
        assert_eq!((tree[0].images, tree[0].finest, tree[0].children[0].images), (3, 1, 2));
        assert_eq!((tree[1].images, tree[1].finest), (1, 0));
    }
}
