//! Calls of the C library from Rust without `unsafe`, in orders that no C program has. They return
//! numbers, or addresses that safe code cannot follow, or end the process with a message.

#![forbid(unsafe_code)]

use std::process::Command;
use std::thread;

use poach_capi::fork::{
    POACH_PAYLOAD, poach_current_index, poach_current_worker, poach_fork_overflow, poach_slot,
    poach_stack, poach_task,
};
use poach_capi::lace::{
    poach_lace_barrier, poach_lace_count_reset, poach_lace_get_stacksize, poach_lace_head,
    poach_lace_pu_count, poach_lace_random, poach_lace_set_stacksize, poach_lace_start,
    poach_lace_steal, poach_lace_stop, poach_lace_workers, poach_lace_yield,
};
use poach_capi::lace2::{
    poach_lace_scratch_alloc, poach_lace_scratch_mark, poach_lace_scratch_reset,
    poach_lace_set_scratch_size, poach_lace_set_worker, poach_lace_sleep, poach_lace_time,
    poach_lace_worker,
};
use poach_capi::poach_status;
use poach_capi::pool::{poach_check, poach_pool_global, poach_pool_options, poach_stats};
use poach_capi::status::{poach_last_error, poach_strerror};

/// What has public fields is numbers: the library takes it by address alone, in unsafe functions.
#[test]
fn structs_are_numbers() {
    let slot = poach_slot { task: usize::MAX, status: 1, payload: [0xff; POACH_PAYLOAD] };
    let stack = poach_stack { limit: slot.task, floor: 0 };
    let task = poach_task { run: None, body: None };
    assert!(stack.limit > stack.floor && task.run.is_none() && task.body.is_none());
    let options = poach_pool_options {
        threads: -1,
        waiting: -1,
        spares: -1,
        callers_do_not_work: -1,
        stack_size: usize::MAX,
        task_stack: usize::MAX,
    };
    let stats = poach_stats { tasks: 0, steals: 1, leaps: 2, grows: 3, shrinks: 4, sleeps: 5 };
    assert!(options.threads < 0 && stats.tasks < stats.sleeps);
}

#[test]
fn lace_is_started_and_stopped_and_asked_meanwhile_and_outside() {
    for round in 0..3 {
        assert_eq!(poach_lace_workers(), 0);
        // Nobody's worker, frame or pool.
        poach_lace_barrier();
        poach_lace_yield();
        poach_lace_steal();
        poach_lace_count_reset();
        poach_lace_stop();
        poach_lace_set_stacksize(round << 20);
        assert_eq!(poach_lace_get_stacksize(), round << 20);
        poach_lace_start(2, 100);
        assert_eq!(poach_lace_workers(), 2);
        assert!(poach_lace_pu_count() > 0);
        assert_eq!(poach_current_index(), -1);
        assert!(poach_current_worker().is_null() && poach_lace_worker().is_null());
        poach_lace_count_reset();
        poach_lace_stop();
        poach_lace_stop();
    }
    assert_ne!(poach_lace_random(), poach_lace_random());
    poach_lace_sleep(-1);
    poach_lace_sleep(1);
    assert!(poach_lace_time() <= poach_lace_time());
    assert!(!poach_pool_global().is_null());
    assert!(matches!(poach_check(), poach_status::POACH_OK));
    for status in [-1, 0, 3, 1000] {
        assert!(!poach_strerror(status).is_null());
    }
    assert!(!poach_last_error().is_null());
}

#[test]
fn an_address_that_is_nobodys_is_kept_and_never_followed() {
    let nobody = std::ptr::without_provenance_mut(0x1000);
    assert!(poach_lace_set_worker(nobody).is_null());
    assert_eq!(poach_lace_worker(), nobody);
    poach_lace_yield();
    poach_lace_steal();
    assert_eq!(poach_lace_set_worker(std::ptr::null_mut()), nobody);
}

#[test]
fn scratch_memory_is_a_threads_own() {
    poach_lace_set_scratch_size(1 << 16);
    let threads = (0..2).map(|_| {
        thread::spawn(|| {
            let start = poach_lace_scratch_mark();
            let (first, second) = (poach_lace_scratch_alloc(1), poach_lace_scratch_alloc(100));
            assert_eq!((first.addr() % 16, second.addr() - first.addr()), (0, 16));
            poach_lace_scratch_reset(second);
            assert_eq!(poach_lace_scratch_alloc(0), second);
            poach_lace_scratch_reset(start);
            assert_eq!(poach_lace_scratch_alloc(5), first);
        })
    });
    for thread in threads.collect::<Vec<_>>() {
        thread.join().unwrap();
    }
}

/// What ends the process, each in a process of its own.
const ENDS: [(&str, fn()); 6] = [
    ("overflow", || poach_fork_overflow()),
    ("head", || _ = poach_lace_head()),
    ("twice", || {
        poach_lace_start(1, 10);
        poach_lace_start(1, 10);
    }),
    ("too-much", || {
        poach_lace_set_scratch_size(16);
        poach_lace_scratch_alloc(17);
    }),
    ("nobodys-mark", || {
        poach_lace_set_scratch_size(1 << 16);
        let first = poach_lace_scratch_alloc(16);
        poach_lace_scratch_reset(first.wrapping_byte_add(32));
    }),
    ("a-mark-before", || {
        poach_lace_set_scratch_size(1 << 16);
        let first = poach_lace_scratch_alloc(16);
        poach_lace_scratch_reset(first.wrapping_byte_sub(16));
    }),
];

#[test]
fn what_cannot_be_ends_the_process_with_a_message() {
    let this = std::env::current_exe().unwrap();
    for (name, _) in ENDS {
        let mut child = Command::new(&this);
        child
            .args(["--exact", "safe_code::in_a_process_of_its_own", "--nocapture"])
            .env("POACH_ENDS", name);
        let output = child.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && output.status.code() != Some(101), "{name}: {said}");
        assert!(said.contains("poach"), "{name}: {said}");
    }
}

#[test]
fn in_a_process_of_its_own() {
    if let Ok(wanted) = std::env::var("POACH_ENDS") {
        let (_, end) = ENDS.iter().find(|(name, _)| *name == wanted).unwrap();
        end();
    }
}
