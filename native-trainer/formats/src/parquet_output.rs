//! Writes embeddings and the texts beside them as a Parquet file: a column `embedding` of lists, which have one length.

use std::io::{self, Write};
use std::sync::Arc;

use akin_core::embeddings::Embeddings;
use parquet::data_type::{ByteArray, ByteArrayType, FloatType};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

/// The numbers of a group of rows, which the writer holds in memory: 64 MiB.
const NUMBERS_OF_GROUP: usize = 16 << 20;

const SCHEMA: &str = "message items {
    required binary path (UTF8);
    required group embedding (LIST) { repeated group list { required float element; } }
}";

/// Writes the embeddings, with the column `path`.
///
/// # Errors
///
/// The file cannot be written.
pub(crate) fn write(
    file: &mut (dyn Write + Send),
    embeddings: &Embeddings,
    paths: &[String],
) -> io::Result<()> {
    write_groups(file, embeddings, paths).map_err(io::Error::other)
}

fn write_groups(file: &mut (dyn Write + Send), embeddings: &Embeddings, paths: &[String]) -> Result<()> {
    // Numbers of embeddings hardly repeat.
    let properties = WriterProperties::builder().set_dictionary_enabled(false).build();
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties))?;
    let dimension = embeddings.dimension();
    let rows = (NUMBERS_OF_GROUP / dimension).max(1);
    for (values, paths) in embeddings.values().chunks(rows * dimension).zip(paths.chunks(rows)) {
        let mut group = writer.next_row_group()?;
        if let Some(mut column) = group.next_column()? {
            let paths: Vec<ByteArray> = paths.iter().map(|path| path.as_str().into()).collect();
            column.typed::<ByteArrayType>().write_batch(&paths, None, None)?;
            column.close()?;
        }
        if let Some(mut column) = group.next_column()? {
            // A value that begins a list has the repetition level 0.
            let repetitions: Vec<i16> =
                (0..values.len()).map(|place| i16::from(place % dimension > 0)).collect();
            column.typed::<FloatType>().write_batch(
                values,
                Some(&vec![1; values.len()]),
                Some(&repetitions),
            )?;
            column.close()?;
        }
        group.close()?;
    }
    writer.close()?;
    Ok(())
}
