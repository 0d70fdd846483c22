//! What `poach measure coherence` makes of this machine is a machine.
#![forbid(unsafe_code)]

use poach_measure::coherence::{CannotMeasure, TIMES, hand_over_now, measure};
use poach_measure::place::{CannotPlace, Topology};
use poach_simulate::Description;

#[test]
fn this_machine_is_one() {
    let topology = Topology::here().unwrap();
    match measure(&topology, Some(42)) {
        Ok(machine) => {
            assert_eq!(Description::from_json(&machine.to_json()).unwrap(), machine);
            assert_eq!(machine.processors, topology.processors.len());
            assert_eq!(machine.processor.store_buffer, 42);
            assert!(machine.sources[0].contains(&TIMES.to_string()));
        }
        // Where threads cannot be bound.
        Err(error) => assert!(matches!(error, CannotMeasure::Place(_)), "{error}"),
    }
}

#[test]
fn a_hand_over_takes_some_time() {
    // Where threads cannot be bound there is none.
    let took = hand_over_now(&Topology::here().unwrap());
    assert!(took.is_none_or(|nanoseconds| 0.1 < nanoseconds && nanoseconds < 1e9), "{took:?}");
}

#[test]
fn one_processor_hands_nothing_over() {
    let topology = Topology { processors: vec![0], cores: vec![vec![0]] };
    assert_eq!(hand_over_now(&topology), None);
    let error = measure(&topology, None).unwrap_err();
    assert!(matches!(error, CannotMeasure::Place(CannotPlace::OneProcessor)), "{error}");
}
