//! Tables, as Arrow's C stream (`__arrow_c_stream__`), which pandas, polars, pyarrow, `DuckDB` and
//! others read.
//!
//! `arrow-array` makes the stream as one value that releases itself, so the capsule needs no unsafe
//! code. `pyo3-arrow` would depend on `arrow-cast`, `arrow-select` and numpy, for table classes
//! that each reader has already.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, BooleanBuilder, StringBuilder, TimestampSecondBuilder};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{
    ArrayRef, Float64Array, NullArray, PrimitiveArray, RecordBatch, RecordBatchIterator,
    RecordBatchReader, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use poach_scan::survey::{Cell, Section};
use poach_scan::{Facts, Scan};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::entry::Walk;
use crate::options::kind_name;

/// Rows of one batch.
const BATCH: usize = 1 << 14;

/// A stream in a capsule with the name that the protocol specifies.
///
/// The protocol lets the reader request a schema, and lets the writer ignore the request. This
/// writer ignores it, because each value has only one possible type.
pub(crate) fn capsule(
    py: Python<'_>,
    reader: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
}

fn time() -> DataType {
    DataType::Timestamp(TimeUnit::Second, Some("UTC".into()))
}

/// A path or name: text with U+FFFD for invalid UTF-8, and a column with the bytes in that case.
#[derive(Default)]
struct Paths {
    text: StringBuilder,
    bytes: BinaryBuilder,
}

impl Paths {
    fn push(&mut self, path: Option<&[u8]>) {
        let text = path.map(String::from_utf8_lossy);
        self.bytes.append_option(path.filter(|path| std::str::from_utf8(path).is_err()));
        self.text.append_option(text);
    }

    fn finish(mut self) -> [ArrayRef; 2] {
        [Arc::new(self.text.finish()), Arc::new(self.bytes.finish())]
    }
}

/// The entries of a scan, one per row.
pub(crate) struct Rows {
    walk: Walk,
    schema: SchemaRef,
}

impl Rows {
    pub(crate) fn new(scan: &Arc<Scan>) -> Rows {
        let field = |name: &str, kind, nullable| Field::new(name, kind, nullable);
        let schema = Schema::new(vec![
            field("path", DataType::Utf8, false),
            field("path_bytes", DataType::Binary, true),
            field("kind", DataType::Utf8, false),
            field("depth", DataType::UInt32, false),
            field("apparent_bytes", DataType::UInt64, false),
            field("disk_bytes", DataType::UInt64, false),
            field("entries", DataType::UInt64, false),
            field("counted_elsewhere", DataType::Boolean, false),
            field("unread", DataType::Boolean, false),
            field("modified", time(), true),
            field("mode", DataType::UInt16, true),
            field("owner", DataType::UInt32, true),
            field("group", DataType::UInt32, true),
        ]);
        Rows { walk: Walk::of(scan, true), schema: Arc::new(schema) }
    }

    fn batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let mut paths = Paths::default();
        let mut kinds = StringBuilder::new();
        let (mut depths, mut facts) = (Vec::new(), Vec::new());
        let mut sizes: [Vec<u64>; 3] = Default::default();
        let (mut elsewhere, mut unread) = (BooleanBuilder::new(), BooleanBuilder::new());
        while depths.len() < BATCH {
            let Some((node, depth)) = self.walk.step() else { break };
            paths.push(Some(&node.path()));
            kinds.append_value(kind_name(node.kind()));
            depths.push(depth);
            let all = [node.apparent_bytes(), node.disk_bytes(), node.entries()];
            sizes.iter_mut().zip(all).for_each(|(of, size)| of.push(size));
            elsewhere.append_value(node.counts_elsewhere());
            unread.append_value(node.is_unread());
            facts.push(node.facts());
        }
        if depths.is_empty() {
            return Ok(None);
        }
        let [path, bytes] = paths.finish();
        let mut modified = TimestampSecondBuilder::new().with_data_type(time());
        for facts in &facts {
            modified.append_option(facts.map(|facts| facts.modified()));
        }
        let numbers = |of: fn(Facts) -> u32| -> ArrayRef {
            let each = facts.iter().map(|facts| facts.map(of));
            Arc::new(each.collect::<PrimitiveArray<UInt32Type>>())
        };
        let modes = facts.iter().map(|facts| facts.map(|facts| facts.mode()));
        let mut columns: Vec<ArrayRef> = vec![
            path,
            bytes,
            Arc::new(kinds.finish()),
            Arc::new(PrimitiveArray::<UInt32Type>::from(depths)),
        ];
        let sizes = sizes.map(|of| -> ArrayRef { Arc::new(UInt64Array::from(of)) });
        columns.extend(sizes);
        columns.extend([
            Arc::new(elsewhere.finish()) as ArrayRef,
            Arc::new(unread.finish()),
            Arc::new(modified.finish()),
            Arc::new(modes.collect::<PrimitiveArray<UInt16Type>>()),
            numbers(|facts| facts.owner()),
            numbers(|facts| facts.group()),
        ]);
        RecordBatch::try_new(Arc::clone(&self.schema), columns).map(Some)
    }
}

impl Iterator for Rows {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batch().transpose()
    }
}

impl RecordBatchReader for Rows {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// The type of a report's column: by its cells, or by its name if it has no cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Unknown,
    Whole,
    Number,
    Time,
    Text,
    Path,
}

impl Type {
    fn of(cell: &Cell) -> Type {
        match cell {
            Cell::Count(_) | Cell::Bytes(_) => Type::Whole,
            Cell::Number(_) => Type::Number,
            Cell::Time(_) => Type::Time,
            Cell::Text(_) => Type::Text,
            Cell::Path(_) => Type::Path,
            _ => Type::Unknown,
        }
    }

    /// The columns that several reports have, and those whose cells may all be empty.
    fn named(name: &str) -> Type {
        match name {
            "path" | "target" => Type::Path,
            "modified" => Type::Time,
            "entries" | "files" | "group" | "uid" => Type::Whole,
            "name" | "state" | "age" | "owner" | "message" | "extension" | "type" => Type::Text,
            "value" => Type::Number,
            _ if name.ends_with("_bytes") => Type::Whole,
            _ => Type::Unknown,
        }
    }

    /// The type that can hold both.
    fn or(self, other: Type) -> Type {
        match (self, other) {
            (Type::Unknown, known) | (known, Type::Unknown) => known,
            (Type::Whole, Type::Number) | (Type::Number, Type::Whole) => Type::Number,
            (one, same) if one == same => one,
            _ => Type::Text,
        }
    }
}

/// A report, in one batch.
pub(crate) fn report(section: &Section) -> PyResult<Box<dyn RecordBatchReader + Send>> {
    let (mut fields, mut columns): (Vec<Field>, Vec<ArrayRef>) = (Vec::new(), Vec::new());
    let mut add = |name: &str, column: ArrayRef| {
        fields.push(Field::new(name, column.data_type().clone(), true));
        columns.push(column);
    };
    for (at, column) in section.columns.iter().enumerate() {
        let cells = || section.rows.iter().filter_map(move |row| row.get(at));
        let seen = cells().map(Type::of).fold(Type::Unknown, Type::or);
        let kind = if seen == Type::Unknown { Type::named(column.name) } else { seen };
        match kind {
            Type::Whole => {
                let whole = |cell: &Cell| match cell {
                    Cell::Count(number) | Cell::Bytes(number) => Some(*number),
                    _ => None,
                };
                let column_of = cells().map(whole).collect::<PrimitiveArray<UInt64Type>>();
                add(column.name, Arc::new(column_of));
            }
            Type::Number => {
                let number = |cell: &Cell| match cell {
                    Cell::Count(number) | Cell::Bytes(number) => Some(*number as f64),
                    Cell::Number(number) => Some(*number),
                    _ => None,
                };
                add(column.name, Arc::new(cells().map(number).collect::<Float64Array>()));
            }
            Type::Time => {
                let mut times = TimestampSecondBuilder::new().with_data_type(time());
                for cell in cells() {
                    times.append_option(match cell {
                        Cell::Time(seconds) => Some(*seconds),
                        _ => None,
                    });
                }
                add(column.name, Arc::new(times.finish()));
            }
            Type::Text => {
                let mut text = StringBuilder::new();
                cells().for_each(|cell| text.append_option(words(cell)));
                add(column.name, Arc::new(text.finish()));
            }
            Type::Path => {
                let mut paths = Paths::default();
                for cell in cells() {
                    paths.push(match cell {
                        Cell::Path(path) => Some(path),
                        _ => None,
                    });
                }
                let [text, bytes] = paths.finish();
                add(column.name, text);
                add(&format!("{}_bytes", column.name), bytes);
            }
            Type::Unknown => add(column.name, Arc::new(NullArray::new(section.rows.len()))),
        }
    }
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns)
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(Box::new(RecordBatchIterator::new([Ok(batch)], schema)))
}

/// A cell of a column of text.
fn words(cell: &Cell) -> Option<String> {
    match cell {
        Cell::Count(number) | Cell::Bytes(number) => Some(number.to_string()),
        Cell::Number(number) => Some(number.to_string()),
        Cell::Time(seconds) => Some(seconds.to_string()),
        Cell::Text(text) => Some(text.to_string()),
        Cell::Path(path) => Some(String::from_utf8_lossy(path).into_owned()),
        _ => None,
    }
}
