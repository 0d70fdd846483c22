//! An execution is cut short while one of its threads is in a destructor that a panic runs: the
//! others are unwound all the same. And a search is cut short by its time.

#![forbid(unsafe_code)]

use std::cell::Cell as Count;
use std::rc::Rc;
use std::time::{Duration, Instant};

use poach_check::{Config, Simulated, SimulatedCell, SimulatedWord, Threads, Verdict, explore};
use poach_memory::{Cell, Memory, Ordering::Relaxed, Word};

/// More than the steps that a cut execution may take before it is unwound.
const LONG: u32 = 10_000;

struct Waits(Rc<SimulatedWord>, Rc<Count<u32>>);

impl Drop for Waits {
    fn drop(&mut self) {
        for _ in 0..LONG {
            if self.0.load(Relaxed) != 7 {
                self.1.set(self.1.get() + 1);
            }
            Simulated::pause();
        }
    }
}

struct Goes(Rc<Count<u32>>);

impl Drop for Goes {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

/// The first execution is cut: with the first use of a cell the search begins anew, with clocks.
#[test]
fn one_threads_panic_is_not_anothers() {
    for panics_first in [true, false] {
        let (executions, wrong) = (Rc::new(Count::new(0)), Rc::new(Count::new(0)));
        let (unwound, ended) = (Rc::new(Count::new(0)), Rc::new(Count::new(0)));
        let model = |threads: &mut Threads| {
            executions.set(executions.get() + 1);
            let is_first = executions.get() == 1;
            let word = Rc::new(SimulatedWord::new(7));
            let (cell, read) = (SimulatedCell::new(0_u64), Rc::clone(&word));
            let counts = Rc::clone(&wrong);
            let panics = Box::new(move || {
                cell.with(|_| ());
                read.load(Relaxed);
                if is_first {
                    let _waits = Waits(Rc::clone(&read), counts);
                    panic!("nobody asks for what an execution does that is cut");
                }
            });
            let (counts, goes, end) =
                (Rc::clone(&wrong), Goes(Rc::clone(&unwound)), Rc::clone(&ended));
            let loops = Box::new(move || {
                let _goes = goes;
                for _ in 0..if is_first { LONG } else { 1 } {
                    if word.load(Relaxed) != 7 {
                        counts.set(counts.get() + 1);
                    }
                    if is_first {
                        Simulated::pause();
                    }
                }
                if is_first {
                    end.set(end.get() + 1);
                }
            });
            let mut both: [Box<dyn FnOnce()>; 2] = [panics, loops];
            if !panics_first {
                both.reverse();
            }
            let [first, second] = both;
            threads.spawn("first", first);
            threads.spawn("second", second);
        };
        let report = explore(&Config::default(), &model);
        assert_eq!(report.verdict, Verdict::Clean);
        assert!(executions.get() > 1, "the first execution was not cut");
        assert_eq!(wrong.get(), 0, "loads were answered by what the word never held");
        assert_eq!(ended.get(), 0, "the other thread was not unwound");
        assert_eq!(unwound.get(), executions.get());
    }
}

/// The clock is looked at after each execution, as one may last as long as the search.
#[test]
fn a_search_whose_time_is_over_begins_no_other_execution() {
    let time = Duration::from_millis(1);
    let model = |threads: &mut Threads| {
        let began = Instant::now();
        let word = Rc::new(SimulatedWord::new(0));
        for value in 1..4 {
            let word = Rc::clone(&word);
            threads.spawn("stores", move || word.store(value, Relaxed));
        }
        while began.elapsed() < time {
            std::thread::yield_now();
        }
    };
    let report = explore(&Config { max_time: Some(time), ..Config::default() }, &model);
    assert!(!report.complete && report.executions <= 2, "{} executions", report.executions);
}
