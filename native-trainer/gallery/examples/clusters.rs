//! Writes a gallery without pictures, to measure search: embeddings in clusters, which are the classes.
//!
//! ```sh
//! cargo run --release -p akin-gallery --example clusters -- FOLDER ROWS DIMENSION float32|float16|int8 CLASSES [more]
//! ```
//!
//! With `more` the rows are added to the gallery that is there. Each cluster has a random centre, and each row is its centre plus noise of the same length, in unit length.

use std::path::Path;

use akin_core::random::{stream, uniform};
use akin_core::similarity::Similarity;
use akin_gallery::{EncoderNote, Numbers, Row, Settings, Writer};
use anyhow::{Context, Result};

/// The rows that are written together.
const PART: usize = 100_000;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let get = |place: usize| arguments.get(place).with_context(|| format!("argument {place} is missing"));
    let (rows, d): (usize, usize) = (get(1)?.parse()?, get(2)?.parse()?);
    let numbers = match get(3)?.as_str() {
        "int8" => Numbers::Int8,
        "float16" => Numbers::Float16,
        _ => Numbers::Float32,
    };
    let classes: usize = get(4)?.parse()?;
    let folder = Path::new(get(0)?);
    let settings = Settings {
        encoder: EncoderNote { name: "clusters".into(), digest: String::new(), files: Vec::new() },
        dimension: d,
        similarity: Similarity::Cosine,
        numbers,
        levels: vec!["half".into(), "cluster".into()],
    };
    let mut writer = match arguments.get(5) {
        Some(_) => Writer::open(folder)?,
        None => Writer::create(folder, settings, Vec::new())?,
    };
    let centres = uniform(&mut stream(0, "centres", &[]), classes * d, -1.0, 1.0);
    for first in (0..rows).step_by(PART) {
        let part = first..rows.min(first + PART);
        let mut values = uniform(&mut stream(0, "noise", &[first as u64]), part.len() * d, -1.0, 1.0);
        let mut known = Vec::with_capacity(part.len());
        for (row, values) in part.zip(values.chunks_mut(d)) {
            let class = row * 7919 % classes;
            for (value, centre) in values.iter_mut().zip(&centres[class * d..]) {
                *value += centre;
            }
            let length = values.iter().map(|value| value * value).sum::<f32>().sqrt();
            values.iter_mut().for_each(|value| *value /= length);
            known.push(Row {
                path: format!("{class}/{row}.jpg"),
                labels: vec![format!("half {}", class % 2), format!("cluster {class}")],
                ..Row::default()
            });
        }
        writer.stage(&known, &values)?;
    }
    writer.commit(&[])
}
