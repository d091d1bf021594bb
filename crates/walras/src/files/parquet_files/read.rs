//! Rows from a Parquet file, as pandas, Polars or DuckDB write them.
//!
//! Symbols are text; amounts are integers, or whole numbers in another type; limit prices are floating point,
//! decimals, integers or text. Whatever the type, a cell is read as the shortest text of its value, so both kinds of
//! file follow the same rules.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::record::reader::RowIter;
use parquet::schema::types::Type;

use crate::files::batch::DOUBLE_EXACT;
use crate::files::rows::{Columns, Problem, RowError};

/// Reads rows from `file`, which errors call `path`.
pub fn read<T>(
    file: File,
    path: &Path,
    columns: Columns,
    mut row: impl FnMut(&[&str]) -> Result<T, Problem>,
) -> Result<Vec<T>, RowError> {
    let of_parquet = |error| unreadable(path, &error);
    let reader = SerializedFileReader::new(file).map_err(of_parquet)?;
    let projection = projection(&reader, path, columns)?;
    let mut rows = Vec::new();
    for (index, record) in RowIter::from_file(Some(projection), &reader).map_err(of_parquet)?.enumerate() {
        let record = record.map_err(of_parquet)?;
        let bad = |(field, problem): Problem| RowError::Cell {
            path: path.into(),
            row: index + 1,
            name: columns[field],
            problem,
        };
        let mut texts = vec![String::new(); columns.len()];
        for (name, cell) in record.get_column_iter() {
            let field = columns.iter().position(|column| column == name).expect("only these are read");
            texts[field] = text(cell).map_err(|problem| bad((field, problem)))?;
        }
        let texts: Vec<&str> = texts.iter().map(|text| text.trim()).collect();
        rows.push(row(&texts).map_err(bad)?);
    }
    Ok(rows)
}

fn unreadable(path: &Path, error: &ParquetError) -> RowError {
    let error = format!("{error}: give a Parquet file with Snappy, gzip or zstd compression, or none");
    RowError::Parquet { path: path.into(), error }
}

/// The schema of the columns that are read.
fn projection(reader: &SerializedFileReader<File>, path: &Path, columns: Columns) -> Result<Type, RowError> {
    let root = reader.metadata().file_metadata().schema();
    let all = root.get_fields();
    for column in columns {
        if !all.iter().any(|field| field.name() == *column) {
            return Err(RowError::NoColumn { path: path.into(), column, columns });
        }
    }
    let fields: Vec<Arc<Type>> = all.iter().filter(|field| columns.contains(&field.name())).cloned().collect();
    Type::group_type_builder(root.name()).with_fields(fields).build().map_err(|error| unreadable(path, &error))
}

/// From here on, single precision has no number for some whole ones: 2^24.
const FLOAT_EXACT: f32 = 16_777_216.0;

/// The text of a cell.
fn text(cell: &Field) -> Result<String, String> {
    match cell {
        Field::Str(text) => Ok(text.clone()),
        // A point or an exponent tells the reader of amounts that it may be rounded.
        Field::Double(number) if number.abs() >= DOUBLE_EXACT as f64 => Ok(format!("{number:?}")),
        Field::Double(number) => Ok(number.to_string()),
        Field::Float(number) if number.abs() >= FLOAT_EXACT => Err(format!(
            "{number} is too large for single precision to be exact: cast the column to BIGINT, DOUBLE or text"
        )),
        Field::Float(number) => Ok(number.to_string()),
        Field::Byte(_) | Field::Short(_) | Field::Int(_) | Field::Long(_) => Ok(cell.to_string()),
        Field::UByte(_) | Field::UShort(_) | Field::UInt(_) | Field::ULong(_) => Ok(cell.to_string()),
        Field::Decimal(_) => Ok(plain(&cell.to_string())),
        Field::Null => Err("a value is missing".into()),
        other => Err(format!("{other} is neither a text nor a number")),
    }
}

/// A decimal without trailing zeros, so that 5.00 counts as a whole number.
fn plain(text: &str) -> String {
    match text.split_once('.') {
        Some((whole, fraction)) => match fraction.trim_end_matches('0') {
            "" => whole.into(),
            fraction => format!("{whole}.{fraction}"),
        },
        None => text.into(),
    }
}
