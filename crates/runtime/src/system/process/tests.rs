//! Real forks, in a process of their own: this program again, with one test to run.

#[cfg(all(unix, not(miri)))]
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;

// The tests in `tests` start themselves by the same command.
#[cfg(all(unix, not(miri)))]
#[path = "../../../../memory/tests/it/own_process/mod.rs"]
mod program;

#[test]
fn nothing_is_elsewhere_without_a_fork() {
    let process_guard = ProcessGuard::here();
    assert!(!process_guard.is_elsewhere());
    process_guard.check();
    process_guard.check_or_abort();
    assert!(ProcessGuard(process_guard.0 + 1).is_elsewhere());
}

#[test]
#[should_panic(expected = "make a new pool after fork()")]
fn a_check_after_a_fork_panics() {
    ProcessGuard(ProcessGuard::here().0 + 1).check();
}

/// What a call panicked with, or that it did not.
#[cfg(all(unix, not(miri)))]
fn refusal<R>(call: impl FnOnce() -> R) -> String {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(_) => "no panic".into(),
        Err(payload) => match payload.downcast::<&str>() {
            Ok(text) => (*text).into(),
            Err(payload) => payload.downcast::<String>().map_or("?".into(), |text| *text),
        },
    }
}

// loom brings its own threads, which Miri cannot run.
#[cfg(not(miri))]
mod models {
    use loom::cell::UnsafeCell;
    use loom::sync::atomic::AtomicUsize;
    use loom::thread;
    use poach_memory::Loom;

    use super::*;

    loom::lazy_static! {
        /// How many values there are.
        static ref VALUES: AtomicUsize = AtomicUsize::new(0);
    }

    struct Value(UnsafeCell<u32>);

    // SAFETY: loom's cell panics where two threads use it and one writes.
    unsafe impl Sync for Value {}

    impl Default for Value {
        fn default() -> Self {
            VALUES.fetch_add(1, Ordering::Relaxed);
            let cell = UnsafeCell::new(0);
            cell.with_mut(|_| ());
            Value(cell)
        }
    }

    impl Drop for Value {
        fn drop(&mut self) {
            VALUES.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Two threads ask for it first at once: they get the same, with what was done to make it.
    #[test]
    fn a_process_has_one_value_which_was_made_before_it_is_had() {
        loom::model(|| {
            let current = Pointer::new(ptr::null_mut());
            let process: &'static PerProcess<Value, Loom> =
                Box::leak(Box::new(PerProcess { current }));
            let ask = move || {
                let value = process.get();
                value.0.with(|_| ());
                ptr::from_ref(value).addr()
            };
            let other = thread::spawn(ask);
            let one = ask();
            assert_eq!(one, other.join().unwrap());
            assert_eq!(VALUES.load(Ordering::Relaxed), 1);
        });
    }
}

// Miri does not fork.
#[cfg(all(unix, not(miri)))]
pub(crate) mod children {
    use std::future::Future as _;
    use std::pin::Pin;
    use std::sync::mpsc;
    use std::task::{Context, Waker};
    use std::{env, io, thread};

    use super::*;
    use crate::trace::RecordError;
    use crate::worker::current::WorkerThread;
    use crate::{ThreadPool, join, scope};

    /// Set in the process that forks.
    const ROLE: &str = "POACH_TEST_FORKS";

    fn alone(test: &str) -> bool {
        alone_in(module_path!(), test)
    }

    /// Runs the named test of a module of this program alone, in a process where `ROLE` is set;
    /// whether this is that process.
    pub(crate) fn alone_in(module: &str, test: &str) -> bool {
        if env::var_os(ROLE).is_some() {
            return true;
        }
        let name = format!("{}::{test}", module.split_once("::").unwrap().1);
        let output = program::this_program()
            .args(["--exact", &name, "--nocapture", "--test-threads=1"])
            .env(ROLE, "1")
            .output()
            .expect("a program can be run again");
        let text =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.contains("1 passed"), "{name}: {text}");
        false
    }

    /// Forks. In the child the answer is zero, in the parent it is for `reap`.
    fn split() -> libc::pid_t {
        // SAFETY: the child's thread is a copy of this one. It uses the allocator, which the C
        // library keeps usable across a fork, and no lock that another thread could hold:
        // none of them runs anything of the standard library's but parking.
        let process = unsafe { libc::fork() };
        assert!(process != -1, "no fork: {}", io::Error::last_os_error());
        if process == 0 {
            // A child that hangs is killed, and that is seen in its status.
            // SAFETY: takes a number of seconds.
            unsafe { libc::alarm(60) };
        }
        process
    }

    /// Ends the child.
    fn leave(status: i32) -> ! {
        // SAFETY: ends this process, without running what was registered by its parent.
        unsafe { libc::_exit(status) }
    }

    /// How a child has ended.
    fn reap(process: libc::pid_t) -> i32 {
        let mut status = 0;
        // SAFETY: `status` is valid for writes.
        let waited = unsafe { libc::waitpid(process, &raw mut status, 0) };
        assert_eq!(waited, process, "{}", io::Error::last_os_error());
        status
    }

    /// How a child that runs this has ended.
    pub(crate) fn fork(child: impl FnOnce() -> i32) -> i32 {
        let process = split();
        if process == 0 {
            leave(catch_unwind(AssertUnwindSafe(child)).unwrap_or(99));
        }
        reap(process)
    }

    #[test]
    fn a_pools_calls_panic_in_a_child() {
        if !alone("a_pools_calls_panic_in_a_child") {
            return;
        }
        assert_eq!(join(|| 1, || 2), (1, 2)); // The global pool.
        let pool = ThreadPool::builder().num_threads(2).build().unwrap();
        let handle = pool.spawn_handle(|| 5);
        let late = pool.spawn_handle(|| 6);
        let mut polled = pool.spawn_handle(|| 7);
        let status = fork(|| {
            let poll = || {
                let mut context = Context::from_waker(Waker::noop());
                Pin::new(&mut polled).poll(&mut context).is_ready()
            };
            let spawns_a_future = || pool.in_place_scope(|s| drop(s.spawn_future(async {})));
            let calls: [(&str, String); 11] = [
                ("install", refusal(|| pool.install(|| 1))),
                ("run", refusal(|| pool.run(|w| w.index()))),
                ("spawn", refusal(|| drop(pool.spawn_handle(|| 1)))),
                ("in_place_scope", refusal(|| pool.in_place_scope(|s| s.spawn(|_| ())))),
                ("a scope of nothing", refusal(|| pool.in_place_scope(|_| ()))),
                ("a scope of a future", refusal(spawns_a_future)),
                ("broadcast", refusal(|| pool.broadcast(|_| 1))),
                ("interrupt", refusal(|| pool.interrupt(|| 1))),
                ("handle", refusal(|| handle.join().unwrap())),
                ("cancel", refusal(|| late.cancel())),
                ("poll", refusal(poll)),
            ];
            for (name, text) in calls {
                assert!(text.contains("make a new pool after fork()"), "{name}: {text}");
            }
            assert!(!late.is_finished());
            // Neither waits for anybody.
            drop(late);
            drop(pool);
            // The global pool is the child's own, and so is a pool that it makes.
            assert!(ThreadPool::global_if_made().is_none());
            assert_eq!(join(|| 1, || 2), (1, 2));
            assert_eq!(scope(|_| 3), 3);
            assert_eq!(crate::task().in_order().spawn_handle(|| 4).join().unwrap(), 4);
            assert!(ThreadPool::builder().build_global().is_err());
            let pool = ThreadPool::builder().num_threads(2).build().unwrap();
            assert_eq!(pool.install(|| join(|| 1, || 2)), (1, 2));
            assert_eq!(pool.broadcast(|context| context.index()), [0, 1]);
            drop(pool);
            42
        });
        assert_eq!(status, 42 << 8, "the child's exit status");
    }

    #[test]
    fn a_scope_that_is_open_at_a_fork_panics_at_its_end_in_the_child() {
        if !alone("a_scope_that_is_open_at_a_fork_panics_at_its_end_in_the_child") {
            return;
        }
        let pool = ThreadPool::builder().num_threads(1).build().unwrap();
        let (release, hold) = mpsc::channel::<()>();
        let (mut release, mut process) = (Some(release), -1);
        let text = refusal(|| {
            pool.in_place_scope(|s| {
                s.spawn(move |_| _ = hold.recv());
                process = split();
                if process == 0 {
                    // The task is in another process; so is its worker.
                    assert!(refusal(|| s.spawn(|_| ())).contains("after fork()"));
                } else {
                    release.take();
                }
            });
        });
        if process == 0 {
            leave(if text.contains("make a new pool after fork()") { 7 } else { 1 });
        }
        assert_eq!((text.as_str(), reap(process)), ("no panic", 7 << 8));
    }

    #[test]
    fn a_worker_that_forks_works_alone_and_never_waits() {
        if !alone("a_worker_that_forks_works_alone_and_never_waits") {
            return;
        }
        let pool = ThreadPool::builder().num_threads(2).build().unwrap();
        let status = pool.install(|| {
            fork(|| {
                assert_eq!(join(|| join(|| 1, || 2), || 3), ((1, 2), 3));
                let mut sum = 0;
                scope(|s| s.spawn(|_| sum += 4));
                assert_eq!(sum, 4);
                assert!(refusal(|| drop(crate::spawn_handle(|| ()))).contains("after fork()"));
                9
            })
        });
        assert_eq!(status, 9 << 8);
        // Waiting for a task that only the other process has ends the child at once: unwinding
        // would leave the scope while its task is lent out.
        let (release, hold) = mpsc::channel::<()>();
        let status = pool.install(move || {
            let (mut release, mut process) = (Some(release), -1);
            scope(|s| {
                s.spawn(move |_| _ = hold.recv());
                while crate::current_thread_has_pending_tasks() == Some(true) {
                    thread::yield_now(); // The other worker takes it.
                }
                process = split();
                if process != 0 {
                    release.take();
                }
            });
            if process == 0 {
                leave(10);
            }
            reap(process)
        });
        assert_eq!(status & 0x7f, libc::SIGABRT, "{status:#x}");
    }

    /// A guest is a thread from outside whose region runs on itself.
    #[test]
    fn a_guest_that_forks_works_alone_and_leaves_its_region() {
        if !alone("a_guest_that_forks_works_alone_and_leaves_its_region") {
            return;
        }
        let pool = ThreadPool::builder().num_threads(2).build().unwrap();
        for unwinds in [false, true] {
            let mut process = -1;
            let text = refusal(|| {
                pool.run(|mut worker| {
                    process = split();
                    if process == 0 {
                        assert_eq!(worker.join(|_| 1, |_| 2), (1, 2));
                        assert_eq!(join(|| 3, || 4), (3, 4));
                        let mut sum = 0;
                        scope(|s| s.spawn(|_| sum += 5));
                        assert_eq!(sum, 5);
                        assert!(!unwinds, "out of the region");
                    }
                });
            });
            if process == 0 {
                let expected = if unwinds { "out of the region" } else { "no panic" };
                let refused = refusal(|| pool.run(|_| ())).contains("make a new pool after fork()");
                leave(if refused && text == expected { 12 } else { 1 });
            }
            assert_eq!((text.as_str(), reap(process)), ("no panic", 12 << 8), "unwinds: {unwinds}");
            // The place is as it was.
            assert_eq!(pool.run(|mut worker| worker.join(|_| 1, |_| 2)), (1, 2));
        }
    }

    /// It was not counted: the scope ends.
    #[test]
    fn a_spawn_that_is_refused_in_a_child_is_not_waited_for() {
        if !alone("a_spawn_that_is_refused_in_a_child_is_not_waited_for") {
            return;
        }
        let pool = ThreadPool::builder().num_threads(1).build().unwrap();
        let mut process = -1;
        let text = refusal(|| {
            pool.in_place_scope(|s| {
                process = split();
                if process == 0 {
                    assert!(refusal(|| s.spawn(|_| ())).contains("after fork()"));
                }
            });
        });
        if process == 0 {
            leave(if text == "no panic" { 13 } else { 1 });
        }
        assert_eq!((text.as_str(), reap(process)), ("no panic", 13 << 8));
    }

    /// The guest's interrupt is under way in the parent, whose threads are not there.
    #[test]
    fn a_guest_that_was_called_before_a_fork_ends_the_child() {
        if !alone("a_guest_that_was_called_before_a_fork_ends_the_child") {
            return;
        }
        let pool = ThreadPool::builder().num_threads(2).build().unwrap();
        let mut process = -1;
        thread::scope(|threads| {
            let interrupter = pool.run(|_| {
                let interrupter = threads.spawn(|| pool.interrupt(|| 5));
                let is_called =
                    || WorkerThread::with(|local| !local.unwrap().slot().calls.is_empty());
                while !is_called() {
                    thread::yield_now();
                }
                process = split();
                if process == 0 {
                    // It is not to answer, which would wait for all.
                    WorkerThread::with(
                        |local| while local.unwrap().slot().calls.take().is_some() {},
                    );
                }
                interrupter
            });
            if process == 0 {
                leave(14);
            }
            assert_eq!(interrupter.join().unwrap(), 5);
        });
        let status = reap(process);
        assert_eq!(status & 0x7f, libc::SIGABRT, "{status:#x}");
    }

    #[test]
    fn a_lock_that_a_thread_of_the_parent_holds_is_not_waited_for() {
        if !alone("a_lock_that_a_thread_of_the_parent_holds_is_not_waited_for") {
            return;
        }
        let (process_guard, free, lock) = (ProcessGuard::here(), Mutex::new(1), Mutex::new(2));
        let held = lock.lock().unwrap();
        let status = fork(|| {
            assert_eq!(process_guard.try_lock(&free).as_deref(), Some(&1));
            assert_eq!(*process_guard.lock(&free), 1);
            assert!(process_guard.try_lock(&lock).is_none());
            11
        });
        assert_eq!(status, 11 << 8, "{status:#x}");
        // Where there is no way on without the lock, the child ends.
        let status = fork(|| *process_guard.lock(&lock));
        assert_eq!(status & 0x7f, libc::SIGABRT, "{status:#x}");
        drop(held);
        assert_eq!(*process_guard.lock(&lock), 2);
    }

    #[test]
    fn a_child_does_not_wait_for_the_global_pool_that_its_parent_was_making() {
        static TOLD: Mutex<Option<mpsc::Sender<()>>> = Mutex::new(None);
        static HELD: Mutex<()> = Mutex::new(());
        if !alone("a_child_does_not_wait_for_the_global_pool_that_its_parent_was_making") {
            return;
        }
        let (tell, told) = mpsc::channel();
        *TOLD.lock().unwrap() = Some(tell);
        crate::ThreadPoolBuilder::set_global(|| {
            // What makes the pool asks for it: refused, where it waited for itself.
            assert!(refusal(|| join(|| 1, || 2)).contains("used by its own builder"));
            // The lock is free again when the other thread hears of it, and forks.
            let tell = TOLD.lock().unwrap().take();
            if let Some(tell) = tell {
                tell.send(()).unwrap();
            }
            drop(HELD.lock().unwrap());
            ThreadPool::builder().num_threads(1)
        })
        .unwrap();
        let held = HELD.lock().unwrap();
        let first = thread::spawn(|| join(|| 1, || 2));
        told.recv().unwrap();
        let status = fork(|| {
            // It makes its own, in the same way; nobody holds the lock there.
            drop(TOLD.lock().unwrap().take());
            assert!(ThreadPool::global_if_made().is_none());
            assert!(crate::ThreadPoolBuilder::set_global(ThreadPool::builder).is_err());
            assert!(ThreadPool::builder().num_threads(2).build_global().is_ok());
            assert_eq!((join(|| 1, || 2), crate::global().threads()), ((1, 2), 2));
            8
        });
        assert_eq!(status, 8 << 8, "{status:#x}");
        drop(held);
        assert_eq!(first.join().unwrap(), (1, 2));
        assert_eq!(crate::global().threads(), 1);
    }

    #[test]
    fn recordings_stay_with_their_process() {
        if !alone("recordings_stay_with_their_process") {
            return;
        }
        let pool = ThreadPool::builder().num_threads(1).build().unwrap();
        let recording = pool.record(10).unwrap();
        let status = fork(|| {
            assert_eq!(pool.record(10).unwrap_err(), RecordError::Forked);
            assert_eq!(recording.stop().workers().len(), 1);
            9
        });
        assert_eq!(status, 9 << 8, "{status:#x}");
    }
}
