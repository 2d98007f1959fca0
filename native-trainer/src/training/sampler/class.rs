//! A class of the training split, from which images are drawn.

use std::collections::BTreeMap;

use akin_core::taxonomy::{Labels, UNKNOWN};
use rand::Rng;
use rand::seq::SliceRandom;

/// The images of a class.
#[derive(Clone, Debug)]
pub(super) struct Class {
    /// Their number.
    pub(super) images: usize,
    /// Whether their class is known.
    pub(super) is_known: bool,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    /// The items of a finest class.
    Items(Vec<usize>),
    /// The classes of the next level.
    Children(Vec<Class>),
}

impl Class {
    /// The classes of a level, 1 … L, that some items have, in the order of their ids. Items whose class is unknown there
    /// make one class for each path that is known, after the others.
    pub(super) fn at_level(items: &[usize], labels: &Labels, level: usize) -> Vec<Self> {
        let mut by_class = BTreeMap::<(u32, Option<&[u32]>), Vec<usize>>::new();
        for &item in items {
            let row = labels.row(item);
            let class = match row[level - 1] {
                UNKNOWN => (UNKNOWN, Some(&row[..level - 1])),
                class => (class, None),
            };
            by_class.entry(class).or_default().push(item);
        }
        let class = |((id, _), items): (_, Vec<usize>)| Self {
            images: items.len(),
            is_known: id != UNKNOWN,
            content: match level == labels.levels() {
                true => Content::Items(items),
                false => Content::Children(Self::at_level(&items, labels, level + 1)),
            },
        };
        by_class.into_iter().map(class).collect()
    }

    /// Draws `count` images without replacement, starting again whenever all are drawn.
    pub(super) fn draw(&self, count: usize, rng: &mut impl Rng) -> Vec<usize> {
        let mut drawn = Vec::with_capacity(count);
        while drawn.len() < count {
            self.draw_once(self.images.min(count - drawn.len()), rng, &mut drawn);
        }
        drawn
    }

    /// Draws `count` images without replacement, at most as many as there are.
    fn draw_once(&self, count: usize, rng: &mut impl Rng, drawn: &mut Vec<usize>) {
        match &self.content {
            Content::Items(items) => {
                let mut left = items.clone();
                drawn.extend_from_slice(left.partial_shuffle(rng, count).0);
            }
            Content::Children(children) => {
                for (child, share) in children.iter().zip(even_shares(children, count, rng)) {
                    child.draw_once(share, rng, drawn);
                }
            }
        }
    }

    /// The finest classes below this class, or the class itself if it is one.
    pub(super) fn finest(self) -> Vec<Self> {
        match self.content {
            Content::Items(_) => vec![self],
            Content::Children(children) => children.into_iter().flat_map(Self::finest).collect(),
        }
    }
}

/// How many of `count` images each class gives: as evenly as their sizes allow. The classes that give one more are drawn.
fn even_shares(classes: &[Class], count: usize, rng: &mut impl Rng) -> Vec<usize> {
    let mut order: Vec<usize> = (0..classes.len()).collect();
    order.shuffle(rng);
    let mut shares = vec![0; classes.len()];
    let mut left = count;
    while left > 0 {
        order.retain(|&place| shares[place] < classes[place].images);
        for &place in order.iter().take(left) {
            shares[place] += 1;
        }
        left -= order.len().min(left);
    }
    shares
}
