//! What an execution did, step by step; and choice strings.

use std::fmt::Write as _;
use std::panic::Location;
use std::sync::Arc;

use crate::Violation;
use crate::counterexample::{Column, Counterexample, Row};
use crate::history::{Call, History, Outcome};
use crate::machine::{Change, Choice, Entry, KINDS, Loc, MAX_THREADS, Machine, Op, Owners, Size};
use crate::search::EAGER;

/// What a word is called in a counterexample.
#[derive(Clone, Debug)]
pub struct Naming {
    /// Its name.
    pub name: String,
    /// Whether it is shown among the memory, or only where something happens to it.
    pub shown: bool,
    /// Two names, if the word packs two 32-bit numbers: of its lower and its upper half.
    pub halves: Option<(&'static str, &'static str)>,
}

impl Naming {
    /// A word with one number.
    pub fn new(name: impl Into<String>) -> Self {
        Naming { name: name.into(), shown: true, halves: None }
    }

    /// A word that is shown only where something happens to it.
    pub fn hidden(name: impl Into<String>) -> Self {
        Naming { shown: false, ..Naming::new(name) }
    }

    /// A word with two numbers.
    pub fn halves(name: impl Into<String>, lower: &'static str, upper: &'static str) -> Self {
        Naming { halves: Some((lower, upper)), ..Naming::new(name) }
    }
}

pub(crate) fn place(site: &Location<'_>) -> String {
    let file = site.file();
    let short = file.rfind("/src/").map_or(file, |at| &file[at + 5..]);
    format!("{short}:{}", site.line())
}

#[derive(Default)]
pub(crate) struct Recording {
    names: Arc<[Naming]>,
    rows: Vec<Row>,
    opened: [Option<String>; MAX_THREADS],
}

impl Recording {
    pub(crate) fn begin(&mut self, machine: &Machine, names: Arc<[Naming]>) {
        self.names = names;
        self.row(machine, Column::Start, "start".to_owned());
    }

    fn name(&self, loc: Loc) -> String {
        match self.names.get(loc as usize) {
            Some(naming) => naming.name.clone(),
            None => format!("w{loc}"),
        }
    }

    fn value(&self, machine: &Machine, loc: Loc, value: u64) -> String {
        if let Some((lower, upper)) = self.names.get(loc as usize).and_then(|naming| naming.halves)
        {
            return format!("{lower} {}, {upper} {}", value as u32, value >> 32);
        }
        if let Some(object) = machine.is_address(value) {
            return format!("@{object}");
        }
        if value > u64::MAX - 1_000 { (value as i64).to_string() } else { value.to_string() }
    }

    pub(crate) fn step(&mut self, machine: &Machine, thread: usize, op: Op, result: u64) {
        let at = place(machine.threads[thread].site);
        let mut text = match op {
            Op::Count(_, Owners::Fewer) if result == 1 => "the last owner goes".to_owned(),
            Op::Count(_, Owners::Look) => format!("owners: {result}"),
            Op::Choose(Choice::WakesUp) if result == 1 => "wakes up without a reason".to_owned(),
            Op::Choose(Choice::Waiter(count)) => {
                format!("notifies waiter {} of {count}", result + 1)
            }
            Op::Start | Op::Mark | Op::Finished | Op::Count(..) | Op::Choose(Choice::WakesUp) => {
                return;
            }
            Op::Load(loc) => {
                format!("{} = {}", self.name(loc), self.value(machine, loc, result))
            }
            Op::Store(loc, value) => {
                format!("{} := {}", self.name(loc), self.value(machine, loc, value))
            }
            Op::Change(loc, change) | Op::Await(loc, _, change) => {
                let name = self.name(loc);
                let old = self.value(machine, loc, result);
                match change {
                    Change::CompareExchange(expected, new) => {
                        let new = self.value(machine, loc, new);
                        if result == expected {
                            format!("cas {name}: {old} -> {new}")
                        } else {
                            let expected = self.value(machine, loc, expected);
                            format!("cas {name} fails: {old}, not {expected}")
                        }
                    }
                    Change::Swap(new) => {
                        format!("swap {name}: {old} -> {}", self.value(machine, loc, new))
                    }
                    _ => {
                        let new = change.of(result).unwrap_or(result);
                        format!("change {name}: {old} -> {}", self.value(machine, loc, new))
                    }
                }
            }
            Op::Full => "fence".to_owned(),
            Op::Fence => {
                let access = machine.threads[thread].access;
                let kind = match (access.acquires, access.releases) {
                    (true, true) => "acquire-release",
                    (true, false) => "acquire",
                    _ => "release",
                };
                format!("{kind} fence")
            }
            Op::HeavyStart(u8::MAX) => "membarrier".to_owned(),
            Op::HeavyStart(reaches) => format!("visits thread {}", reaches.trailing_zeros()),
            Op::HeavyFinish => "the barrier returns".to_owned(),
            Op::Pause => "waits".to_owned(),
            Op::Join(other) => format!("joins thread {other}"),
        };
        if let (Some(weak), Op::Load(_) | Op::Store(..) | Op::Change(..)) = (&machine.weak, op) {
            if weak.newer > 0 {
                let _ = write!(text, " ({} newer)", weak.newer);
            }
        }
        self.row_at(machine, Column::Thread(thread), text, at);
    }

    pub(crate) fn drain(&mut self, machine: &Machine, thread: usize, entry: Entry) {
        let value = self.value(machine, entry.loc, entry.value);
        let text = format!("{} := {value} reaches memory", self.name(entry.loc));
        self.row(machine, Column::Buffer(thread), text);
    }

    pub(crate) fn barrier(&mut self, machine: &Machine, thread: usize) {
        self.row(machine, Column::Buffer(thread), "the membarrier reaches it".to_owned());
    }

    pub(crate) fn coalesce(&mut self, machine: &Machine, thread: usize, entry: Entry) {
        let value = self.value(machine, entry.loc, entry.value);
        let text = format!("{} := {value} is overwritten in the egress slot", self.name(entry.loc));
        self.row(machine, Column::Buffer(thread), text);
    }

    pub(crate) fn give_up(&mut self, machine: &Machine, thread: usize, pauses: u32) {
        let text = match pauses {
            1 => "looks once more, in vain".to_owned(),
            _ => format!("looks {pauses} times more, in vain"),
        };
        let at = place(machine.threads[thread].site);
        self.row_at(machine, Column::Thread(thread), text, at);
    }

    pub(crate) fn call(&mut self, thread: usize, call: Call) {
        let text = match call {
            Call::Push(task) => format!("push({task})"),
            Call::Pop => "pop()".to_owned(),
            Call::Steal => "steal()".to_owned(),
        };
        self.opened[thread] = Some(text);
    }

    pub(crate) fn ret(&mut self, thread: usize, call: Call, outcome: Outcome) {
        let text = match (call, outcome) {
            (Call::Push(task), _) => format!("push({task}) returns"),
            (call, outcome) => {
                let name = if call == Call::Steal { "steal()" } else { "pop()" };
                match outcome {
                    Outcome::Task(task) => format!("{name} returns {task}"),
                    Outcome::Empty => format!("{name} returns empty"),
                    Outcome::Abort => format!("{name} returns abort"),
                    Outcome::Retry => format!("{name} returns retry"),
                    Outcome::Done => format!("{name} returns"),
                }
            }
        };
        self.opened[thread] = None;
        if let Some(last) =
            self.rows.iter_mut().rev().find(|row| row.column == Column::Thread(thread))
        {
            last.notes.push(text);
        }
    }

    fn row(&mut self, machine: &Machine, column: Column, text: String) {
        self.row_at(machine, column, text, String::new());
    }

    fn row_at(&mut self, machine: &Machine, column: Column, text: String, at: String) {
        let named = |loc: Loc| {
            self.names.is_empty() || self.names.get(loc as usize).is_some_and(|naming| naming.shown)
        };
        let memory = machine
            .words()
            .filter(|(loc, _)| named(*loc))
            .map(|(loc, value)| format!("{} {}", self.name(loc), self.value(machine, loc, value)))
            .collect();
        let buffers = (0..machine.count)
            .map(|thread| {
                let entries = machine.buffer(thread).iter();
                entries
                    .map(|entry| {
                        let value = self.value(machine, entry.loc, entry.value);
                        format!("{} {value}", self.name(entry.loc))
                    })
                    .collect()
            })
            .collect();
        let opens = match column {
            Column::Thread(thread) => self.opened[thread].take(),
            _ => None,
        };
        self.rows.push(Row { column, text, at, opens, notes: Vec::new(), memory, buffers });
    }

    pub(crate) fn finish(
        self,
        names: &[&'static str; MAX_THREADS],
        history: &History,
        size: Size,
        violation: Option<Violation>,
        choices: &[u8],
    ) -> Counterexample {
        let threads = self.rows.last().map_or(0, |row| row.buffers.len());
        Counterexample {
            threads: names[..threads].iter().map(|name| (*name).to_owned()).collect(),
            rows: self.rows,
            history: history.operations().to_vec(),
            violation,
            egress: size.egress > 0,
            choices: write_choices(choices),
        }
    }
}

const FIRST: [u8; KINDS] = [b'a', b'A', b's', b'i', b'I', b'Q'];

/// A choice string. The letters of the first thread; `b`, `B`, `t` and so on are the second's:
///
/// | letter | event |
/// |---|---|
/// | `a` | a step of the thread |
/// | `A` | a drain of its buffer |
/// | `s` | a coalescing in its buffer |
/// | `i` | the thread gives up waiting |
/// | `I` | its step takes the next of its possibilities; of weak memory, another message |
/// | `Q` | of weak memory: a process-wide barrier reaches the thread |
///
/// A `'` marks an event that was no choice: no thread can notice when it happens. A number repeats.
pub fn write_choices(events: &[u8]) -> String {
    let mut text = String::new();
    let mut rest = events;
    while let Some(&event) = rest.first() {
        let run = rest.iter().take_while(|next| **next == event).count();
        let forced = event & EAGER != 0;
        let event = usize::from(event & !EAGER);
        let thread = (event % MAX_THREADS) as u8;
        // A search has no other events; a `Strategy::Replay` may have been given some.
        let letter = FIRST.get(event / MAX_THREADS).map(|first| first + thread);
        text.push(letter.map_or('?', char::from));
        if forced {
            text.push('\'');
        }
        if run > 1 {
            let _ = write!(text, "{run}");
        }
        rest = &rest[run..];
    }
    text
}

/// The events of a choice string.
///
/// # Errors
///
/// The first character that means nothing, and its place.
pub fn parse_choices(text: &str) -> Result<Vec<u8>, String> {
    let mut events = Vec::new();
    let mut characters = text.char_indices().peekable();
    while let Some((at, letter)) = characters.next() {
        let kind = |first: &u8| {
            let thread = u8::try_from(letter).ok()?.checked_sub(*first)?;
            (usize::from(thread) < MAX_THREADS).then_some(thread)
        };
        let mut kinds = FIRST.iter().enumerate();
        let found = kinds.find_map(|(number, first)| Some((number, kind(first)?)));
        let Some((number, thread)) = found else {
            return Err(format!(
                "character {} of the choice string is {letter:?}; it should be a letter a-h (a \
                 thread's step), A-H (its buffer drains), s-z (its egress slot coalesces), i-p (it \
                 gives up waiting), I-P (another message) or Q-X (a barrier reaches it)",
                at + 1
            ));
        };
        let mut event = (number * MAX_THREADS) as u8 + thread;
        if characters.next_if(|(_, next)| *next == '\'').is_some() {
            event |= EAGER;
        }
        let mut count = 0usize;
        while let Some((_, digit)) = characters.next_if(|(_, next)| next.is_ascii_digit()) {
            count = count * 10 + (digit as usize - '0' as usize);
            if count > 100_000 {
                return Err(format!("the number after character {} is too large", at + 1));
            }
        }
        events.extend(std::iter::repeat_n(event, count.max(1)));
    }
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_string_says_what_it_was_made_of() {
        let events = [0, 0, 0x80, 1, 8, 8, 8, 9, 16, 17, 7, 15, 23, 24, 31, 32, 47, 0x81, 0x81];
        let text = write_choices(&events);
        assert_eq!(text, "a2a'bA3BsthHzipIXb'2");
        assert_eq!(parse_choices(&text), Ok(events.to_vec()));
    }

    #[test]
    fn a_bad_choice_string_is_refused_with_its_place() {
        assert!(parse_choices("aa?").unwrap_err().contains("character 3"));
        assert!(parse_choices("a999999999999999999999").unwrap_err().contains("too large"));
    }
}
