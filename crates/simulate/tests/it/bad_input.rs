//! Descriptions that are none, and threads without a processor: each gets a sentence that says what
//! is wrong.
#![forbid(unsafe_code)]

use poach_simulate::{
    Barrier, Cost, Count, Description, DescriptionError, Failure, MAX_PROCESSORS, MemoryCosts,
    ProcessorCosts, SHIPPED, Simulation, Site, Thread, Threads,
};

fn lace() -> Description {
    Description::shipped("lace").unwrap()
}

/// What is said of Lace's machine with a change.
fn said(change: impl FnOnce(&mut Description)) -> String {
    let mut machine = lace();
    change(&mut machine);
    let error = machine.check().unwrap_err().to_string();
    // A file with the same change says the same.
    let file = serde_free(&machine);
    if let Some(file) = file {
        assert_eq!(Description::from_json(&file).unwrap_err().to_string(), error);
    }
    let failure = Simulation::new(&machine).run().unwrap_err();
    assert_eq!(failure, Failure::Description(error.clone()));
    error
}

/// The description as a file, unless a number is none in JSON.
fn serde_free(machine: &Description) -> Option<String> {
    let file = machine.to_json();
    (!file.contains("null")).then_some(file)
}

#[test]
fn threads_that_are_not_described_take_as_long_as_linuxs() {
    let Threads { wake, woken } = Threads::default();
    assert!(0.0 < wake && wake < woken);
    assert_eq!(lace().threads, Threads::default());
}

#[test]
fn what_cannot_be_is_said() {
    type Change = fn(&mut Description);
    let table: [(Change, &str); 15] = [
        (|it| it.threads.woken = 0.0, "`threads.woken` is 0 ns: it must be more than 0"),
        (
            |it| it.processors = 40,
            "does not add up: 6 x 2 x 4 says 48 processors, and `processors` says 40",
        ),
        (|it| it.levels[0].size = 0, "does not add up: 0 x 2 x 4 says 0"),
        (|it| it.processors = 0, "1 to 1088 processors, not 0"),
        (|it| it.processors = 1 << 20, "not 1048576"),
        (|it| it.levels.clear(), "`levels` is empty"),
        (|it| it.processor.load = 0.0, "`processor.load` is 0 ns: it must be more than 0"),
        (
            |it| it.levels[2].transfer = 2e14,
            "`levels[2].transfer of `machine`` is 200000000000000 ns",
        ),
        (|it| it.processor.fence = f64::NAN, "`processor.fence` is NaN ns"),
        (|it| it.barrier.call = -1.0, "`barrier.call` is -1 ns"),
        (|it| it.levels[0].link = f64::INFINITY, "`levels[0].link of `die`` is inf ns"),
        (|it| it.levels[1].transfer = 1.0, "`package` is nearer than `die`"),
        (
            |it| it.memory.node = "rack".to_owned(),
            "`memory.node` is `rack`, and no level is called that",
        ),
        (|it| it.processor.store_buffer = 0, "`processor.store_buffer` is 0: it must be 1 to 1024"),
        (|it| it.jitter = 2.0, "`jitter` is 2: it must be a number from 0 to 0.5"),
    ];
    for (change, wanted) in table {
        let text = said(change);
        assert!(text.contains(wanted), "{text}\ndoes not say\n{wanted}");
    }
}

#[test]
fn what_is_no_description_is_said() {
    for (text, wanted) in [
        ("", "EOF"),
        ("{}", "missing field `name`"),
        ("{\"name\": \"a\", \"colour\": 1}", "unknown field `colour`"),
        ("{\"name\": 1}", "line 1 column 10"),
    ] {
        let error = Description::from_json(text).unwrap_err();
        assert!(matches!(error, DescriptionError::Json(_)), "{error:?}");
        assert!(error.to_string().contains(wanted), "{error}");
    }
    let error = Description::shipped("cray").unwrap_err().to_string();
    assert_eq!(error, "no machine `cray` is shipped: there is xeon, salsa, lace");
}

#[test]
fn what_is_shipped_is_sound_and_says_its_sources() {
    for (name, text) in SHIPPED {
        let machine = Description::shipped(name).unwrap();
        assert_eq!(machine.name, name);
        assert!(machine.sources.len() > 2 && machine.jitter > 0.0, "{name}");
        assert_eq!(Description::from_json(text).unwrap(), machine);
        assert_eq!(Description::from_json(&machine.to_json()).unwrap(), machine);
    }
    let ProcessorCosts { store_buffer, .. } = lace().processor;
    let (Barrier { call, .. }, MemoryCosts { node, .. }) = (lace().barrier, lace().memory);
    assert!(store_buffer == 32 && call > 0.0 && node == "die");
}

#[test]
fn a_machine_grows_by_its_outermost_level() {
    let machine = lace().extended(1000).unwrap();
    assert_eq!((machine.processors, machine.levels[2].size), (1008, 84));
    assert_eq!(lace().extended(1024).unwrap().processors, 1032);
    let error = lace().extended(MAX_PROCESSORS + 1).unwrap_err();
    assert!(matches!(error, DescriptionError::Processors(1092)), "{error}");
}

#[test]
fn a_thread_needs_a_processor_of_its_own() {
    let mut simulation = Simulation::new(&lace());
    for processor in 0..49 {
        simulation.thread(processor, "worker", || ());
    }
    let text = simulation.run().unwrap_err().to_string();
    assert!(text.contains("thread 48 is for processor 48"), "{text}");
    assert!(text.contains("`lace` has 48: more threads than processors"), "{text}");

    let mut simulation = Simulation::new(&lace());
    simulation.thread(1, "a", || ()).thread(1, "b", || ());
    assert_eq!(simulation.run().unwrap_err(), Failure::Shared(1));

    let mut simulation = Simulation::new(&lace());
    simulation.thread(1, "a", || ()).central(48);
    assert!(matches!(simulation.run(), Err(Failure::Processor { processor: 48, .. })));
}

#[test]
fn nothing_to_do_takes_no_time() {
    let outcome = Simulation::new(&lace()).run().unwrap();
    assert_eq!((outcome.end, outcome.accesses), (0, 0));
    let (threads, sites): (Vec<Thread>, Vec<Site>) = (outcome.threads, outcome.sites);
    let counts: Vec<Count> = outcome.counts;
    assert!(threads.is_empty() && sites.is_empty() && counts.is_empty());
    assert_eq!(Cost::default().waited, 0);
}
