//! Writes Parquet files: tables of texts and whole numbers, and beside them embeddings in a column `embedding` of lists, which
//! have one length.

use std::io::{self, Write};
use std::sync::Arc;

use akin_core::embeddings::Embeddings;
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, FloatType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnPath, Type, TypePtr};

use crate::column::{Cells, Column};

/// The numbers of a group of rows, which the writer holds in memory: 64 MiB.
const NUMBERS_OF_GROUP: usize = 16 << 20;

/// The column of the embeddings.
const EMBEDDING: &str = "message items {
    required group embedding (LIST) { repeated group list { required float element; } }
}";

/// Writes a table. All columns have the same number of cells, and so many embeddings there are, if there are any.
///
/// # Errors
///
/// The file cannot be written.
pub fn write(
    file: &mut (dyn Write + Send),
    columns: &[Column],
    embeddings: Option<&Embeddings>,
) -> io::Result<()> {
    write_groups(file, columns, embeddings).map_err(io::Error::other)
}

fn write_groups(
    file: &mut (dyn Write + Send),
    columns: &[Column],
    embeddings: Option<&Embeddings>,
) -> Result<()> {
    let mut fields = columns.iter().map(field).collect::<Result<Vec<_>>>()?;
    if embeddings.is_some() {
        fields.extend(parse_message_type(EMBEDDING)?.get_fields().iter().cloned());
    }
    let schema = Arc::new(Type::group_type_builder("items").with_fields(fields).build()?);
    let properties = WriterProperties::builder()
        // Numbers of embeddings hardly repeat.
        .set_column_dictionary_enabled(ColumnPath::from("embedding.list.element"), false)
        .build();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties))?;
    let rows = columns.first().map_or(0, Column::len);
    let rows_of_group =
        embeddings.map_or(rows, |embeddings| NUMBERS_OF_GROUP / embeddings.dimension()).max(1);
    for first in (0..rows.max(1)).step_by(rows_of_group) {
        let rows = first..rows.min(first + rows_of_group);
        let mut group = writer.next_row_group()?;
        for column in columns {
            // There is a writer for each field of the schema.
            let Some(mut out) = group.next_column()? else { break };
            match &column.cells {
                Cells::Texts(cells) => {
                    let cells = &cells[rows.clone()];
                    let texts: Vec<ByteArray> =
                        cells.iter().flatten().map(|text| text.as_str().into()).collect();
                    let definitions: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
                    out.typed::<ByteArrayType>().write_batch(&texts, Some(&definitions), None)?;
                }
                Cells::Numbers(cells) => {
                    out.typed::<Int64Type>().write_batch(&cells[rows.clone()], None, None)?;
                }
            }
            out.close()?;
        }
        if let (Some(embeddings), Some(mut out)) = (embeddings, group.next_column()?) {
            let d = embeddings.dimension();
            let values = &embeddings.values()[rows.start * d..rows.end * d];
            // A value that begins a list has the repetition level 0.
            let repetitions: Vec<i16> = (0..values.len()).map(|place| i16::from(place % d > 0)).collect();
            let definitions = vec![1; values.len()];
            out.typed::<FloatType>().write_batch(values, Some(&definitions), Some(&repetitions))?;
            out.close()?;
        }
        group.close()?;
    }
    writer.close()?;
    Ok(())
}

fn field(column: &Column) -> Result<TypePtr> {
    let (physical, logical, repetition) = match column.cells {
        Cells::Texts(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::OPTIONAL),
        Cells::Numbers(_) => (Physical::INT64, None, Repetition::REQUIRED),
    };
    let builder = Type::primitive_type_builder(&column.name, physical);
    Ok(Arc::new(builder.with_logical_type(logical).with_repetition(repetition).build()?))
}
