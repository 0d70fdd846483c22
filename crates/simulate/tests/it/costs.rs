//! What each access costs, to the picosecond, on a machine without jitter whose costs are all
//! different.
#![forbid(unsafe_code)]

use std::cell::Cell as Place;
use std::rc::Rc;

use poach_memory::{CachePadded, Cell as _, Memory, Ordering, Word};
use poach_simulate::{
    Coherent, CoherentWord, Description, Level, Outcome, Simulation, count, now, processor, work,
};

type Line = Rc<CachePadded<CoherentWord>>;

fn line(value: u64) -> Line {
    Rc::new(CachePadded::new(Word::new(value)))
}

/// Two nodes of two groups of two processors.
fn machine() -> Description {
    let text = r#"{
        "name": "test", "processors": 8,
        "processor": { "store_buffer": 4, "cache_lines": 64, "load": 1, "store": 1, "forward": 5,
            "exchange": 7, "fence": 9, "pause": 11, "give_way": 300 },
        "levels": [
            { "name": "pair", "size": 2, "transfer": 20 },
            { "name": "node", "size": 2, "transfer": 40, "memory": 100 },
            { "name": "machine", "size": 2, "transfer": 80, "memory": 200 } ],
        "memory": { "node": "node", "copy": 3 },
        "barrier": { "call": 500, "each": 50, "answer": 400, "interrupt": 600 } }"#;
    Description::from_json(text).unwrap()
}

/// What a closure takes of the clock, in nanoseconds.
fn takes<T>(act: impl FnOnce() -> T) -> u64 {
    let start = now();
    act();
    (now() - start) / 1000
}

/// Runs a closure on each of these processors; the n-th begins `1000 n` nanoseconds after the
/// first.
fn staggered(machine: &Description, bodies: Vec<(usize, Box<dyn FnOnce()>)>) -> Outcome {
    let mut simulation = Simulation::new(machine);
    for (at, (processor, body)) in bodies.into_iter().enumerate() {
        simulation.thread(processor, "thread", move || {
            work(at as u64 * 1_000_000);
            body();
        });
    }
    simulation.run().unwrap()
}

fn load(line: &Line) -> u64 {
    line.load(Ordering::Acquire)
}

fn store(line: &Line, value: u64) {
    line.store(value, Ordering::Release);
}

#[test]
fn a_first_load_comes_from_memory_and_the_next_one_hits() {
    let word = line(3);
    let outcome = staggered(
        &machine(),
        vec![(
            5,
            Box::new(move || {
                assert_eq!(processor(), 5);
                assert_eq!(takes(|| assert_eq!(load(&word), 3)), 101);
                assert_eq!(takes(|| assert_eq!(load(&word), 3)), 1);
                count("looks", 2);
            }),
        )],
    );
    assert_eq!((outcome.accesses, outcome.end), (2, 102_000));
    assert_eq!(outcome.sites[0].cost.fills, 1);
    assert_eq!((outcome.counts[0].what, outcome.counts[0].times), ("looks", 2));
}

#[test]
fn a_transfer_costs_by_distance() {
    for (reader, cost) in [(1, 21), (2, 41), (3, 41), (4, 81), (7, 81)] {
        let word = line(0);
        let same = Rc::clone(&word);
        let outcome = staggered(
            &machine(),
            vec![
                (0, Box::new(move || store(&word, 9))),
                (
                    reader,
                    Box::new(move || {
                        let seen = Place::new(0);
                        assert_eq!(takes(|| seen.set(load(&same))), cost, "to {reader}");
                        assert_eq!(seen.get(), 9);
                    }),
                ),
            ],
        );
        let transfers: u64 = outcome.sites.iter().map(|site| site.cost.transfers).sum();
        assert_eq!(transfers, 1);
    }
}

#[test]
fn memory_is_at_the_node_that_touched_it_first_or_at_a_central_one() {
    for (central, cost) in [(None, 101), (Some(0), 201)] {
        let word = line(0);
        let mut simulation = Simulation::new(&machine());
        if let Some(processor) = central {
            simulation.central(processor);
        }
        simulation.thread(6, "reader", move || assert_eq!(takes(|| load(&word)), cost));
        simulation.run().unwrap();
    }
}

#[test]
fn a_reader_has_the_nearest_copy_and_a_writer_waits_for_the_farthest() {
    let words: Vec<Line> = vec![line(0); 4];
    let [first, second, third, fourth] = words.try_into().unwrap();
    staggered(
        &machine(),
        vec![
            (0, Box::new(move || store(&first, 1))),
            (4, Box::new(move || assert_eq!(takes(|| load(&second)), 81))),
            (5, Box::new(move || assert_eq!(takes(|| load(&third)), 21))),
            // It has no copy, and those of 4 and 5 have to go.
            (1, Box::new(move || assert_eq!(takes(|| fourth.swap(2, Ordering::AcqRel)), 87))),
        ],
    );
}

#[test]
fn a_contended_line_is_a_queue() {
    let word = line(0);
    let mut simulation = Simulation::new(&machine());
    for processor in 0..8 {
        let word = Rc::clone(&word);
        simulation.thread(processor, "adder", move || {
            word.fetch_add(1, Ordering::Relaxed);
        });
    }
    let outcome = simulation.run().unwrap();
    assert_eq!(word.load(Ordering::Relaxed), 8);
    // From memory, four pairs, two steps between pairs, one between nodes, and each with the
    // exchange.
    assert_eq!(outcome.end, (100 + 4 * 20 + 2 * 40 + 80 + 8 * 7) * 1000);
    let queued: u64 = outcome.sites.iter().map(|site| site.cost.queued).sum();
    assert!(queued > 800_000, "{queued}");
}

#[test]
fn a_link_is_a_queue() {
    let times = |link| {
        let mut machine = machine();
        machine.levels[1] = Level { link, ..machine.levels[1].clone() };
        let words: Vec<Line> = (0..4).map(line).collect();
        let mut simulation = Simulation::new(&machine);
        simulation.central(0);
        for (processor, word) in (4..8).zip(words) {
            simulation.thread(processor, "reader", move || assert!(load(&word) < 4));
        }
        simulation.run().unwrap().end
    };
    assert_eq!(times(0.0), 201_000);
    // The fourth waits for three others on each of two links.
    assert!(times(30.0) >= 201_000 + 3 * 30_000, "{}", times(30.0));
}

#[test]
fn a_store_waits_only_for_room_and_a_fence_for_the_buffer() {
    let lines: Vec<Line> = (0..6).map(line).collect();
    let body = move || {
        // The fifth waits for the first, the sixth for the second, the fence for all.
        assert_eq!(takes(|| lines[..4].iter().for_each(|word| store(word, 1))), 4);
        assert_eq!(takes(|| store(&lines[4], 1)), 102);
        assert_eq!(takes(|| store(&lines[5], 1)), 100);
        assert_eq!(takes(Coherent::full), 9 + 399);
        assert_eq!(takes(Coherent::full), 9);
        assert_eq!(takes(|| store(&lines[0], 2)), 1);
        assert_eq!(takes(|| load(&lines[0])), 4, "forwarded");
        assert_eq!(takes(Coherent::pause), 11);
        assert_eq!(takes(Coherent::give_way), 300);
        assert_eq!(takes(|| Coherent::evict(std::slice::from_ref(&*lines[0]))), 14);
        assert_eq!(takes(|| load(&lines[0])), 101);
    };
    staggered(&machine(), vec![(0, Box::new(body))]);
}

#[test]
fn stores_that_miss_ask_for_their_lines_at_once() {
    for (store_misses, cost) in [(1, 5 + 400), (2, 5 + 200 + 2), (4, 5 + 100 + 3)] {
        let mut machine = machine();
        machine.processor.store_misses = store_misses;
        let lines: Vec<Line> = (0..4).map(line).collect();
        let body = move || {
            assert_eq!(takes(|| lines.iter().for_each(|word| store(word, 1))), 4);
            // From the first store on, less the four nanoseconds of the stores.
            assert_eq!(takes(Coherent::full), cost - 4 + 9, "{store_misses} at once");
        };
        staggered(&machine, vec![(0, Box::new(body))]);
    }
}

#[test]
fn an_exchange_owns_its_line() {
    let word = line(0);
    let (mine, theirs) = (Rc::clone(&word), Rc::clone(&word));
    staggered(
        &machine(),
        vec![
            (
                0,
                Box::new(move || {
                    assert_eq!(takes(|| mine.fetch_or(1, Ordering::Relaxed)), 107);
                    assert_eq!(takes(|| mine.fetch_sub(1, Ordering::Relaxed)), 7);
                    let swap = || mine.compare_exchange(5, 6, Ordering::AcqRel, Ordering::Relaxed);
                    // A failed exchange makes the processor the line's owner, too.
                    assert_eq!(takes(|| assert_eq!(swap(), Err(0))), 7);
                }),
            ),
            (
                1,
                Box::new(move || {
                    assert_eq!(takes(|| theirs.fetch_and(0, Ordering::Relaxed)), 27);
                }),
            ),
        ],
    );
}

#[test]
fn a_barrier_interrupts_those_that_run_and_drains_their_buffers() {
    let (word, seen) = (line(0), Rc::new(Place::new((0, 0))));
    let (far, mine, result) = (line(0), Rc::clone(&word), Rc::clone(&seen));
    let mut simulation = Simulation::new(&machine());
    simulation.thread(0, "caller", move || {
        let took = takes(Coherent::heavy);
        result.set((took, load(&mine)));
    });
    simulation.thread(1, "runner", move || {
        work(540_000);
        store(&far, 1);
        store(&word, 7);
        // Its two stores take until 745; the interrupt arrives at 750.
        work(1_000_000);
        assert_eq!(takes(Coherent::pause), 611, "what the interrupt takes, and the pause");
    });
    simulation.run().unwrap();
    // The call, one processor, there and back.
    assert_eq!(seen.get(), (500 + 50 + 400, 7));
    let alone = takes_alone(Coherent::heavy);
    assert_eq!(alone, 500, "nobody else runs");
    assert!(Coherent::asymmetric() && Coherent::total_store_order());
    Coherent::light();
}

fn takes_alone(act: fn()) -> u64 {
    let took = Rc::new(Place::new(0));
    let result = Rc::clone(&took);
    staggered(&machine(), vec![(0, Box::new(move || result.set(takes(act))))]);
    took.get()
}

#[test]
fn a_cell_costs_each_of_its_lines() {
    let cell = Rc::new(CachePadded::new(<Coherent as Memory>::Cell::new([1_u64; 16])));
    let body = move || {
        assert_eq!(takes(|| assert!(!cell.with(<*const _>::is_null))), 202);
        assert_eq!(takes(|| assert!(!cell.with_mut(<*mut _>::is_null))), 2);
    };
    staggered(&machine(), vec![(0, Box::new(body))]);
}

#[test]
fn a_private_cache_has_room_for_so_many_lines() {
    let lines: Vec<Line> = (0..65).map(line).collect();
    let body = move || {
        for word in &lines {
            load(word);
        }
        assert_eq!(takes(|| load(&lines[64])), 1);
        // From the node's last-level cache.
        assert_eq!(takes(|| load(&lines[0])), 21);
    };
    staggered(&machine(), vec![(0, Box::new(body))]);
}

#[test]
fn an_owned_line_stays_with_its_owner() {
    for (owned_state, cost) in [(false, 21), (true, 41)] {
        let machine = Description { owned_state, ..machine() };
        let words: Vec<Line> = vec![line(0); 3];
        let [first, second, third] = words.try_into().unwrap();
        staggered(
            &machine,
            vec![
                (0, Box::new(move || store(&first, 1))),
                (2, Box::new(move || assert_eq!(takes(|| load(&second)), 41))),
                (3, Box::new(move || assert_eq!(takes(|| load(&third)), cost))),
            ],
        );
    }
}
