//! Event files, as TensorBoard reads them: a record for each step, in the framing of TFRecord.
//!
//! ```text
//! record = length: u64 | masked CRC-32C of length: u32 | event | masked CRC-32C of event: u32     (little endian)
//! event  = wall_time: 1 double | step: 2 int64 | file_version: 3 string | summary: 5 | session_log: 7   (protobuf)
//! ```

use std::path::Path;

use akin_base::files::Growing;
use akin_base::machine;
use akin_base::problem::Advise;
use anyhow::Result;
use serde_json::Value;

/// An event file that is being written.
pub struct EventFile {
    file: Growing,
}

impl EventFile {
    /// Begins an event file in a folder. `first_step` is the number of steps that earlier sessions have done;
    /// TensorBoard then forgets what they wrote after it.
    ///
    /// # Errors
    ///
    /// A full disk, or a folder without write permission.
    pub fn begin(folder: &Path, first_step: u64) -> Result<Self> {
        let now = machine::unix_time();
        // The name says when it was begun, and a session may begin in the second in which the last one did.
        let name = |number: u32| folder.join(format!("events.out.tfevents.{:010}.akin.{number}", now as u64));
        let path = (0..).map(name).find(|path| !path.exists()).expect("there is always a larger number");
        let file = Growing::open(&path).advise(
            || format!("{} cannot be written", path.display()),
            "check the permissions of the run directory, or train without `--log tensorboard`",
        )?;
        let mut events = Self { file };
        events.add(&[wall_time(now), text(3, b"brain.Event:2")].concat())?;
        if first_step > 0 {
            const START: [u8; 2] = [1 << 3, 1];
            events.add(&[wall_time(now), number(2, first_step + 1), text(7, &START)].concat())?;
        }
        Ok(events)
    }

    /// Adds the numbers of an entry of the log: its loss and rates, or the scores of its evaluation.
    ///
    /// # Errors
    ///
    /// A full disk.
    pub fn log(&mut self, entry: &Value) -> Result<()> {
        let Some(step) = entry["step"].as_u64() else { return Ok(()) };
        let scalars = scalars(entry);
        if scalars.is_empty() {
            return Ok(());
        }
        let values: Vec<u8> = scalars.iter().flat_map(|(tag, value)| text(1, &scalar(tag, *value))).collect();
        self.add(&[wall_time(machine::unix_time()), number(2, step), text(5, &values)].concat())
    }

    fn add(&mut self, event: &[u8]) -> Result<()> {
        self.file.add(&record(event)).advise(
            || "the event file cannot be written".into(),
            "free some space; `akin resume RUN` continues from the last checkpoint",
        )
    }
}

/// The numbers of an entry with their tags, such as `train/loss`, `evaluation/h_ap` and `evaluation/species/ap`. The
/// numbers of an array are counted from 1: `train/lr_terms_1`.
fn scalars(entry: &Value) -> Vec<(String, f32)> {
    let numbers = |place: &str, table: &Value, skipped: &[&str]| -> Vec<(String, f32)> {
        let mut numbers = Vec::new();
        let mut add = |tag: String, value: &Value| numbers.extend(value.as_f64().map(|x| (tag, x as f32)));
        for (key, value) in table.as_object().into_iter().flatten() {
            let tag = format!("{place}{key}");
            match value.as_array() {
                _ if skipped.contains(&key.as_str()) => {}
                Some(values) => {
                    (1..).zip(values).for_each(|(number, value)| add(format!("{tag}_{number}"), value));
                }
                None => add(tag, value),
            }
        }
        numbers
    };
    let report = &entry["report"];
    if report.is_null() {
        return match entry["event"].as_str() {
            Some("step") => numbers("train/", entry, &["step", "epoch"]),
            _ => Vec::new(),
        };
    }
    let mut scalars = numbers("evaluation/", &report["overall"], &["queries"]);
    for level in report["levels"].as_array().into_iter().flatten() {
        let name = level["name"].as_str().unwrap_or_default();
        scalars.extend(numbers(&format!("evaluation/{name}/"), level, &["queries"]));
    }
    scalars
}

/// A value of a summary: 1 is its tag, 2 the number.
fn scalar(tag: &str, value: f32) -> Vec<u8> {
    [text(1, tag.as_bytes()), vec![2 << 3 | 5], value.to_le_bytes().to_vec()].concat()
}

fn wall_time(seconds: f64) -> Vec<u8> {
    [vec![1 << 3 | 1], seconds.to_le_bytes().to_vec()].concat()
}

/// A field of protobuf with a whole number.
fn number(field: u8, value: u64) -> Vec<u8> {
    [vec![field << 3], varint(value)].concat()
}

/// A field of protobuf with bytes.
fn text(field: u8, bytes: &[u8]) -> Vec<u8> {
    [vec![field << 3 | 2], varint(bytes.len() as u64), bytes.to_vec()].concat()
}

/// Seven bits a byte, the lowest first; the highest bit says that more follow.
pub(crate) fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn record(event: &[u8]) -> Vec<u8> {
    let length = (event.len() as u64).to_le_bytes();
    [&length[..], &masked(&length), event, &masked(event)].concat()
}

/// The CRC-32C of bytes, turned and moved, as TFRecord stores it.
fn masked(bytes: &[u8]) -> [u8; 4] {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

/// CRC-32C (Castagnoli), bit by bit: a record has some hundred bytes.
fn crc32c(bytes: &[u8]) -> u32 {
    let next = |crc: u32, &byte: &u8| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 })
    };
    !bytes.iter().fold(!0, next)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The check value of the catalogue of CRCs, and RFC 3720, B.4.
    #[test]
    fn crc_32c_has_its_published_values() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    }

    /// The bytes that `tensorboard` 2.21.0 writes and reads for the same event.
    #[test]
    fn a_record_has_the_bytes_that_tensorboard_writes() {
        let values = text(1, &scalar("train/loss", 0.5));
        let event = [wall_time(1.5), number(2, 300), text(5, &values)].concat();
        assert_eq!(hex(&record(&event)), RECORD);
    }

    const RECORD: &str = "2100000000000000017becf609000000000000f83f10ac022a130a110a0a747261696e2f6c6f7373\
                          150000003fb56a6431";

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn steps_and_evaluations_have_tags() {
        let step = json!({ "event": "step", "step": 3, "epoch": 1, "loss": 0.5, "lr_head": 0.25 });
        assert_eq!(scalars(&step), [("train/loss".into(), 0.5), ("train/lr_head".into(), 0.25)]);
        let step = json!({ "event": "step", "step": 3, "lr_proxies": null, "lr_terms": [0.25, 0.5] });
        assert_eq!(scalars(&step), [("train/lr_terms_1".into(), 0.25), ("train/lr_terms_2".into(), 0.5)]);
        let levels = json!([{ "name": "species", "queries": 4, "ap": 0.75 }]);
        let report = json!({ "overall": { "queries": 4, "h_ap": 0.5 }, "levels": levels });
        let evaluation = json!({ "event": "evaluation", "step": 3, "report": report });
        let expected = [("evaluation/h_ap".into(), 0.5), ("evaluation/species/ap".into(), 0.75)];
        assert_eq!(scalars(&evaluation), expected);
        assert!(scalars(&json!({ "event": "resumed", "step": 3 })).is_empty());
    }
}
