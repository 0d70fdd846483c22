//! The models that Spin is asked about alone: FF-THE, THEP, and the split deque's requests and
//! exposure.
//!
//! Each question names a model, what is set in it beside its usual values, and the answer. What
//! must fail does: a fence left out, a delta one too small, a request that is overwritten.

use std::path::Path;

use anyhow::{Result, ensure};

use super::{Answer, ask};

/// What a search ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// Every execution is right.
    Clean,
    /// An assertion of the model fails: a task is taken twice, or left behind.
    Wrong,
    /// Threads wait for each other.
    Stuck,
}

/// A model, and what it is asked with unless a question says otherwise.
struct Model {
    name: &'static str,
    usual: &'static [(&'static str, u32)],
    questions: &'static [Question],
}

/// What is set, how it ends, and why.
type Question = (&'static [(&'static str, u32)], Ends, &'static str);

use Ends::{Clean, Stuck, Wrong};

const MODELS: [Model; 3] = [
    Model {
        name: "ff_the",
        usual: &[
            ("S", 2),
            ("EGRESS", 1),
            ("X", 1),
            ("DELTA", 2),
            ("TASKS", 3),
            ("POPS", 9),
            ("THIEVES", 1),
            ("STEALS", 2),
            ("OWNER_FENCE", 0),
            ("THIEF_FENCE", 1),
            ("LOCKED", 1),
            ("LEAVES", 0),
        ],
        questions: &[
            (&[], Clean, "delta is the bound"),
            (&[("DELTA", 1)], Wrong, "delta is one too small"),
            (&[("S", 4), ("DELTA", 3), ("TASKS", 4)], Clean, "the bound of four entries"),
            (&[("S", 4), ("DELTA", 2), ("TASKS", 4)], Wrong, "one too small"),
            (&[("S", 4), ("X", 2)], Clean, "two stores between takes"),
            (&[("S", 4), ("X", 2), ("DELTA", 1)], Wrong, "one too small"),
            (
                &[("X", 0), ("TASKS", 4)],
                Wrong,
                "no store between takes: the egress entry hides them all",
            ),
            (&[("DELTA", 0), ("OWNER_FENCE", 1)], Clean, "THE: the owner has its fence"),
            (&[("DELTA", 0)], Wrong, "THE without the owner's fence"),
            (&[("THIEF_FENCE", 0)], Wrong, "the thief's fence left out"),
            (&[("THIEVES", 2), ("STEALS", 1)], Clean, "two thieves"),
            (
                &[("THIEVES", 2), ("STEALS", 1), ("TASKS", 4), ("LOCKED", 0)],
                Wrong,
                "without the lock",
            ),
            (&[("TASKS", 2), ("POPS", 2), ("LEAVES", 2)], Clean, "an owner that leaves"),
            (&[("TASKS", 2), ("POPS", 2), ("LEAVES", 1)], Wrong, "its tail is not read once more"),
        ],
    },
    Model {
        name: "thep",
        usual: &[
            ("S", 2),
            ("EGRESS", 1),
            ("X", 0),
            ("DELTA", 2),
            ("TASKS", 3),
            ("POPS", 9),
            ("STEALS", 2),
            ("BEATS", 8),
            ("THIEF_FENCE", 1),
            ("ECHO_FIRST", 0),
            ("CLEARED", 1),
            ("ENDS", 1),
            ("LEAVES", 1),
        ],
        questions: &[
            (&[], Clean, "delta is the bound; the echo is the one store between takes"),
            (&[("DELTA", 1)], Wrong, "delta is one too small"),
            (&[("DELTA", 9)], Clean, "no bound is known: a thief always waits"),
            (&[("THIEF_FENCE", 0)], Wrong, "the thief's fence left out"),
            (&[("ECHO_FIRST", 1)], Wrong, "the echo comes before the tail"),
            (&[("ENDS", 0)], Stuck, "who waits does not see that the queue is empty"),
            (&[("POPS", 1), ("DELTA", 9)], Clean, "an owner that leaves"),
            (&[("POPS", 1), ("DELTA", 9), ("LEAVES", 0)], Stuck, "who waits does not see it"),
            (&[("BEATS", 2), ("DELTA", 9), ("STEALS", 4)], Clean, "two heartbeats are enough here"),
            (&[("BEATS", 1), ("DELTA", 9)], Wrong, "one is not: an old echo is met"),
        ],
    },
    Model {
        name: "split",
        usual: &[
            ("S", 2),
            ("EGRESS", 1),
            ("TASKS", 3),
            ("PUSHES", 0),
            ("POPS", 2),
            ("THIEVES", 1),
            ("ROUNDS", 3),
            ("EXPOSES", 1),
            ("HEAVY", 1),
            ("SETTLES", 1),
            ("SWAPS", 1),
            ("DOWN_FIRST", 1),
        ],
        questions: &[
            (&[], Clean, "an exposure beside pops"),
            (&[("HEAVY", 0)], Wrong, "the process-wide barrier left out"),
            (&[("SETTLES", 0)], Wrong, "an owner that is stopped does not settle"),
            (&[("SWAPS", 0)], Wrong, "the request is taken down without a fence"),
            (&[("S", 4), ("POPS", 3)], Clean, "four entries"),
            (&[("TASKS", 1), ("PUSHES", 2)], Clean, "pushes and pops"),
            (&[("TASKS", 1), ("PUSHES", 2), ("POPS", 1), ("EXPOSES", 0)], Clean, "requests alone"),
            (
                &[("TASKS", 1), ("PUSHES", 2), ("POPS", 1), ("EXPOSES", 0), ("DOWN_FIRST", 0)],
                Wrong,
                "a request is lost: shared first, taken down second",
            ),
            (
                &[("S", 1), ("TASKS", 2), ("POPS", 1), ("THIEVES", 2), ("ROUNDS", 2)],
                Clean,
                "two thieves",
            ),
        ],
    },
];

/// Asks all questions, and prints a line for each.
pub(super) fn run(work: &Path) -> Result<()> {
    eprintln!("\nmodel   expected  spin       states    MB      s  what is asked");
    let (mut wrong, mut asked) = (0, 0);
    for Model { name, usual, questions } in &MODELS {
        for (set, ends, why) in *questions {
            let values = usual.iter().map(|(key, usual)| {
                let own = set.iter().find(|(one, _)| one == key);
                (*key, own.map_or(*usual, |(_, value)| *value))
            });
            let values: Vec<_> = values.collect();
            let Answer { ends: said, states, megabytes, seconds, .. } =
                ask(&format!("{name}.pml"), &values, work)?;
            asked += 1;
            wrong += u32::from(said != *ends);
            let bad = if said == *ends { "" } else { "   <- BAD" };
            let said = format!("{said:?}");
            eprintln!(
                "{name:7} {:8}  {said:8} {states:8} {megabytes:5.0} {seconds:6.2}  {}: {why}{bad}",
                format!("{ends:?}"),
                shown(set),
            );
        }
    }
    ensure!(wrong == 0, "spin: {wrong} of {asked} answers are not as expected");
    Ok(())
}

fn shown(set: &[(&str, u32)]) -> String {
    if set.is_empty() {
        return "as it is".to_owned();
    }
    let words: Vec<_> = set.iter().map(|(key, value)| format!("{key}={value}")).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_model_is_asked_what_must_fail_and_what_must_not() {
        for Model { name, usual, questions } in &MODELS {
            assert!(questions.iter().any(|(_, ends, _)| *ends == Clean), "{name}");
            assert!(questions.iter().filter(|(_, ends, _)| *ends != Clean).count() >= 3, "{name}");
            let known = |key: &str| usual.iter().any(|(one, _)| *one == key);
            assert!(
                questions.iter().all(|(set, ..)| set.iter().all(|(key, _)| known(key))),
                "{name}"
            );
        }
    }
}
