//! Litmus tests in files of [herd](https://diy.inria.fr/doc/herd.html) for x86, on this machine.
//!
//! ```
//! use poach_check::{Config, herd::Test};
//!
//! let test = Test::parse(
//!     "X86_64 SB
//! { }
//!  P0            | P1            ;
//!  movl $1,(x)   | movl $1,(y)   ;
//!  movl (y),%eax | movl (x),%eax ;
//! exists (0:rax=0 /\\ 1:rax=0)",
//! )?;
//! let answer = test.run(&Config::default());
//! assert!(answer.holds && answer.states.len() == 4);
//! assert!(answer.text().contains("Observation SB Sometimes 1 3"));
//! assert!(!test.run(&Config::sequential()).holds);
//! # Ok::<(), poach_check::herd::Mistake>(())
//! ```
//!
//! # What is understood
//!
//! | part | what |
//! |---|---|
//! | first line | `X86` (Intel's order of operands, `[x]`, `EAX`) or `X86_64` (AT&T's, `(x)`, `%rax`), and a name |
//! | before `{` | a title in quotes, `Key=Value` lines, comments `(* .. *)`; they change nothing |
//! | `{ .. }` | `x=1`, `[x]=1`, `0:rax=1`, `0:rax=x` (an address), with or without a type; what is not named is 0 |
//! | instructions | `mov` `xchg` `xadd` `cmpxchg` `add` `sub` `and` `or` `xor` `inc` `dec` `neg` `not`, with `lock` or without, `cmp` `test`, `jmp` and the conditional jumps, labels, `mfence` `lfence` `sfence` `nop` `endbr64` `ret` |
//! | operands | a register, a number, a location, a register that holds an address |
//! | after the columns | `locations [..]`, `filter`, then `exists`, `~exists` or `forall`, with `/\` `\/` `~` `true` `false` `=` `!=` |
//!
//! A location is one cell of 64 bits; an access of 32 bits reads and writes its lower half, and
//! zeroes the upper. Accesses of 8 and 16 bits, mixed sizes, segments, vectors, page tables and
//! non-temporal stores are refused, with the line and column. `xchg` with memory locks by itself;
//! any other instruction that reads and writes memory without `lock` is a load and a store.
//! `lfence` and `sfence` change nothing on TSO for ordinary memory.
//!
//! # How the answer reads
//!
//! As herd's, line by line. The one difference: herd's witnesses are candidate executions, these
//! are distinct final states. A search that was cut says so, and its `No` or `Never` is no proof.

mod condition;
mod program;
mod run;
mod text;

pub use condition::Quantifier;
pub use run::Answer;
pub use text::Mistake;

use condition::Condition;
use program::{Place, Program};
use text::Text;

const MOST_THREADS: usize = crate::MAX_THREADS;

/// A parsed test.
#[derive(Clone, Debug)]
pub struct Test {
    name: String,
    program: Program,
    /// What a state lists: what `locations` and the condition name, in that order.
    shown: Vec<Place>,
    filter: Option<Condition>,
    quantifier: Quantifier,
    condition: Condition,
}

impl Test {
    /// The test that a file's text describes.
    ///
    /// # Errors
    ///
    /// The first thing that is not understood or not supported, with its line and column.
    pub fn parse(source: &str) -> Result<Test, Mistake> {
        let mut text = Text::new(source);
        let arch = text.word("an architecture, X86 or X86_64")?;
        let intel = match arch.text {
            "X86" => true,
            "X86_64" => false,
            other => {
                return Err(text.mistake(
                    arch.at,
                    format!("the architecture is {other}; only X86 and X86_64 are understood"),
                ));
            }
        };
        let name = text.rest_of_line();
        if name.is_empty() {
            return Err(text.mistake(arch.at, "the test has no name behind its architecture"));
        }
        text.skip_to_brace()?;
        let mut program = Program::new(intel);
        program.parse_init(&mut text)?;
        program.parse_columns(&mut text)?;
        let (mut shown, mut filter) = (Vec::new(), None);
        if text.take_word("locations") {
            program.parse_locations(&mut text, &mut shown)?;
        }
        if text.take_word("filter") {
            filter = Some(Condition::parse(&mut text, &mut program)?);
        }
        let quantifier = Quantifier::parse(&mut text)?;
        let condition = Condition::parse(&mut text, &mut program)?;
        text.skip_space();
        if !text.at_end() {
            return Err(text.mistake(text.at(), "there is more after the condition"));
        }
        for place in condition.places() {
            if !shown.contains(&place) {
                shown.push(place);
            }
        }
        Ok(Test { name: name.to_owned(), program, shown, filter, quantifier, condition })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is asked of the condition.
    pub fn quantifier(&self) -> Quantifier {
        self.quantifier
    }
}
