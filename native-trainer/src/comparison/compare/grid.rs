//! The edges of the grid of values that a setting is tuned over.

use toml::{Table, Value};

use crate::config::dotted;

/// Whether the chosen value is the smallest or the largest of its grid, so that a better one may lie beyond.
///
/// A grid has an order if its values are numbers, or tables whose numbers rise and fall together. Values without an
/// order have no edge, and neither has a single value. A value that scores as its neighbour does is not at the edge: the
/// scores no longer change there. `scores[i]` is the score of `values[i]`, or none if the training failed.
pub fn is_at_edge(values: &[Value], scores: &[Option<f64>], chosen: usize) -> bool {
    let Some(order) = order(values) else { return false };
    let place = order.iter().position(|&value| value == chosen);
    let neighbour = match place {
        Some(0) => order[1],
        Some(place) if place + 1 == order.len() => order[place - 1],
        _ => return false,
    };
    scores[chosen] != scores[neighbour]
}

/// The numbers in a value, each with its key; none if it has anything else.
fn numbers(value: &Value) -> Option<Vec<(String, f64)>> {
    let table = Table::from_iter([(String::new(), value.clone())]);
    dotted(&table).into_iter().map(|(key, text)| Some((key, text.parse().ok()?))).collect()
}

/// The places of the values, from the smallest to the largest; none if the values have no order.
fn order(values: &[Value]) -> Option<Vec<usize>> {
    let rows = values.iter().map(numbers).collect::<Option<Vec<_>>>()?;
    let [first, _, ..] = &rows[..] else { return None };
    let same_keys =
        |row: &Vec<(String, f64)>| row.iter().map(|(key, _)| key).eq(first.iter().map(|(key, _)| key));
    if !rows.iter().all(same_keys) {
        return None;
    }
    let column = |place: usize| rows.iter().map(move |row| row[place].1);
    let varies = |&place: &usize| column(place).any(|number| number != first[place].1);
    let leading = (0..first.len()).find(varies)?;
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|&one, &other| rows[one][leading].1.total_cmp(&rows[other][leading].1));
    let rises_or_falls = |place: usize| {
        let along = || order.windows(2).map(|pair| (rows[pair[0]][place].1, rows[pair[1]][place].1));
        along().all(|(one, next)| one <= next) || along().all(|(one, next)| one >= next)
    };
    (0..first.len()).all(rises_or_falls).then_some(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<Value> {
        let table: toml::Table = format!("values = {text}").parse().unwrap();
        table["values"].as_array().unwrap().clone()
    }

    fn edges(text: &str) -> Vec<usize> {
        let values = values(text);
        let scores: Vec<_> = (0..values.len()).map(|place| Some(place as f64)).collect();
        (0..values.len()).filter(|&place| is_at_edge(&values, &scores, place)).collect()
    }

    #[test]
    fn the_smallest_and_the_largest_number_are_at_the_edge() {
        assert_eq!(edges("[1, 0.5, 3.0, 2]"), [1, 2]);
        assert_eq!(edges("[1, 2]"), [0, 1]);
    }

    #[test]
    fn tables_whose_numbers_rise_or_fall_together_have_edges() {
        assert_eq!(
            edges("[{ a = 1, b = { c = 9 } }, { a = 3, b = { c = 7 } }, { a = 2, b = { c = 8 } }]"),
            [0, 1]
        );
        assert_eq!(edges("[{ a = 1, b = 1 }, { a = 1, b = 2 }, { a = 1, b = 3 }]"), [0, 2]);
    }

    #[test]
    fn values_without_an_order_have_no_edge() {
        assert!(edges("['sgd', 'adam']").is_empty());
        assert!(edges("[{ a = 1, b = 1 }, { a = 2, b = 3 }, { a = 3, b = 2 }]").is_empty());
        assert!(edges("[{ a = 1 }, { b = 2 }]").is_empty());
        assert!(edges("[1, { a = 2 }]").is_empty());
        assert!(edges("[{ a = 1, kind = 'x' }, { a = 2, kind = 'x' }]").is_empty());
        assert!(edges("[1]").is_empty());
    }

    #[test]
    fn a_value_whose_neighbour_scores_alike_is_not_at_the_edge() {
        let values = values("[1, 2, 3]");
        assert!(!is_at_edge(&values, &[Some(0.5), Some(0.5), Some(0.1)], 0));
        assert!(is_at_edge(&values, &[Some(0.5), Some(0.4), Some(0.1)], 0));
        assert!(is_at_edge(&values, &[Some(0.5), None, Some(0.1)], 0));
    }
}
