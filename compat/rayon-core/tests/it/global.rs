//! The global pool, which a process makes once. Each test runs itself again in a process of its
//! own.

#![forbid(unsafe_code)]

use std::env;
use std::error::Error;
use std::sync::{Barrier, mpsc};
use std::thread;

use rayon_core::{
    ThreadPoolBuildError, ThreadPoolBuilder, broadcast, current_num_threads, in_place_scope,
    in_place_scope_fifo, join, join_context, scope, scope_fifo, spawn, spawn_broadcast, spawn_fifo,
};

use crate::own_process::this_test;

/// Whether this is the process that `test` is run in, with three threads as the environment says;
/// if not, starts it.
#[track_caller]
fn in_child(test: &str) -> bool {
    in_child_with(test, &[("RAYON_NUM_THREADS", "3")])
}

/// Whether this is the process that `test` is run in, with these variables; if not, starts it.
#[track_caller]
fn in_child_with(test: &str, variables: &[(&str, &str)]) -> bool {
    if env::var_os("CHILD").is_some() {
        return true;
    }
    let mut child = this_test(test);
    child.env("CHILD", "1").env_remove("RAYON_NUM_THREADS").envs(variables.iter().copied());
    let output = child.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{output:?}");
    false
}

fn is_refused(error: &ThreadPoolBuildError) {
    assert_eq!(error.to_string(), "The global thread pool has already been initialized.");
    assert!(error.source().is_none());
    // What an `unwrap` says.
    assert_eq!(format!("{error:?}"), "ThreadPoolBuildError { kind: GlobalPoolAlreadyInitialized }");
    #[allow(deprecated)]
    let described = error.description();
    assert_eq!(described, error.to_string());
}

#[test]
fn the_global_pool_is_made_once_as_the_environment_says() {
    if in_child("the_global_pool_is_made_once_as_the_environment_says") {
        assert_eq!(current_num_threads(), 3);
        is_refused(&ThreadPoolBuilder::new().build_global().unwrap_err());
        #[allow(deprecated)]
        let error = rayon_core::initialize(rayon_core::Configuration::new()).unwrap_err();
        is_refused(error.downcast_ref().unwrap());
        assert_eq!((current_num_threads(), join(|| 1, || 2)), (3, (1, 2)));
    }
}

type FirstCall = (&'static str, fn() -> usize);

/// What a program calls first, by name; each tells how many threads the pool has that runs the
/// task.
fn first_calls() -> [FirstCall; 10] {
    fn sent(spawn: impl FnOnce(mpsc::Sender<usize>)) -> usize {
        let (send, receive) = mpsc::channel();
        spawn(send);
        receive.recv().unwrap()
    }
    [
        ("join", || join(current_num_threads, || ()).0),
        ("join_context", || join_context(|_| current_num_threads(), |_| ()).0),
        ("scope", || scope(|_| current_num_threads())),
        ("scope_fifo", || scope_fifo(|_| current_num_threads())),
        ("in_place_scope", || {
            let mut threads = 0;
            in_place_scope(|s| s.spawn(|_| threads = current_num_threads()));
            threads
        }),
        ("in_place_scope_fifo", || {
            let mut threads = 0;
            in_place_scope_fifo(|s| s.spawn_fifo(|_| threads = current_num_threads()));
            threads
        }),
        ("spawn", || sent(|send| spawn(move || send.send(current_num_threads()).unwrap()))),
        ("spawn_fifo", || {
            sent(|send| spawn_fifo(move || send.send(current_num_threads()).unwrap()))
        }),
        ("broadcast", || broadcast(|context| context.num_threads()).len()),
        ("spawn_broadcast", || {
            sent(|send| spawn_broadcast(move |_| _ = send.send(current_num_threads())))
        }),
    ]
}

#[test]
fn whatever_is_called_first_makes_the_global_pool_as_the_environment_says() {
    let test = "whatever_is_called_first_makes_the_global_pool_as_the_environment_says";
    for (name, call) in first_calls() {
        if env::var_os("CHILD").is_none() {
            in_child_with(test, &[("RAYON_NUM_THREADS", "5"), ("FIRST", name)]);
        } else if env::var("FIRST").unwrap() == name {
            assert_eq!(call(), 5, "{name}");
        }
    }
}

#[test]
fn many_threads_may_be_the_first_to_use_the_global_pool() {
    if in_child("many_threads_may_be_the_first_to_use_the_global_pool") {
        let together = Barrier::new(8);
        thread::scope(|threads| {
            for _ in 0..8 {
                threads.spawn(|| {
                    together.wait();
                    assert_eq!((join(|| 1, || 2), current_num_threads()), ((1, 2), 3));
                });
            }
        });
    }
}

#[test]
fn a_program_makes_the_global_pool_once() {
    if in_child("a_program_makes_the_global_pool_once") {
        ThreadPoolBuilder::new().num_threads(2).build_global().unwrap();
        is_refused(&ThreadPoolBuilder::new().num_threads(4).build_global().unwrap_err());
        assert_eq!((current_num_threads(), join(|| 1, || 2)), (2, (1, 2)));
    }
}

#[test]
#[allow(deprecated)]
fn the_old_name_makes_the_global_pool() {
    if in_child("the_old_name_makes_the_global_pool") {
        rayon_core::initialize(rayon_core::Configuration::new().num_threads(2)).unwrap();
        is_refused(&ThreadPoolBuilder::new().build_global().unwrap_err());
        assert_eq!(current_num_threads(), 2);
    }
}

#[test]
fn a_number_of_threads_that_is_none_is_passed_over() {
    let test = "a_number_of_threads_that_is_none_is_passed_over";
    let processors = thread::available_parallelism().unwrap().to_string();
    // What the two variables say, and how many threads there are then.
    for (new, old, threads) in [
        ("", "", &*processors),
        ("0", "3", &processors),
        ("many", "3", "3"),
        ("-1", "0", &processors),
        ("2.5", "-3", &processors),
        ("99999999999999999999", "3", "3"),
    ] {
        let variables =
            [("RAYON_NUM_THREADS", new), ("RAYON_RS_NUM_CPUS", old), ("THREADS", threads)];
        if in_child_with(test, &variables) {
            assert_eq!(env::var("THREADS").unwrap(), current_num_threads().to_string());
            return assert_eq!(join(|| 1, || 2), (1, 2));
        }
    }
}
