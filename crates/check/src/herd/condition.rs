//! Conditions on the final states.

use super::program::{Place, Program};
use super::text::{Mistake, Text};

/// How many of the final states must satisfy a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    /// Some state satisfies it.
    Exists,
    /// No state satisfies it.
    NotExists,
    /// Every state satisfies it.
    ForAll,
}

impl Quantifier {
    pub(super) fn parse(text: &mut Text<'_>) -> Result<Self, Mistake> {
        if text.take_word("exists") {
            return Ok(Quantifier::Exists);
        }
        if text.take_word("forall") {
            return Ok(Quantifier::ForAll);
        }
        if text.take("~") && text.take_word("exists") {
            return Ok(Quantifier::NotExists);
        }
        Err(text.expected("exists, ~exists or forall"))
    }

    /// The word that stands before a condition in a litmus file.
    pub fn word(self) -> &'static str {
        match self {
            Quantifier::Exists => "exists",
            Quantifier::NotExists => "~exists",
            Quantifier::ForAll => "forall",
        }
    }

    /// herd's word for a test with this quantifier.
    pub fn kind(self) -> &'static str {
        match self {
            Quantifier::Exists => "Allowed",
            Quantifier::NotExists => "Forbidden",
            Quantifier::ForAll => "Required",
        }
    }
}

#[derive(Clone, Debug)]
pub(super) enum Condition {
    Always(bool),
    Equal(Place, u64),
    Not(Box<Condition>),
    And(Vec<Condition>),
    Or(Vec<Condition>),
}

impl Condition {
    pub(super) fn parse(text: &mut Text<'_>, program: &mut Program) -> Result<Self, Mistake> {
        let mut any = vec![Self::all(text, program)?];
        while text.take("\\/") {
            any.push(Self::all(text, program)?);
        }
        Ok(if any.len() == 1 { any.remove(0) } else { Condition::Or(any) })
    }

    fn all(text: &mut Text<'_>, program: &mut Program) -> Result<Self, Mistake> {
        let mut all = vec![Self::atom(text, program)?];
        while text.take("/\\") {
            all.push(Self::atom(text, program)?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Condition::And(all) })
    }

    fn atom(text: &mut Text<'_>, program: &mut Program) -> Result<Self, Mistake> {
        if text.take("~") || text.take_word("not") {
            return Ok(Condition::Not(Box::new(Self::atom(text, program)?)));
        }
        if text.take("(") {
            let inner = Self::parse(text, program)?;
            text.expect(")")?;
            return Ok(inner);
        }
        for (word, value) in [("true", true), ("false", false)] {
            if text.take_word(word) {
                return Ok(Condition::Always(value));
            }
        }
        let place = program.parse_place(text)?;
        let differs = text.take("!=") || text.take("<>");
        if !differs {
            text.expect("=")?;
        }
        let equal = Condition::Equal(place, program.parse_value(text)?);
        Ok(if differs { Condition::Not(Box::new(equal)) } else { equal })
    }

    pub(super) fn holds(&self, value: &dyn Fn(Place) -> u64) -> bool {
        match self {
            Condition::Always(yes) => *yes,
            Condition::Equal(place, wanted) => value(*place) == *wanted,
            Condition::Not(inner) => !inner.holds(value),
            Condition::And(all) => all.iter().all(|inner| inner.holds(value)),
            Condition::Or(any) => any.iter().any(|inner| inner.holds(value)),
        }
    }

    pub(super) fn places(&self) -> Vec<Place> {
        match self {
            Condition::Always(_) => Vec::new(),
            Condition::Equal(place, _) => vec![*place],
            Condition::Not(inner) => inner.places(),
            Condition::And(all) | Condition::Or(all) => {
                all.iter().flat_map(Condition::places).collect()
            }
        }
    }

    pub(super) fn write(&self, program: &Program) -> String {
        let join = |all: &[Condition], sign: &str| {
            let parts: Vec<String> = all.iter().map(|inner| inner.write(program)).collect();
            format!("({})", parts.join(sign))
        };
        match self {
            Condition::Always(yes) => yes.to_string(),
            Condition::Equal(place, value) => {
                format!("{}={}", program.write_place(*place), program.write_value(*value))
            }
            Condition::Not(inner) => match &**inner {
                atom @ Condition::Equal(..) => format!("~({})", atom.write(program)),
                inner => format!("~{}", inner.write(program)),
            },
            Condition::And(all) => join(all, " /\\ "),
            Condition::Or(any) => join(any, " \\/ "),
        }
    }
}
