//! Total store order, one result for one seed, and the results of real memory.
#![forbid(unsafe_code)]

use std::cell::{Cell as Place, RefCell};
use std::rc::Rc;

use poach_deque::{ChaseLev, Owner, Split, Steal, The, Thief};
use poach_memory::{Asymmetric, CachePadded, Full, Machine, Memory, Ordering, Pointer, Word};
use poach_simulate::{
    Coherent, CoherentPointer, CoherentWord, Description, Failure, Outcome, Simulation, work,
};

type Line = Rc<CachePadded<CoherentWord>>;

fn line() -> Line {
    Rc::new(CachePadded::new(Word::new(0)))
}

fn lace() -> Description {
    Description::shipped("lace").unwrap()
}

/// Each stores to its own line and loads the other's; what the two loads see, over many seeds.
fn store_buffering(fenced: bool) -> Vec<(u64, u64)> {
    let mut all = Vec::new();
    for seed in 0..200 {
        let lines = [line(), line()];
        let seen = Rc::new(RefCell::new([9; 2]));
        let mut simulation = Simulation::new(&lace());
        simulation.seed(seed);
        for me in 0..2 {
            let (mine, other) = (Rc::clone(&lines[me]), Rc::clone(&lines[1 - me]));
            let seen = Rc::clone(&seen);
            simulation.thread(me * 40, "litmus", move || {
                // Both lines at hand, as in a loop.
                other.load(Ordering::Relaxed);
                work(1_000_000 + fastrand_like(seed, me) % 100_000);
                mine.store(1, Ordering::Relaxed);
                if fenced {
                    Coherent::full();
                }
                seen.borrow_mut()[me] = other.load(Ordering::Relaxed);
            });
        }
        simulation.run().unwrap();
        let seen = *seen.borrow();
        all.push((seen[0], seen[1]));
    }
    all
}

fn fastrand_like(seed: u64, me: usize) -> u64 {
    (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(me as u32 * 17)
}

#[test]
fn a_load_overtakes_a_store_unless_there_is_a_fence() {
    assert!(store_buffering(false).contains(&(0, 0)));
    let fenced = store_buffering(true);
    assert!(!fenced.contains(&(0, 0)));
    assert!(fenced.contains(&(0, 1)) && fenced.contains(&(1, 0)), "both orders occur");
}

#[test]
fn stores_are_seen_in_their_order() {
    for seed in 0..200 {
        let (data, flag) = (line(), line());
        let (data_, flag_) = (Rc::clone(&data), Rc::clone(&flag));
        let mut simulation = Simulation::new(&lace());
        simulation.seed(seed);
        simulation.thread(0, "writer", move || {
            data_.store(1, Ordering::Relaxed);
            flag_.store(1, Ordering::Release);
        });
        simulation.thread(30, "reader", move || {
            while flag.load(Ordering::Acquire) == 0 {}
            assert_eq!(data.load(Ordering::Relaxed), 1);
        });
        simulation.run().unwrap();
    }
}

/// An owner and 15 thieves on a queue; what came out is counted, task by task.
fn robbed(queue: impl Owner<u64> + 'static, seed: u64) -> (Vec<u64>, Outcome) {
    const TASKS: u64 = 400;
    let taken = Rc::new(RefCell::new(vec![0_u64; TASKS as usize]));
    let done = line();
    let mut simulation = Simulation::new(&lace());
    simulation.seed(seed).limit(50_000_000);
    for processor in 1..16 {
        let (thief, done, taken) = (queue.thief(), Rc::clone(&done), Rc::clone(&taken));
        simulation.thread(processor * 3, "thief", move || {
            while done.load(Ordering::Acquire) == 0 {
                if let Steal::Success(task) = thief.steal() {
                    taken.borrow_mut()[task as usize] += 1;
                }
                Coherent::pause();
            }
        });
    }
    let result = Rc::clone(&taken);
    simulation.thread(0, "owner", move || {
        for task in 0..TASKS {
            queue.push(task);
            if task % 3 == 2 {
                if let Some(task) = queue.pop() {
                    taken.borrow_mut()[task as usize] += 1;
                }
            }
            work(20_000);
        }
        while let Some(task) = queue.pop() {
            taken.borrow_mut()[task as usize] += 1;
        }
        done.store(1, Ordering::Release);
    });
    let outcome = simulation.run().unwrap();
    (result.take(), outcome)
}

#[test]
fn each_task_comes_out_once() {
    for seed in 0..8 {
        let chase_lev = ChaseLev::<u64, Full, Coherent>::starting_at(Full, 64, 0).unwrap();
        let asymmetric = Asymmetric::<Coherent>::new();
        let light = ChaseLev::<u64, _, Coherent>::starting_at(asymmetric, 64, 0).unwrap();
        let the = The::<u64, Full, Coherent>::starting_at(Full, 64, 0).unwrap();
        let split = Split::<u64, Coherent>::with_capacity(64).unwrap();
        for taken in [
            robbed(chase_lev, seed).0,
            robbed(light, seed).0,
            robbed(the, seed).0,
            robbed(split, seed).0,
        ] {
            assert!(taken.iter().all(|times| *times == 1), "seed {seed}: {taken:?}");
        }
    }
}

#[test]
fn one_seed_one_result() {
    let run = |seed| {
        let lines: Vec<Line> = (0..5).map(|_| line()).collect();
        let mut simulation = Simulation::new(&lace());
        simulation.seed(seed);
        for processor in 0..48 {
            let lines = lines.clone();
            simulation.thread(processor, "mixer", move || {
                for at in 0..50 {
                    let word = &lines[(at * 7 + processor) % 5];
                    match at % 3 {
                        0 => drop(word.fetch_add(1, Ordering::Relaxed)),
                        1 => word.store(at as u64, Ordering::Relaxed),
                        _ => work(word.load(Ordering::Relaxed) * 1000),
                    }
                }
            });
        }
        let outcome = simulation.run().unwrap();
        let values: Vec<u64> = lines.iter().map(|word| word.load(Ordering::Relaxed)).collect();
        (outcome.end, outcome.accesses, outcome.threads, values)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).0, run(2).0);
}

/// The same program of random steps on a word and a pointer.
fn program<M: Memory>(seed: u64) -> Vec<u64> {
    let (word, mut targets) = (M::Word::new(seed), [1_u8, 2, 3]);
    let targets: Vec<*mut u8> = targets.iter_mut().map(std::ptr::from_mut).collect();
    let pointer: M::Pointer<u8> = Pointer::new(targets[0]);
    let mut number = seed;
    let order = Ordering::SeqCst;
    let mut seen = Vec::new();
    for _ in 0..300 {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (kind, value) = (number >> 60, number >> 30);
        let target = targets[(value % 3) as usize];
        seen.push(match kind {
            0 => word.load(Ordering::Acquire),
            1 => {
                word.store(value, Ordering::Release);
                0
            }
            2 => word.swap(value, order),
            3 => word.fetch_add(value, order),
            4 => word.fetch_sub(value, order),
            5 => word.fetch_or(value, order),
            6 => word.fetch_and(value, order),
            7 => {
                let current = word.load(Ordering::Relaxed) ^ (value & 1);
                word.compare_exchange(current, value, order, Ordering::Relaxed)
                    .unwrap_or_else(|old| !old)
            }
            8 => {
                word.store(value, order);
                1
            }
            9 => {
                pointer.store(target, Ordering::Release);
                2
            }
            10 => place_of(&targets, pointer.swap(target, order)),
            11 => {
                let exchanged = pointer.compare_exchange(target, targets[0], order, order);
                exchanged
                    .map_or_else(|old| place_of(&targets, old) + 10, |old| place_of(&targets, old))
            }
            _ => place_of(&targets, pointer.load(Ordering::Acquire)),
        });
    }
    seen
}

fn place_of(targets: &[*mut u8], pointer: *mut u8) -> u64 {
    targets.iter().position(|target| *target == pointer).map_or(99, |at| at as u64)
}

#[test]
fn a_thread_reads_what_it_would_read_in_real_memory() {
    for seed in 0..50 {
        let real = program::<Machine>(seed);
        assert_eq!(program::<Coherent>(seed), real, "outside of a simulation");
        let seen = Rc::new(Place::new(Vec::new()));
        let result = Rc::clone(&seen);
        let mut simulation = Simulation::new(&lace());
        simulation.thread(0, "program", move || result.set(program::<Coherent>(seed)));
        simulation.run().unwrap();
        assert_eq!(seen.take(), real);
    }
}

#[test]
fn a_word_may_be_dropped_while_a_store_to_it_is_on_its_way() {
    let mut simulation = Simulation::new(&lace());
    simulation.thread(0, "dropper", || {
        for round in 0..500 {
            let (far, word) = (line(), line());
            far.store(1, Ordering::Relaxed);
            word.store(round, Ordering::Relaxed);
            drop(word);
            let pointer: CoherentPointer<u8> = Pointer::new(std::ptr::null_mut());
            let other = line();
            assert_eq!(other.load(Ordering::Relaxed), 0, "a store to a word that is gone");
            assert!(pointer.load(Ordering::Relaxed).is_null());
        }
    });
    simulation.run().unwrap();
}

#[test]
fn a_word_is_of_one_thread_of_the_system() {
    let word = Box::new(CoherentWord::new(1));
    let other = std::thread::spawn(move || word.load(Ordering::Relaxed));
    let message = *other.join().unwrap_err().downcast::<&str>().unwrap();
    assert!(message.contains("belongs to the thread"), "{message}");
}

#[test]
fn a_panic_and_a_limit_are_said() {
    let mut simulation = Simulation::new(&lace());
    let word = line();
    let same = Rc::clone(&word);
    simulation.limit(1000);
    simulation.thread(3, "spinner", move || while same.load(Ordering::Relaxed) == 0 {});
    assert_eq!(simulation.run().unwrap_err(), Failure::Limit { accesses: 1000 });

    let mut simulation = Simulation::new(&lace());
    simulation.thread(7, "thief", || {
        Coherent::full();
        panic!("no task");
    });
    let message = simulation.run().unwrap_err().to_string();
    assert_eq!(message, "a thief on processor 7 panicked: no task");

    let mut simulation = Simulation::new(&lace());
    simulation.thread(0, "outer", || {
        let inner = Simulation::new(&lace()).run();
        assert_eq!(inner.unwrap_err(), Failure::Nested);
    });
    simulation.run().unwrap();
}
