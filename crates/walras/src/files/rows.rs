//! Rows of a CSV or Parquet file, each built from the texts of some columns.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use csv::{Position, ReaderBuilder};

use crate::files::parquet_files;

/// The columns that a file must have, in any order; others are ignored.
pub type Columns = &'static [&'static str];

/// The error if a file does not contain valid rows.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    /// The file cannot be read.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The column is missing in the file.
    #[error("{}: line 1: no column {column:?}: the first line must name the columns {}", path.display(), columns.join(","))]
    Column {
        /// The file.
        path: PathBuf,
        /// The column that is missing.
        column: &'static str,
        /// All required columns.
        columns: Columns,
    },
    /// A row of a CSV file is invalid.
    #[error("{}: line {line}, column {column} ({name}): {problem}", path.display())]
    Field {
        /// The file.
        path: PathBuf,
        /// Line of the file, counted from 1.
        line: u64,
        /// Column of the file, counted from 1.
        column: usize,
        /// Name of the column.
        name: &'static str,
        /// The problem and the valid form.
        problem: String,
    },
    /// A row of a Parquet file is invalid.
    #[cfg(feature = "parquet")]
    #[error("{}: row {row}, column {name}: {problem}", path.display())]
    Cell {
        /// The file.
        path: PathBuf,
        /// Row, counted from 1.
        row: usize,
        /// Name of the column.
        name: &'static str,
        /// The problem and the valid form.
        problem: String,
    },
    /// A Parquet file lacks a column.
    #[cfg(feature = "parquet")]
    #[error("{}: no column {column:?}: its columns must include {}", path.display(), columns.join(", "))]
    NoColumn {
        /// The file.
        path: PathBuf,
        /// The column that is missing.
        column: &'static str,
        /// All required columns.
        columns: Columns,
    },
    /// The file is not a Parquet file, or cannot be read.
    #[error("{}: {error}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// Why.
        error: String,
    },
    /// A row has too few fields, or the bytes are not UTF-8.
    #[error("{}: {error}", path.display())]
    Csv {
        /// The file.
        path: PathBuf,
        /// The parser's error, with the line.
        error: csv::Error,
    },
}

/// A problem with a row: the position of the column, and the message.
pub type Problem = (usize, String);

/// Reads the rows of the file at `path`: Parquet if its name has that extension, otherwise CSV, or CSV from standard
/// input if it is `-`. `row` builds each row from the texts of its columns, in their order.
///
/// # Errors
/// The first [`RowError`].
pub fn read<T>(
    path: &Path,
    columns: Columns,
    row: impl FnMut(&[&str]) -> Result<T, Problem>,
) -> Result<Vec<T>, RowError> {
    if path == Path::new("-") {
        return read_csv(io::stdin().lock(), Path::new("standard input"), columns, row);
    }
    let file = File::open(path).map_err(|error| RowError::Io { path: path.into(), error })?;
    if path.extension().is_some_and(|extension| extension == "parquet") {
        return parquet_files::read(file, path, columns, row);
    }
    read_csv(file, path, columns, row)
}

/// Reads rows of CSV from `source`, which errors call `path`.
pub(crate) fn read_csv<T>(
    source: impl Read,
    path: &Path,
    columns: Columns,
    mut row: impl FnMut(&[&str]) -> Result<T, Problem>,
) -> Result<Vec<T>, RowError> {
    let of_csv = |error| RowError::Csv { path: path.into(), error };
    let mut reader = ReaderBuilder::new().trim(csv::Trim::All).from_reader(source);
    let header = reader.headers().map_err(of_csv)?.clone();
    let place = |column: &&'static str| {
        let found = header.iter().position(|name| name == *column);
        found.ok_or(RowError::Column { path: path.into(), column, columns })
    };
    let places: Vec<usize> = columns.iter().map(place).collect::<Result<_, _>>()?;
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(of_csv)?;
        let texts: Vec<&str> = places.iter().map(|place| &record[*place]).collect();
        rows.push(row(&texts).map_err(|(field, problem)| RowError::Field {
            path: path.into(),
            line: record.position().map_or(0, Position::line),
            column: places[field] + 1,
            name: columns[field],
            problem,
        })?);
    }
    Ok(rows)
}
