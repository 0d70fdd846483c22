//! A walk over a document like JSON: lists and objects within each other, of very unequal sizes,
//! and strings whose letters are counted. With a task for every list element, or with a grain: only
//! collections of some size are divided.

use anyhow::{Result, ensure};

use crate::Size;
use crate::fork::{Fork, Program, System, Task};

enum Value {
    Number(f64),
    Text(String),
    List(Vec<Value>),
    Object(Vec<(String, Value)>),
}

/// What the walk finds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Found {
    values: u64,
    letters: u64,
    sum: f64,
}

impl Found {
    fn and(self, other: Found) -> Found {
        Found {
            values: self.values + other.values,
            letters: self.letters + other.letters,
            sum: self.sum + other.sum,
        }
    }
}

fn letters(text: &str) -> u64 {
    text.bytes().filter(u8::is_ascii_alphabetic).count() as u64
}

/// The walk of some values; the grain is in the constant.
enum Walk<'v, const GRAIN: usize> {
    Value(&'v Value),
    List(&'v [Value]),
    Object(&'v [(String, Value)]),
}

impl<const GRAIN: usize> Walk<'_, GRAIN> {
    fn go<F: Fork>(self, fork: &mut F) -> Found {
        match self {
            Walk::Value(Value::Number(number)) => Found { values: 1, letters: 0, sum: *number },
            Walk::Value(Value::Text(text)) => Found { values: 1, letters: letters(text), sum: 0.0 },
            Walk::Value(Value::List(list)) => {
                Found { values: 1, ..Found::default() }.and(Self::List(list).go(fork))
            }
            Walk::Value(Value::Object(fields)) => {
                Found { values: 1, ..Found::default() }.and(Self::Object(fields).go(fork))
            }
            Walk::List(list) if list.len() > GRAIN => {
                let (left, right) = list.split_at(list.len() / 2);
                let (left, right) = fork.join(Self::List(left), Self::List(right));
                left.and(right)
            }
            Walk::List(list) => list
                .iter()
                .map(|value| Self::Value(value).go(fork))
                .fold(Found::default(), Found::and),
            Walk::Object(fields) if fields.len() > GRAIN => {
                let (left, right) = fields.split_at(fields.len() / 2);
                let (left, right) = fork.join(Self::Object(left), Self::Object(right));
                left.and(right)
            }
            Walk::Object(fields) => fields
                .iter()
                .map(|(name, value)| {
                    let name = Found { values: 0, letters: letters(name), sum: 0.0 };
                    name.and(Self::Value(value).go(fork))
                })
                .fold(Found::default(), Found::and),
        }
    }
}

impl<const GRAIN: usize> Task for Walk<'_, GRAIN> {
    type Output = Found;

    fn run<F: Fork>(self, mut fork: F) -> Found {
        self.go(&mut fork)
    }
}

/// A document, and what is in it, counted while it was made.
struct Maker {
    random: fastrand::Rng,
    made: Found,
}

impl Maker {
    /// A value with about so many values below it.
    fn value(&mut self, below: usize) -> Value {
        self.made.values += 1;
        if below == 0 {
            return if self.random.bool() {
                // Whole numbers, so that sums do not depend on their order.
                let number = f64::from(self.random.i32(-1_000..1_000));
                self.made.sum += number;
                Value::Number(number)
            } else {
                Value::Text(self.text())
            };
        }
        // Most of what is below goes to one of the children.
        let children = self.random.usize(1..=12.min(below));
        let largest = below * 2 / 3;
        let rest = (below - largest) / children;
        let mut shares: Vec<usize> = vec![rest.saturating_sub(1); children];
        shares[self.random.usize(..children)] = largest.saturating_sub(1);
        if self.random.bool() {
            Value::List(shares.into_iter().map(|share| self.value(share)).collect())
        } else {
            Value::Object(
                shares.into_iter().map(|share| (self.text(), self.value(share))).collect(),
            )
        }
    }

    fn text(&mut self) -> String {
        let length = self.random.usize(1..24);
        let letters: String = (0..length).map(|_| self.random.alphabetic()).collect();
        self.made.letters += letters.len() as u64;
        format!("{letters} {length}")
    }
}

/// What a record of the document takes, in bytes, as the resident memory grows with them.
const BYTES: u64 = 20 << 10;

/// With a grain, or with a task for every element.
pub(crate) struct JsonWalk<const GRAIN: usize> {
    document: Value,
    made: Found,
    result: Option<Found>,
}

impl<const GRAIN: usize> Program for JsonWalk<GRAIN> {
    const NAME: &'static str = if GRAIN == 1 { "json-walk" } else { "json-walk-grain" };

    fn memory(size: Size) -> u64 {
        BYTES * records(size) as u64
    }

    fn new(size: Size) -> Self {
        let records = records(size);
        let mut maker = Maker { random: fastrand::Rng::with_seed(41), made: Found::default() };
        maker.made.values += 1;
        let document = Value::List((0..records).map(|at| maker.value(at % 700)).collect());
        JsonWalk { document, made: maker.made, result: None }
    }

    fn reset(&mut self) {
        self.result = None;
    }

    fn run(&mut self, system: &impl System) {
        self.result = Some(system.run(Walk::<GRAIN>::Value(&self.document)));
    }

    fn check(&self) -> Result<()> {
        ensure!(
            self.result == Some(self.made),
            "the document has {:?}, not {:?}",
            self.made,
            self.result
        );
        Ok(())
    }
}

fn records(size: Size) -> usize {
    size.pick(4, 400, 4_000, 40_000)
}
