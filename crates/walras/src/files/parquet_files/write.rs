//! Writes tables to Parquet files: columns are collected in memory and written a row group at a time.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;

use crate::files::parquet_files::Cell;

/// Number of rows that are held in memory before they are written.
const GROUP_ROWS: usize = 131_072;
/// How the definition of a column of numbers up to 2^64-1 ends.
const UNSIGNED: &str = "(INTEGER(64,false))";

/// The collected values of a column.
enum Column {
    Int(Vec<i64>),
    /// Numbers from 0 to 2^64-1, which Parquet keeps as the signed numbers of the same bits.
    Count(Vec<i64>),
    /// The numbers that are present, and for each row whether it has one.
    MaybeCount(Vec<i64>, Vec<i16>),
    Real(Vec<f64>),
    Text(Vec<ByteArray>),
    /// The texts that are present, and for each row whether it has one.
    Maybe(Vec<ByteArray>, Vec<i16>),
    Flag(Vec<bool>),
}

impl Column {
    /// The type in a Parquet schema decides what a column holds.
    fn of(definition: &str) -> Column {
        match definition.split_whitespace().take(2).collect::<Vec<_>>()[..] {
            ["required", "int64"] if definition.ends_with(UNSIGNED) => Column::Count(Vec::new()),
            ["required", "int64"] => Column::Int(Vec::new()),
            ["optional", "int64"] if definition.ends_with(UNSIGNED) => Column::MaybeCount(Vec::new(), Vec::new()),
            ["required", "double"] => Column::Real(Vec::new()),
            ["required", "boolean"] => Column::Flag(Vec::new()),
            ["optional", "binary"] => Column::Maybe(Vec::new(), Vec::new()),
            ["required", "binary"] => Column::Text(Vec::new()),
            _ => panic!("no column for {definition:?}"),
        }
    }

    /// Adds a value. Numbers beyond a signed column are as large as it can hold: of what the ledger counts there is
    /// none, and a clock or a counter that somebody set so far must not stop an export.
    fn push(&mut self, cell: Cell) {
        let bytes = |text: String| ByteArray::from(text.into_bytes());
        match (self, cell) {
            (Column::Int(values), Cell::Int(value)) => values.push(value),
            (Column::Int(values), Cell::Count(value)) => values.push(i64::try_from(value).unwrap_or(i64::MAX)),
            (Column::Count(values), Cell::Count(value)) => values.push(value.cast_signed()),
            (Column::MaybeCount(values, there), Cell::MaybeCount(value)) => {
                there.push(i16::from(value.is_some()));
                values.extend(value.map(u64::cast_signed));
            }
            (Column::Real(values), Cell::Real(value)) => values.push(value),
            (Column::Text(values), Cell::Text(value)) => values.push(bytes(value)),
            (Column::Maybe(values, there), Cell::Maybe(value)) => {
                there.push(i16::from(value.is_some()));
                values.extend(value.map(bytes));
            }
            (Column::Flag(values), Cell::Flag(value)) => values.push(value),
            _ => panic!("a cell of another type than its column"),
        }
    }

    /// Writes the collected values and clears them.
    fn write(&mut self, writer: &mut SerializedColumnWriter) -> parquet::errors::Result<()> {
        match self {
            Column::Int(values) | Column::Count(values) => {
                writer.typed::<Int64Type>().write_batch(&std::mem::take(values), None, None)?
            }
            Column::MaybeCount(values, there) => {
                let (values, there) = (std::mem::take(values), std::mem::take(there));
                writer.typed::<Int64Type>().write_batch(&values, Some(&there), None)?
            }
            Column::Real(values) => writer.typed::<DoubleType>().write_batch(&std::mem::take(values), None, None)?,
            Column::Flag(values) => writer.typed::<BoolType>().write_batch(&std::mem::take(values), None, None)?,
            Column::Text(values) => writer.typed::<ByteArrayType>().write_batch(&std::mem::take(values), None, None)?,
            Column::Maybe(values, there) => {
                let (values, there) = (std::mem::take(values), std::mem::take(there));
                writer.typed::<ByteArrayType>().write_batch(&values, Some(&there), None)?
            }
        };
        Ok(())
    }
}

/// A Parquet file that is being written. It gets its final name when it is complete.
pub struct Table {
    path: PathBuf,
    temporary: tempfile::TempPath,
    writer: SerializedFileWriter<File>,
    columns: Vec<Column>,
    rows: usize,
    /// Rows written and collected.
    pub count: u64,
}

impl Table {
    /// Starts a file with these columns, each a field of a Parquet schema such as `required int64 height`.
    pub fn create(path: &Path, columns: &[&str]) -> anyhow::Result<Table> {
        let context = || format!("cannot write {}", path.display());
        let folder = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).with_context(context)?;
        let fields: String = columns.iter().map(|column| format!("{column};\n")).collect();
        let schema = parse_message_type(&format!("message table {{\n{fields}}}")).expect("a sound schema");
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("walras {}", env!("CARGO_PKG_VERSION")))
            .build();
        let (file, temporary) = tempfile::NamedTempFile::new_in(folder).with_context(context)?.into_parts();
        let writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties)).with_context(context)?;
        let columns = columns.iter().map(|definition| Column::of(definition)).collect();
        Ok(Table { path: path.to_path_buf(), temporary, writer, columns, rows: 0, count: 0 })
    }

    /// Adds a row: a cell for each column, in order.
    pub fn push<const N: usize>(&mut self, row: [Cell; N]) -> anyhow::Result<()> {
        assert_eq!(N, self.columns.len(), "a row has a cell for each column");
        self.columns.iter_mut().zip(row).for_each(|(column, cell)| column.push(cell));
        self.rows += 1;
        self.count += 1;
        if self.rows == GROUP_ROWS { self.write_group() } else { Ok(()) }
    }

    fn write_group(&mut self) -> anyhow::Result<()> {
        let mut write = || {
            let mut group = self.writer.next_row_group()?;
            for column in &mut self.columns {
                let mut writer = group.next_column()?.expect("as many as the schema has");
                column.write(&mut writer)?;
                writer.close()?;
            }
            group.close().map(drop)
        };
        write().with_context(|| format!("cannot write {}", self.path.display()))?;
        self.rows = 0;
        Ok(())
    }

    /// Completes the file and replaces an existing one.
    pub fn finish(mut self) -> anyhow::Result<()> {
        if self.rows > 0 {
            self.write_group()?;
        }
        let context = || format!("cannot write {}", self.path.display());
        self.writer.close().with_context(context)?;
        self.temporary.persist(&self.path).with_context(context)
    }
}
