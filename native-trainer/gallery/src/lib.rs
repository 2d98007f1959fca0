//! A gallery on disk: pictures with what is known of them and their embeddings. It grows while it is searched.
//!
//! ```text
//! GALLERY/
//!   gallery.json            what the gallery is, and which segments belong to it
//!   encoder/NUMBER/…        what embeds a picture
//!   segments/NUMBER/
//!     rows.parquet          a row for each picture: path, source, size, modified, sha256, and a column for each level
//!     vectors.npy           an embedding for each row
//! ```
//!
//! `FORMAT.md` beside this crate describes each file. [`Gallery`] reads a gallery, and [`Writer`] changes it:
//!
//! - A segment is written once. A change writes new segments, and then replaces `gallery.json` as a whole. A reader
//!   therefore has the gallery before the change or after it, and a change that is killed leaves the one before.
//! - Rows that are removed stay in their segment, and `gallery.json` lists their places, until their segment is joined with
//!   others.
//! - A change of many pictures [stages](Writer::stage) its segments one after another in `pending.json`. If it is killed, the
//!   next writer finds what it had done.
//! - Files that belong to no segment are removed by the next writer.

mod gallery;
mod manifest;
mod rows;
mod segment;
mod vectors;
mod writer;

pub use self::gallery::{Gallery, Known};
pub use self::manifest::{Certainty, EncoderNote, MANIFEST, Manifest, Settings};
pub use self::rows::Row;
pub use self::vectors::{Numbers, Vectors};
pub use self::writer::{Place, Writer, check_encoder, digest};
