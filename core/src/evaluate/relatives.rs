//! The items that can be positives of a query, found without a look at all items.

use std::collections::HashMap;
use std::ops::Range;

use crate::taxonomy::{Labels, UNKNOWN};

/// The items of a gallery, by what they can share with a query.
pub(super) struct Relatives {
    /// Whether the labels are those of a tree, and two items that share any level share level 1, too. Then the positives of a query are in its class of
    /// level 1, otherwise they can be anywhere.
    nested: bool,
    /// Ordered by the class of level 1 if the labels are nested; in a class in gallery order.
    items: Vec<u32>,
    /// The labels of `items`, in the same order, so that the labels of a family are read from one piece of memory.
    labels: Labels,
    /// Each [family](Self::family) with the places of its items, in increasing order.
    families: Vec<(u32, Range<usize>)>,
}

impl Relatives {
    pub(super) fn new(labels: &Labels, queries: &Labels) -> Self {
        let mut coarse = HashMap::new();
        let rows =
            labels.ids().chunks_exact(labels.levels()).chain(queries.ids().chunks_exact(queries.levels()));
        let mut classes = rows
            .flat_map(|row| row.iter().enumerate().map(|(level, &class)| ((level, class), row[0])))
            .filter(|((_, class), _)| *class != UNKNOWN);
        let is_tree = [labels, queries].iter().all(|labels| labels.kinship().is_none());
        let nested =
            is_tree && classes.all(|(class, parent)| *coarse.entry(class).or_insert(parent) == parent);
        let mut items: Vec<u32> = (0..labels.len() as u32).collect();
        let family = |item: u32| if nested { labels.row(item as usize)[0] } else { 0 };
        items.sort_by_key(|&item| family(item));
        let mut families = Vec::new();
        let mut start = 0;
        for members in items.chunk_by(|&a, &b| family(a) == family(b)) {
            families.push((family(members[0]), start..start + members.len()));
            start += members.len();
        }
        let places: Vec<usize> = items.iter().map(|&item| item as usize).collect();
        Self { nested, labels: labels.select(&places), items, families }
    }

    /// A number that queries with the same [`candidates`](Self::candidates) have in common.
    pub(super) fn family(&self, classes: &[u32]) -> u32 {
        if self.nested { classes[0] } else { 0 }
    }

    /// The places of items among which all positives of a query of these classes are.
    pub(super) fn candidates(&self, classes: &[u32]) -> Range<usize> {
        let family = self.families.binary_search_by_key(&self.family(classes), |(family, _)| *family);
        family.map_or(0..0, |family| self.families[family].1.clone())
    }

    /// The items at these places, in gallery order if they are [candidates](Self::candidates).
    pub(super) fn items(&self, places: Range<usize>) -> &[u32] {
        &self.items[places]
    }

    /// The labels of the items at all places.
    pub(super) fn labels(&self) -> &Labels {
        &self.labels
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::taxonomy::shared_level;

    #[test]
    fn positives_are_found_in_every_order_of_classes_and_in_labels_that_are_no_tree() {
        let nested = vec![7, 70, 3, 30, 7, 71, 3, 30, 5, 50, 7, 70];
        let crossed = vec![7, 70, 3, 30, 7, 30, 3, 70, 5, 50, 5, 70];
        for (ids, is_nested) in [(nested, true), (crossed, false)] {
            let labels = Labels::new(2, ids).unwrap();
            let relatives = Relatives::new(&labels, &labels);
            assert_eq!(relatives.nested, is_nested);
            for query in 0..labels.len() {
                let positive = |&item: &usize| shared_level(labels.row(query), labels.row(item)) > 0;
                let candidates = relatives.candidates(labels.row(query));
                let labels_of_candidates = candidates.clone().map(|place| relatives.labels().row(place));
                let candidates = relatives.items(candidates).iter().map(|&item| item as usize);
                assert!(labels_of_candidates.eq(candidates.clone().map(|item| labels.row(item))));
                assert!(candidates.filter(positive).eq((0..labels.len()).filter(positive)));
            }
            assert_eq!(relatives.candidates(&[9, 90]).is_empty(), is_nested);
        }
    }
}
