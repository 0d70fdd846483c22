//! What the documentation of rayon-core promises of handlers, names, call stacks and threads that a
//! program starts itself, asked of whichever core this is built with, as `behaviour.rs` does.

#![forbid(unsafe_code)]

use std::error::Error;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;

use rayon_core::{ThreadPoolBuilder, current_thread_index, scope};

use crate::rig::{fib, panic_of, pool};

#[test]
fn handlers_of_the_threads() {
    let (send, receive) = mpsc::channel();
    let [started, ended] = [(); 2].map(|()| Mutex::new(send.clone()));
    drop(send);
    let pool = ThreadPoolBuilder::new()
        .num_threads(3)
        .thread_name(|index| format!("hand {index}"))
        .stack_size(3 << 20)
        .start_handler(move |index| {
            assert_eq!(current_thread_index(), Some(index));
            started.lock().unwrap().send(("start", index)).unwrap();
        })
        .exit_handler(move |index| ended.lock().unwrap().send(("exit", index)).unwrap())
        .build()
        .unwrap();
    let names = pool.broadcast(|_| thread::current().name().map(str::to_owned));
    assert_eq!(names, ["hand 0", "hand 1", "hand 2"].map(|name| Some(name.to_owned())));
    drop(pool);
    let mut seen: Vec<_> = receive.iter().collect();
    seen.sort_unstable();
    assert_eq!(seen[..3], [("exit", 0), ("exit", 1), ("exit", 2)]);
    assert_eq!(seen[3..], [("start", 0), ("start", 1), ("start", 2)]);
}

#[test]
fn threads_have_no_name_by_default() {
    assert_eq!(pool(1).install(|| thread::current().name().map(str::to_owned)), None);
}

#[test]
fn a_panic_in_a_start_handler_is_told_and_the_thread_works() {
    let told = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&told);
    let pool = ThreadPoolBuilder::new()
        .num_threads(2)
        .start_handler(|_| panic_any("start"))
        .panic_handler(move |_| _ = counter.fetch_add(1, Ordering::SeqCst))
        .build()
        .unwrap();
    assert_eq!(pool.broadcast(|context| context.index()), [0, 1]);
    assert_eq!(told.load(Ordering::SeqCst), 2);
}

#[test]
fn start_handlers_may_wait_for_the_thread_that_builds() {
    let all = Arc::new(Barrier::new(4));
    let here = Arc::clone(&all);
    let pool =
        ThreadPoolBuilder::new().num_threads(3).start_handler(move |_| _ = here.wait()).build();
    all.wait();
    assert_eq!(pool.unwrap().broadcast(|context| context.index()), [0, 1, 2]);
}

#[test]
fn a_panic_in_an_exit_handler_is_told_and_the_thread_ends() {
    let (send, receive) = mpsc::channel();
    let send = Mutex::new(send);
    let pool = ThreadPoolBuilder::new()
        .num_threads(2)
        .exit_handler(|index| panic_any(index))
        .panic_handler(move |payload| {
            send.lock().unwrap().send(*payload.downcast_ref::<usize>().unwrap()).unwrap();
        })
        .build()
        .unwrap();
    drop(pool);
    // The channel is closed when the last thread has dropped the handlers.
    let mut told: Vec<usize> = receive.iter().collect();
    told.sort_unstable();
    assert_eq!(told, [0, 1]);
}

#[test]
fn handlers_use_their_own_pool() {
    let (send, receive) = mpsc::channel();
    let [start, exit, panic] = [(); 3].map(|()| Mutex::new(send.clone()));
    drop(send);
    let work = || {
        scope(|s| s.spawn(|_| ()));
        fib(10) + 1
    };
    let pool = ThreadPoolBuilder::new()
        .num_threads(2)
        .start_handler(move |_| start.lock().unwrap().send(("start", work())).unwrap())
        .exit_handler(move |_| exit.lock().unwrap().send(("exit", work())).unwrap())
        .panic_handler(move |_| panic.lock().unwrap().send(("panic", work())).unwrap())
        .build()
        .unwrap();
    pool.spawn(|| panic_any("told"));
    drop(pool);
    let mut seen: Vec<_> = receive.iter().collect();
    seen.sort_unstable();
    let all = ["exit", "exit", "panic", "start", "start"];
    assert_eq!(seen, all.map(|handler| (handler, 56)));
}

#[test]
fn a_spawn_handler_starts_the_threads_and_may_borrow() {
    let mut threads = Vec::new();
    let mut names = Vec::new();
    let pool = ThreadPoolBuilder::new()
        .num_threads(2)
        .thread_name(|index| format!("hired {index}"))
        .stack_size(1 << 20)
        .spawn_handler(|thread| {
            assert_eq!(thread.stack_size(), Some(1 << 20));
            names.push((thread.index(), thread.name().map(str::to_owned)));
            threads.push(thread::Builder::new().spawn(|| thread.run())?);
            Ok(())
        })
        .build()
        .unwrap();
    assert_eq!(pool.install(|| fib(10)), 55);
    drop(pool);
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(names, [(0, Some("hired 0".to_owned())), (1, Some("hired 1".to_owned()))]);
}

#[test]
#[allow(deprecated)]
fn a_spawn_handler_that_is_set_last_keeps_the_other_settings() {
    let settings = || {
        let builder = ThreadPoolBuilder::new().num_threads(2).use_current_thread().breadth_first();
        let builder = builder.stack_size(1 << 20).thread_name(|index| index.to_string());
        builder.panic_handler(|_| ()).start_handler(|_| ()).exit_handler(|_| ())
    };
    let without = format!("{:?}", settings());
    assert!(!without.contains("None") && !without.contains("false"), "{without}");
    assert_eq!(format!("{:?}", settings().spawn_handler(|_| Ok(()))), without);
}

#[test]
fn the_threads_of_a_scoped_pool_have_its_names() {
    let builder =
        ThreadPoolBuilder::new().num_threads(2).thread_name(|index| format!("hand {index}"));
    let wrapper = |thread: rayon_core::ThreadBuilder| {
        let name = thread::current().name().map(str::to_owned);
        assert_eq!(name.as_deref(), thread.name());
        thread.run();
    };
    let names = builder.build_scoped(wrapper, |pool| {
        pool.broadcast(|_| thread::current().name().map(str::to_owned))
    });
    assert_eq!(names.unwrap(), [Some("hand 0".to_owned()), Some("hand 1".to_owned())]);
}

/// Four times what a thread has that asks for none.
#[test]
fn the_threads_of_a_scoped_pool_have_its_call_stack() {
    fn deep(levels: usize) -> usize {
        let frame = std::hint::black_box([1_u8; 8 << 10]);
        if levels == 0 { 0 } else { deep(levels - 1) + usize::from(frame[levels % 100]) }
    }
    let builder = ThreadPoolBuilder::new().num_threads(1).stack_size(32 << 20);
    let levels =
        builder.build_scoped(rayon_core::ThreadBuilder::run, |pool| pool.install(|| deep(1024)));
    assert_eq!(levels.unwrap(), 1024);
}

#[test]
fn a_spawn_handler_that_fails_midway_fails_the_build_and_the_started_threads_end() {
    let mut threads = Vec::new();
    let error = ThreadPoolBuilder::new()
        .num_threads(4)
        .spawn_handler(|thread| {
            if thread.index() == 2 {
                return Err(io::Error::other("no more hands"));
            }
            threads.push(thread::Builder::new().spawn(|| thread.run())?);
            Ok(())
        })
        .build()
        .unwrap_err();
    assert_eq!(error.to_string(), "no more hands");
    assert!(error.source().is_some());
    let shown = format!("{error:?}");
    assert!(shown.starts_with("ThreadPoolBuildError { kind: IOError(Custom { "), "{shown}");
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn a_number_of_threads_above_the_most_is_reduced_to_it() {
    let builder = ThreadPoolBuilder::new().num_threads(usize::MAX);
    let error = builder.spawn_handler(|_| Err(io::Error::other("no hands"))).build().unwrap_err();
    assert_eq!(error.to_string(), "no hands");
}

#[test]
fn a_spawn_handler_that_panics_midway_fails_the_build_and_the_started_threads_end() {
    let mut threads = Vec::new();
    let build = || {
        let builder = ThreadPoolBuilder::new().num_threads(4).spawn_handler(|thread| {
            if thread.index() == 2 {
                panic_any("no more hands");
            }
            threads.push(thread::Builder::new().spawn(|| thread.run())?);
            Ok(())
        });
        _ = builder.build();
    };
    assert_eq!(panic_of(build), "no more hands");
    assert_eq!(threads.len(), 2);
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn a_name_that_no_thread_can_have_fails_the_build() {
    let builder = ThreadPoolBuilder::new().num_threads(2).thread_name(|_| "a\0b".to_owned());
    // The original panics, and Poach returns an error.
    let built = catch_unwind(AssertUnwindSafe(|| builder.build()));
    assert!(!matches!(built, Ok(Ok(_))), "{built:?}");
}

#[test]
fn call_stacks_of_unusual_sizes() {
    // All the address space there is.
    let error = ThreadPoolBuilder::new().num_threads(2).stack_size(usize::MAX >> 1).build();
    assert!(error.unwrap_err().source().is_some());
    // A small one is enough for a small task.
    let pool = ThreadPoolBuilder::new().num_threads(2).stack_size(64 << 10).build().unwrap();
    assert_eq!(pool.install(|| 1 + 1), 2);
}

#[test]
fn a_panic_with_a_scoped_pool_arrives_when_its_threads_have_ended() {
    for of_wrapper in [false, true] {
        let ended = AtomicUsize::new(0);
        let wrapper = |thread: rayon_core::ThreadBuilder| {
            thread.run();
            ended.fetch_add(1, Ordering::SeqCst);
            assert!(!of_wrapper, "around a thread");
        };
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            ThreadPoolBuilder::new().num_threads(3).build_scoped(wrapper, |pool| {
                assert!(of_wrapper, "with the pool");
                pool.install(|| fib(5))
            })
        }));
        assert!(panicked.is_err());
        assert_eq!(ended.into_inner(), 3);
    }
}
