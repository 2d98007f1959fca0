//! Writes Parquet files: embeddings with the texts beside them, in a column `embedding` of lists which have one length; and
//! tables of texts and whole numbers.

use std::io::{self, Write};
use std::sync::Arc;

use akin_core::embeddings::Embeddings;
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, FloatType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::Type;

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

/// A column of a table.
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its cells, one for each row.
    pub cells: Cells,
}

/// The cells of a column.
pub enum Cells {
    /// Texts, which may be missing.
    Texts(Vec<Option<String>>),
    /// Whole numbers.
    Numbers(Vec<i64>),
}

/// Writes a table. All columns have the same number of cells, of which one group of rows is made.
///
/// # Errors
///
/// The file cannot be written.
pub fn write_table(file: &mut (dyn Write + Send), columns: &[Column]) -> io::Result<()> {
    write_columns(file, columns).map_err(io::Error::other)
}

fn write_columns(file: &mut (dyn Write + Send), columns: &[Column]) -> Result<()> {
    let field = |column: &Column| {
        let (physical, logical, repetition) = match column.cells {
            Cells::Texts(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::OPTIONAL),
            Cells::Numbers(_) => (Physical::INT64, None, Repetition::REQUIRED),
        };
        let builder = Type::primitive_type_builder(&column.name, physical);
        Ok(Arc::new(builder.with_logical_type(logical).with_repetition(repetition).build()?))
    };
    let fields = columns.iter().map(field).collect::<Result<Vec<_>>>()?;
    let schema = Arc::new(Type::group_type_builder("items").with_fields(fields).build()?);
    let mut writer = SerializedFileWriter::new(file, schema, Arc::default())?;
    let mut group = writer.next_row_group()?;
    for column in columns {
        // There is a writer for each field of the schema.
        let Some(mut out) = group.next_column()? else { break };
        match &column.cells {
            Cells::Texts(cells) => {
                let texts: Vec<ByteArray> = cells.iter().flatten().map(|text| text.as_str().into()).collect();
                let definitions: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
                out.typed::<ByteArrayType>().write_batch(&texts, Some(&definitions), None)?;
            }
            Cells::Numbers(cells) => {
                out.typed::<Int64Type>().write_batch(cells, None, None)?;
            }
        }
        out.close()?;
    }
    group.close()?;
    writer.close()?;
    Ok(())
}
