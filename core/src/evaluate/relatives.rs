//! The items that can be positives of a query, found without a look at all items.

use std::collections::HashMap;

use crate::taxonomy::{Labels, UNKNOWN};

/// The items of a gallery, by what they can share with a query.
pub(super) struct Relatives<'a> {
    labels: &'a Labels,
    /// Whether the labels are those of a tree, and two items that share any level share level 1, too. Then the positives of a query are in its class of
    /// level 1, otherwise they can be anywhere.
    nested: bool,
    /// Ordered by the class of level 1 if the labels are nested; in a class in gallery order.
    items: Vec<u32>,
}

impl<'a> Relatives<'a> {
    pub(super) fn new(labels: &'a Labels, queries: &Labels) -> Self {
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
        if nested {
            items.sort_by_key(|&item| labels.row(item as usize)[0]);
        }
        Self { labels, nested, items }
    }

    /// A number that queries with the same [`candidates`](Self::candidates) have in common.
    pub(super) fn family(&self, classes: &[u32]) -> u32 {
        if self.nested { classes[0] } else { 0 }
    }

    /// Items among which all positives of a query of these classes are, in gallery order.
    pub(super) fn candidates(&self, classes: &[u32]) -> &[u32] {
        if !self.nested {
            return &self.items;
        }
        let class = |item: u32| self.labels.row(item as usize)[0];
        let start = self.items.partition_point(|&item| class(item) < classes[0]);
        let count = self.items[start..].partition_point(|&item| class(item) == classes[0]);
        &self.items[start..][..count]
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
                let candidates = relatives.candidates(labels.row(query)).iter().map(|&item| item as usize);
                assert!(candidates.filter(positive).eq((0..labels.len()).filter(positive)));
            }
            assert_eq!(relatives.candidates(&[9, 90]).is_empty(), is_nested);
        }
    }
}
