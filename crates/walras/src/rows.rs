//! Rows of a CSV or Parquet file, each made of the texts of some columns.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use csv::{Position, ReaderBuilder};

use crate::rows_parquet;

/// The columns that a file must have, in any order; others are left alone.
pub type Columns = &'static [&'static str];

/// Why a file does not hold the rows that it should.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    /// The file cannot be read.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The file has no such column.
    #[error("{}: line 1: no column {column:?}: the first line must name the columns {}", path.display(), columns.join(","))]
    Column {
        /// The file.
        path: PathBuf,
        /// The column that is missing.
        column: &'static str,
        /// All that it should have.
        columns: Columns,
    },
    /// A row of a CSV file is not what it should be.
    #[error("{}: line {line}, column {column} ({name}): {problem}", path.display())]
    Field {
        /// The file.
        path: PathBuf,
        /// Line of the file, counted from 1.
        line: u64,
        /// Column of the file, counted from 1.
        column: usize,
        /// Its name.
        name: &'static str,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// A row of a Parquet file is not what it should be.
    #[error("{}: row {row}, column {name}: {problem}", path.display())]
    Cell {
        /// The file.
        path: PathBuf,
        /// Row, counted from 1.
        row: usize,
        /// Its name.
        name: &'static str,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// A Parquet file lacks a column.
    #[error("{}: no column {column:?}: its columns must include {}", path.display(), columns.join(", "))]
    NoColumn {
        /// The file.
        path: PathBuf,
        /// The column that is missing.
        column: &'static str,
        /// All that it should have.
        columns: Columns,
    },
    /// A file is no Parquet file, or not one that can be read.
    #[error("{}: {error}: give a Parquet file with Snappy compression or none", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What the reader said.
        error: parquet::errors::ParquetError,
    },
    /// A row has too few fields, or the bytes are no UTF-8 text.
    #[error("{}: {error}", path.display())]
    Csv {
        /// The file.
        path: PathBuf,
        /// What the parser said, with the line.
        error: csv::Error,
    },
}

/// What is wrong with a row: the position of the column, and the problem.
pub type Problem = (usize, String);

/// Reads the rows of the file at `path`, Parquet if its name ends so and CSV if not, or CSV on standard input if it is
/// `-`. `row` makes each of the texts of its columns, in their order.
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
        return rows_parquet::read(file, path, columns, row);
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
