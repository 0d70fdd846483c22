//! Tokens that are used on another stack than the one at the top of their thread: `send_wrapper`
//! takes them past the compiler, by checking the thread when they are used.
#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::{Arc, Mutex};
use std::thread;

use poach_runtime::config::ThreadBuilder;
use poach_runtime::{ThreadPool, Worker, interrupt, join};
use send_wrapper::SendWrapper;

use crate::alone::alone;

fn pool(threads: usize) -> ThreadPool {
    ThreadPool::builder().num_threads(threads).build().unwrap()
}

/// What `f` panics with.
#[track_caller]
fn message<R>(f: impl FnOnce() -> R) -> String {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(_) => panic!("no panic"),
        Err(payload) => *payload.downcast::<String>().expect("a formatted message"),
    }
}

/// Forks with `token` on top of another fork of this thread's current stack, whose second half is
/// of another type, and panics in the first half.
fn fork_elsewhere(token: SendWrapper<Worker<'_>>) {
    let token = SendWrapper::new(token);
    let words = [7_u64; 4];
    let kept = Box::new(words);
    let sum = join(
        move || {
            let mut token = token.take().take();
            token.join(
                |_| panic_any("the first half".to_owned()),
                move |_| kept.iter().sum::<u64>(),
            );
        },
        move || words.iter().sum::<u64>(),
    );
    assert_eq!(sum.1, 28);
}

#[test]
fn the_token_of_a_suspended_stack_is_refused_in_an_interrupt() {
    alone("the_token_of_a_suspended_stack_is_refused_in_an_interrupt", || {
        for threads in [1, 2] {
            let pool = pool(threads);
            let text = message(|| {
                pool.run(|outer| {
                    let outer = SendWrapper::new(outer);
                    interrupt(move || fork_elsewhere(outer));
                });
            });
            assert!(text.contains("below the top"), "{text}");
            // Neither stack has anything left on it.
            assert_eq!(pool.interrupt(|| join(|| 1, || 2)), (1, 2));
            assert_eq!(pool.broadcast(|context| context.index()).len(), threads);
        }
    });
}

#[test]
fn the_token_of_a_suspended_stack_is_refused_in_another_pool_on_its_thread() {
    alone("the_token_of_a_suspended_stack_is_refused_in_another_pool_on_its_thread", || {
        let builder: Arc<Mutex<Option<ThreadBuilder>>> = Arc::default();
        let give = Arc::clone(&builder);
        let inner = ThreadPool::builder()
            .num_threads(1)
            .callers_work(false)
            .spawn_handler(move |worker| {
                *give.lock().unwrap() = Some(worker);
                Ok(())
            })
            .build()
            .unwrap();
        let builder = builder.lock().unwrap().take().unwrap();
        let outer = pool(1);
        let text = outer.run(|token| {
            let token = Mutex::new(Some(SendWrapper::new(token)));
            let builder = Mutex::new(Some(builder));
            thread::scope(|s| {
                let text = s.spawn(|| {
                    let text = message(|| {
                        inner.install(|| fork_elsewhere(token.lock().unwrap().take().unwrap()));
                    });
                    drop(inner);
                    text
                });
                // This worker becomes the inner pool's, until that is dropped.
                builder.lock().unwrap().take().unwrap().run();
                text.join().unwrap()
            })
        });
        assert!(text.contains("below the top"), "{text}");
        assert_eq!(outer.run(|_| join(|| 1, || 2)), (1, 2));
    });
}

#[test]
fn a_full_stack_is_interrupted_and_refuses_tokens_as_well() {
    alone("a_full_stack_is_interrupted_and_refuses_tokens_as_well", || {
        let pool = ThreadPool::builder().num_threads(2).task_stack(1).build().unwrap();
        let answer = pool.run(|mut w| w.join(|_| interrupt(|| join(|| 1, || 2)), |_| ()).0);
        assert_eq!(answer, (1, 2));
        let text = message(|| {
            pool.run(|mut w| {
                w.join(
                    |w| {
                        let token = SendWrapper::new(w);
                        interrupt(move || {
                            token.take().join(|_| panic_any("the first half".to_owned()), |_| ());
                        });
                    },
                    |_| (),
                );
            });
        });
        assert!(text.contains("task stack is full"), "{text}");
    });
}
