//! The queue in a window under the model checker: does every parcel go to one rank, in every
//! execution?
//!
//! The owner's and the thief's own source runs on words of `poach-check`'s memory of C11. An atomic
//! operation of MPI acquires and releases, since each is flushed before the next. The slots are
//! plain data, read and written relaxed. For each premise of the protocol a network that breaks it
//! must be caught.

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use poach_check::{Config, Report, Simulated, Threads, Verdict, explore};
use poach_far::balance::Message;
use poach_far::balance::window::{Owner, SLOTS, Taken, Theft};
use poach_far::transport::{Transport, Word as Which};
use poach_memory::Ordering::{AcqRel, Acquire, Relaxed, Release};
use poach_memory::{Memory, Word};

type Shared = <Simulated as Memory>::Word;

/// The window of rank 0, the only one.
struct Memories {
    ends: Shared,
    copied: Shared,
    slots: Vec<Shared>,
}

/// What the network does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// A claim is a read and a write.
    TornClaim,
    /// Taking back is a read and a write.
    TornTakeBack,
    /// A thief counts what it has claimed as copied before it copies it: steps 5 and 4.
    CopiedBefore,
    /// The owner does not wait for what was claimed to be copied: step 1.
    NoWait,
    /// What was put into a slot may be seen later than the ends.
    NoFlush,
    /// The owner is not told of a claim that came between its last look and its sharing.
    UntoldLateClaim,
}

struct Network {
    window: Arc<Memories>,
    rank: usize,
    fault: Fault,
    /// Parcels in the slots before this share, and of this one: for an owner that does not wait.
    claimed: u64,
    /// The ends as this rank saw them last.
    seen: u64,
}

/// The order of the operation that publishes the slots.
fn order(fault: Fault) -> poach_memory::Ordering {
    if fault == Fault::NoFlush { Relaxed } else { AcqRel }
}

fn tail(word: u64) -> u64 {
    word >> 48
}

fn head(word: u64) -> u64 {
    word & ((1 << 48) - 1)
}

impl Transport for Network {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        3
    }

    fn now(&mut self) -> u64 {
        unreachable!("no clock is read")
    }

    fn send(&mut self, _: usize, _: Message) {
        unreachable!("nothing is sent")
    }

    fn receive(&mut self) -> Option<(usize, Message)> {
        None
    }

    fn fetch_add(&mut self, _: usize, word: Which, number: u64) -> u64 {
        let window = &self.window;
        match (word, self.fault) {
            (Which::Copied, Fault::NoWait) if self.rank == 0 => {
                // As if all that was claimed were copied: as many as the ends say were shared and
                // not taken back.
                self.claimed
            }
            (Which::Copied, Fault::CopiedBefore) if self.rank > 0 => 0,
            (Which::Copied, _) if number == 0 => window.copied.load(Acquire),
            (Which::Copied, _) => window.copied.fetch_add(number, AcqRel),
            (Which::Ends, _) if number == 0 => {
                self.seen = window.ends.load(Acquire);
                self.seen
            }
            (Which::Ends, fault) => {
                let torn = match fault {
                    Fault::TornClaim => self.rank > 0,
                    Fault::TornTakeBack => self.rank == 0 && number <= SLOTS as u64,
                    _ => false,
                };
                let old = if torn {
                    let old = window.ends.load(Acquire);
                    window.ends.store(old.wrapping_add(number), Release);
                    old
                } else {
                    window.ends.fetch_add(number, order(fault))
                };
                if fault == Fault::CopiedBefore && self.rank > 0 {
                    let claimed = number.min(tail(old).saturating_sub(head(old)));
                    window.copied.fetch_add(claimed, AcqRel);
                }
                let shares = self.rank == 0 && number > SLOTS as u64;
                if fault == Fault::UntoldLateClaim && shares { self.seen } else { old }
            }
        }
    }

    fn get(&mut self, _: usize, slot: usize) -> Vec<u8> {
        self.window.slots[slot].load(Relaxed).to_le_bytes().to_vec()
    }

    fn put_own(&mut self, slot: usize, bytes: &[u8]) {
        let number = u64::from_le_bytes(bytes.try_into().unwrap());
        self.window.slots[slot].store(number, Relaxed);
    }
}

fn parcels(numbers: std::ops::Range<u64>) -> Vec<Vec<u8>> {
    numbers.map(|number| number.to_le_bytes().to_vec()).collect()
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap())
}

/// Searches an owner that shares `each` parcels, takes back what is left, shares as many again if
/// there is room, and takes back. `thieves` has the number of attempts of each thief.
fn search(each: u64, thieves: &[usize], fault: Fault) -> Report {
    let thieves = thieves.to_vec();
    let model = move |threads: &mut Threads| {
        let window = Arc::new(Memories {
            ends: Shared::new(0),
            copied: Shared::new(0),
            slots: (0..each).map(|_| Shared::new(0)).collect(),
        });
        let shared = Rc::new(RefCell::new(0));
        let network =
            |rank| Network { window: Arc::clone(&window), rank, fault, claimed: 0, seen: 0 };
        let mut taken = Vec::new();
        let list = || Rc::new(RefCell::new(Vec::new()));
        let (own, mut net, how_many) = (list(), network(0), Rc::clone(&shared));
        taken.push(Rc::clone(&own));
        threads.spawn("owner", move || {
            let mut owner = Owner::default();
            for round in 0..2 {
                net.claimed = owner.claimed();
                if !owner.may_share(&mut net) {
                    continue;
                }
                let late =
                    owner.share(&mut net, &parcels(1 + round * each..1 + (round + 1) * each));
                *how_many.borrow_mut() += each;
                let back = owner.take_back(&mut net);
                own.borrow_mut().extend(late.iter().chain(&back).map(|bytes| number(bytes)));
            }
        });
        for (at, &tries) in thieves.iter().enumerate() {
            let (own, mut net) = (list(), network(at + 1));
            taken.push(Rc::clone(&own));
            threads.spawn(["first thief", "second thief"][at], move || {
                for _ in 0..tries {
                    let mut theft = Theft::Look(0);
                    loop {
                        match theft.step(&mut net) {
                            Taken::Next(next) => theft = next,
                            Taken::Nothing => break,
                            Taken::Parcels(parcels) => {
                                let numbers = parcels.iter().map(|bytes| number(bytes));
                                own.borrow_mut().extend(numbers);
                                break;
                            }
                        }
                    }
                }
            });
        }
        threads.finally(move || {
            let mut all: Vec<u64> = taken.iter().flat_map(|list| list.borrow().clone()).collect();
            all.sort_unstable();
            // A round that had no room has shared nothing: the numbers are those of the others.
            let rounds = *shared.borrow() / each;
            let expected: Vec<u64> = (1..=rounds * each).collect();
            assert_eq!(all, expected, "each parcel goes to one rank");
            let ends = window.ends.load(Relaxed);
            assert!(head(ends) >= tail(ends), "nothing is left in the window");
        });
    };
    explore(&Config::c11(), &model)
}

#[test]
fn every_parcel_goes_to_one_rank() {
    for (each, thieves) in
        [(1, &[1][..]), (2, &[2]), (3, &[2]), (4, &[2]), (1, &[1, 1]), (2, &[1, 1]), (3, &[1, 1])]
    {
        let report = search(each, thieves, Fault::None);
        println!(
            "{each} parcels twice, thieves that try {thieves:?} times: {}, {} executions, {} states",
            report.verdict.word(),
            report.executions,
            report.states
        );
        assert_eq!(report.verdict, Verdict::Clean, "{each} parcels, {thieves:?}");
    }
}

#[test]
fn each_premise_is_needed() {
    for (fault, each, thieves) in [
        (Fault::TornClaim, 2, &[1, 1][..]),
        (Fault::TornTakeBack, 2, &[1]),
        (Fault::CopiedBefore, 2, &[1]),
        (Fault::NoWait, 2, &[1]),
        (Fault::NoFlush, 1, &[1]),
        (Fault::UntoldLateClaim, 1, &[1]),
    ] {
        let report = search(each, thieves, fault);
        println!("{fault:?}: {}, {} executions", report.verdict.word(), report.executions);
        let found = format!("{:?}", report.verdict);
        assert!(found.contains("each parcel goes to one rank"), "{fault:?}: {found}");
    }
}
