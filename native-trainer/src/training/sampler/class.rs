//! The classes of the training split, from which images are drawn.

use std::collections::BTreeMap;

use akin_core::taxonomy::{Labels, UNKNOWN};
use rand::seq::SliceRandom;
use rand::seq::index::sample_weighted;
use rand::{Rng, RngExt};

/// The images of a class.
#[derive(Clone, Debug)]
pub(super) struct Class {
    /// Their number.
    pub(super) images: usize,
    /// Whether their class is known.
    is_known: bool,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    /// The items of a finest class.
    Items(Vec<usize>),
    /// The classes of the next level.
    Children(Vec<Class>),
}

/// Classes of which batches draw some.
#[derive(Clone, Debug)]
pub(super) struct ClassPool {
    /// The known classes come first.
    pub(super) classes: Vec<Class>,
    known: usize,
    /// How many of the others a round draws at least, and the probability of one more: so many that their images are drawn
    /// about as often as those of known classes.
    unknown: usize,
    one_more: f64,
}

impl ClassPool {
    pub(super) fn new(mut classes: Vec<Class>) -> Self {
        classes.sort_by_key(|class| !class.is_known);
        let known = classes.partition_point(|class| class.is_known);
        let images = |classes: &[Class]| classes.iter().map(|class| class.images).sum::<usize>() as f64;
        let (of_known, of_unknown) = classes.split_at(known);
        let (others, mean) = (of_unknown.len(), known as f64 * images(of_unknown) / images(of_known));
        // There is nothing to tell apart in a single class.
        let unknown = if known < 2 { others } else { (mean as usize).min(others) };
        let one_more = if unknown < others { mean.fract() } else { 0.0 };
        Self { classes, known, unknown, one_more }
    }

    /// The number of classes that every round has.
    pub(super) fn len(&self) -> usize {
        self.known + self.unknown
    }

    /// The known classes, and some of the others, larger ones more often.
    pub(super) fn round(&self, rng: &mut impl Rng) -> Vec<&Class> {
        let (known, others) = self.classes.split_at(self.known);
        let mut round: Vec<&Class> = known.iter().collect();
        if !others.is_empty() {
            let count = self.unknown + usize::from(rng.random_bool(self.one_more));
            let weight = |place: usize| others[place].images as f64;
            let drawn = sample_weighted(rng, others.len(), weight, count)
                .expect("every class has an image, and `count` is at most their number");
            round.extend(drawn.into_iter().map(|place| &others[place]));
        }
        round
    }
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
                // At most one child has images of unknown class, and it comes last.
                let (known, unknown): (Vec<&Self>, Vec<&Self>) =
                    children.iter().partition(|child| child.is_known);
                let mut left = count;
                for group in unknown {
                    let share = proportional_share(count, group.images, self.images, rng);
                    group.draw_once(share, rng, drawn);
                    left -= share;
                }
                for (child, share) in known.iter().zip(even_shares(&known, left, rng)) {
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

/// How many of `count` images a group of `part` images gives, among `whole`: its share in the mean, rounded up or down at random.
fn proportional_share(count: usize, part: usize, whole: usize, rng: &mut impl Rng) -> usize {
    let product = count * part;
    product / whole + usize::from(rng.random_range(0..whole) < product % whole)
}

/// How many of `count` images each class gives: as evenly as their sizes allow. The classes that give one more are drawn.
fn even_shares(classes: &[&Class], count: usize, rng: &mut impl Rng) -> Vec<usize> {
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
