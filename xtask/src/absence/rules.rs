//! The absences that ARCHITECTURE.md states, each as a rule over the tokens of a file.

use super::tokens::Token;

/// Something that must be absent from some modules.
pub(crate) struct Rule {
    /// A short name, for the report.
    pub(crate) name: &'static str,
    /// What to do about it.
    pub(crate) advice: &'static str,
    /// Whether the rule is about this file: its path from the root, with `/`.
    pub(crate) concerns: fn(&str) -> bool,
    /// Whether unit tests are held to it as well.
    pub(crate) tests_too: bool,
    /// Whether the forbidden thing begins at the first of these tokens.
    pub(crate) found: fn(&[Token]) -> bool,
}

/// All of them.
pub(crate) const RULES: [Rule; 10] = [
    Rule {
        name: "unsafe-in-listed-modules",
        advice: "`unsafe` stands only in memory, deque, pool, runtime's foreign, future, join, pool/guests, \
                 system, task, worker/current and worker/tally, scan/sys, measure/capacity, capi, far/mpi/raw, check/loom, compat's observe, its tests of forks and of loom, and the modules that vouch for a memory or a bound: \
                 wrap the operation there",
        concerns: |path| !may_hold_unsafe(path),
        tests_too: true,
        found: |tokens| is(tokens, 0, "unsafe"),
    },
    Rule {
        name: "words-come-from-memory",
        advice: "a queue's shared words are `Memory::Word`, `Pointer` and `Cell`, so that a model \
                 can stand in for them",
        // Its counter orders the system's mappings, and belongs to no queue.
        concerns: |path| {
            (path.starts_with("crates/deque/src/") || path.starts_with("crates/pool/src/"))
                && path != "crates/deque/src/papers/split/stack/region.rs"
        },
        tests_too: false,
        found: |tokens| {
            tokens[0].text.strip_prefix("Atomic").is_some_and(|kind| ATOMICS.contains(&kind))
                || is_row(tokens, &["atomic", ":", ":"])
        },
    },
    Rule {
        name: "fences-come-from-memory",
        advice: "call `Memory::full`, `light` or `heavy`, or take a `StoreLoad` policy",
        concerns: |path| is_code(path) && !path.starts_with("crates/memory/"),
        tests_too: false,
        found: |tokens| {
            imports(tokens, "atomic", &["fence", "compiler_fence", "*"])
                || FENCES.contains(&tokens[0].text.as_str())
        },
    },
    Rule {
        name: "quiet-libraries",
        advice: "return a value or an error, and let the program print it",
        // A process that cannot go on has no caller to return its last message to.
        concerns: |path| {
            is_library(path)
                && !path.starts_with("compat/")
                && path != "crates/check/src/engine/fibers.rs"
                // Its standard input is the socket to its supervisor.
                && path != "far/src/world/supervise.rs"
        },
        tests_too: false,
        found: |tokens| {
            (PRINTERS.contains(&tokens[0].text.as_str()) && is(tokens, 1, "!"))
                || imports(tokens, "io", &["stdout", "stderr", "stdin"])
        },
    },
    Rule {
        name: "no-environment-in-libraries",
        advice: "take the value as an argument, and let the program read the environment",
        concerns: |path| {
            is_library(path)
                && !path.starts_with("compat/")
                && path != "crates/runtime/src/pool/environment.rs"
                && path != "far/src/world/launcher.rs"
        },
        tests_too: false,
        found: |tokens| imports(tokens, "env", &ENVIRONMENT),
    },
    Rule {
        name: "no-exit-in-libraries",
        advice: "return an error, and let the program choose its exit code",
        concerns: is_library,
        tests_too: false,
        found: |tokens| imports(tokens, "process", &["exit"]),
    },
    Rule {
        name: "deques-never-wait",
        advice: "a deque answers at once; parking, sleeping and clocks are the runtime's",
        concerns: |path| path.starts_with("crates/deque/src/"),
        tests_too: false,
        found: |tokens| {
            imports(tokens, "thread", &["park", "park_timeout", "sleep"])
                || ["Instant", "SystemTime", "Condvar"].contains(&tokens[0].text.as_str())
        },
    },
    Rule {
        name: "no-algorithm-knows-its-memory",
        advice: "what differs between memories belongs into `memory`; tests run the constants \
                 that ship",
        concerns: |path| {
            path.starts_with("crates/deque/src/") || path.starts_with("crates/pool/src/")
        },
        tests_too: false,
        found: |tokens| {
            is_row(tokens, &["loom"])
                || is_row(tokens, &["Loom"])
                || is_row(tokens, &["cfg", "!", "(", "test"])
                || is_row(tokens, &["cfg", "(", "not", "(", "test"])
        },
    },
    Rule {
        name: "one-term-for-one-thing",
        advice: "the guide's page `words.md` has the field's term for it",
        concerns: |path| !path.starts_with("xtask/src/absence/"),
        tests_too: true,
        found: |tokens| words_of(&tokens[0].text).any(|word| GIVEN_UP.contains(&word.as_str())),
    },
    Rule {
        name: "nothing-unfinished",
        advice: "finish it or leave it out; a test that is ignored is no test",
        concerns: |_| true,
        tests_too: true,
        found: |tokens| {
            is_row(tokens, &["todo", "!"])
                || is_row(tokens, &["unimplemented", "!"])
                || is_row(tokens, &["#", "[", "ignore"])
        },
    },
];

/// Words that once stood for something that has a term. `words.md` of the guide has a row for each.
pub(super) const GIVEN_UP: [&str; 8] =
    ["breathe", "crumb", "crumbs", "furnish", "furniture", "manners", "meal", "pile"];

/// The words of which a name is made, in lower case: `SpawnQueue` and `spawn_queue` are `spawn` and
/// `queue`.
fn words_of(name: &str) -> impl Iterator<Item = String> {
    let mut words = vec![String::new()];
    for letter in name.chars() {
        if letter == '_' || letter.is_uppercase() {
            words.push(String::new());
        }
        if letter != '_' {
            words.last_mut().expect("there is one").extend(letter.to_lowercase());
        }
    }
    words.into_iter()
}

const ATOMICS: [&str; 12] =
    ["U8", "U16", "U32", "U64", "Usize", "I8", "I16", "I32", "I64", "Isize", "Bool", "Ptr"];
const FENCES: [&str; 7] = [
    "_mm_mfence",
    "_mm_lfence",
    "_mm_sfence",
    "MembarrierCommand",
    "membarrier_query",
    "SYS_membarrier",
    "FlushProcessWriteBuffers",
];
const PRINTERS: [&str; 5] = ["print", "println", "eprint", "eprintln", "dbg"];
const ENVIRONMENT: [&str; 12] = [
    "var",
    "vars",
    "var_os",
    "vars_os",
    "set_var",
    "remove_var",
    "args",
    "args_os",
    "current_dir",
    "current_exe",
    "home_dir",
    "temp_dir",
];

/// Code that ships: not a test, a benchmark, an example or a build script, and not the checks.
fn is_code(path: &str) -> bool {
    !path.starts_with("xtask/") && path.contains("/src/") && !is_test_file(path)
}

/// A file that is compiled for tests only, as far as its path tells.
pub(crate) fn is_test_file(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs")
}

fn is_library(path: &str) -> bool {
    let program = ["crates/cli/src/", "far/src/main.rs", "far/src/program/"];
    is_code(path) && !program.iter().any(|at| path.starts_with(at))
}

fn may_hold_unsafe(path: &str) -> bool {
    // Directories, and modules without an ending.
    let places = include_str!("../../tables/unsafe.txt").lines();
    places.filter(|line| !line.starts_with('#')).any(|place| {
        path.strip_prefix(place).is_some_and(|rest| {
            place.ends_with('/') || rest.starts_with(".rs") || rest.starts_with('/')
        })
    })
}

fn is(tokens: &[Token], at: usize, text: &str) -> bool {
    tokens.get(at).is_some_and(|token| token.text == text)
}

fn is_row(tokens: &[Token], texts: &[&str]) -> bool {
    texts.iter().enumerate().all(|(at, text)| is(tokens, at, text))
}

/// Whether the tokens begin with `module::name`, or with `module::{.., name, ..}`.
fn imports(tokens: &[Token], module: &str, names: &[&str]) -> bool {
    if !is_row(tokens, &[module, ":", ":"]) {
        return false;
    }
    let named = |token: &Token| names.contains(&token.text.as_str());
    if !is(tokens, 3, "{") {
        return tokens.get(3).is_some_and(named);
    }
    let mut depth = 0;
    for token in &tokens[3..] {
        match token.text.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ if depth == 1 && named(token) => return true,
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    false
}
