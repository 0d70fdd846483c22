//! What this package has beside the original's interface: its environment variables. Each test runs
//! itself again in a process of its own, with variables set.

use std::env;
use std::fs;
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rayon_core::{Scope, ThreadPoolBuilder, join};

/// What a process printed to standard error, and whether it ended well.
struct Ended {
    well: bool,
    said: String,
}

/// Whether this is the process that `test` starts.
fn is_child() -> bool {
    env::var_os("CHILD").is_some()
}

/// Runs `test` in a process of its own with these variables, for a minute at most.
fn child(test: &str, variables: &[(&str, &str)]) -> Ended {
    let mut child = Command::new(env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env("CHILD", "1")
        .envs(variables.iter().copied())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
        }
        thread::sleep(Duration::from_millis(5));
    }
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    Ended { well: child.wait().unwrap().success(), said }
}

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = join(|| fib(n - 1), || fib(n - 2));
    a + b
}

#[test]
#[cfg(unix)]
fn counters_of_each_pool() {
    if is_child() {
        assert_eq!(fib(10), 55);
        let pool = ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        assert_eq!(pool.install(|| fib(10)), 55);
        return;
    }
    let Ended { well, said } =
        child("counters_of_each_pool", &[("POACH_STATS", "1"), ("RAYON_NUM_THREADS", "2")]);
    assert!(well, "{said}");
    assert!(said.contains("pool 1 of 3 threads:"), "{said}");
    assert!(said.contains("the global pool of 2 threads:"), "{said}");
    assert!(!said.contains("the system refuses"), "{said}");
}

#[test]
#[cfg(unix)]
fn a_timeline_of_each_pool() {
    if is_child() {
        assert_eq!(fib(10), 55);
        let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        return assert_eq!(pool.install(|| fib(10)), 55);
    }
    let directory = env::temp_dir().join(format!("poach-timeline-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let file = directory.join("trace.json");
    let Ended { well, said } =
        child("a_timeline_of_each_pool", &[("POACH_TRACE", &file.to_string_lossy())]);
    assert!(well && !said.contains("events came after"), "{said}");
    for name in ["trace.json", "trace.1.json"] {
        let trace = fs::read_to_string(directory.join(name)).unwrap();
        assert!(trace.contains("\"traceEvents\"") && trace.contains("\"ph\""), "{name}: {trace}");
    }
    fs::remove_dir_all(&directory).unwrap();
    // Where it cannot be written, the program goes on and says so.
    let Ended { well, said } =
        child("a_timeline_of_each_pool", &[("POACH_TRACE", &file.to_string_lossy())]);
    assert!(well && said.contains("POACH_TRACE="), "{said}");
}

/// Nobody reads what is said: the program ends as it would have.
#[test]
#[cfg(unix)]
fn a_report_that_nobody_reads() {
    if is_child() {
        let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        assert_eq!(pool.install(|| fib(10)) + fib(10), 110);
        return;
    }
    let variables = [("POACH_STATS", "1"), ("POACH_TRACE", "/nowhere/trace.json")];
    let ended = unheard("a_report_that_nobody_reads", &variables);
    assert!(ended.success(), "{ended}");
}

/// A panic that nobody waits for ends the program, also where that cannot be said.
#[test]
#[cfg(unix)]
fn an_abort_that_nobody_reads() {
    use std::os::unix::process::ExitStatusExt as _;
    if is_child() {
        let pool = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        pool.spawn(|| panic!("nobody waits for it"));
        thread::sleep(Duration::from_secs(600));
        return;
    }
    let ended = unheard("an_abort_that_nobody_reads", &[]);
    assert_eq!(ended.signal(), Some(libc::SIGABRT), "{ended}");
}

/// How `test` ends in a process of its own whose standard error nobody reads.
#[cfg(unix)]
fn unheard(test: &str, variables: &[(&str, &str)]) -> std::process::ExitStatus {
    let (nobody, stderr) = std::os::unix::net::UnixStream::pair().unwrap();
    drop(nobody);
    Command::new(env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env("CHILD", "1")
        .envs(variables.iter().copied())
        .stdout(Stdio::null())
        .stderr(std::os::fd::OwnedFd::from(stderr))
        .status()
        .unwrap()
}

#[test]
fn a_lock_that_is_held_across_a_join() {
    if is_child() {
        let sleeps = env::var("POACH_WAITING").is_ok_and(|waiting| waiting == "sleep");
        let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let [stolen, begun, met] = [(); 3].map(|()| AtomicBool::new(false));
        let (lock, stolen, begun, met) = (Mutex::new(()), &stolen, &begun, &met);
        pool.scope(|s| {
            let lock = &lock;
            let held = lock.lock().unwrap();
            let holder = thread::current().id();
            let until_stolen = || {
                while !stolen.load(Ordering::SeqCst) {
                    thread::yield_now();
                }
            };
            let wants_the_lock = move |_: &Scope<'_>| {
                if thread::current().id() == holder && lock.try_lock().is_err() {
                    // It stands on top of the holder, and would wait for it for ever.
                    met.store(true, Ordering::SeqCst);
                    begun.store(true, Ordering::SeqCst);
                } else {
                    begun.store(true, Ordering::SeqCst);
                    drop(lock.lock().unwrap());
                }
            };
            join(until_stolen, || {
                stolen.store(true, Ordering::SeqCst);
                // From outside, so that the other worker sees it at once.
                thread::scope(|threads| _ = threads.spawn(|| s.spawn(wants_the_lock)));
                let start = Instant::now();
                let late = || sleeps && start.elapsed() > Duration::from_millis(50);
                while !begun.load(Ordering::SeqCst) && !late() {
                    thread::yield_now();
                }
            });
            drop(held);
        });
        assert_eq!(met.load(Ordering::SeqCst), !sleeps);
        return;
    }
    // With the default a task that wants the lock is put on top of the one that holds it.
    for waiting in ["sleep", "random"] {
        let test = "a_lock_that_is_held_across_a_join";
        let Ended { well, said } = child(test, &[("POACH_WAITING", waiting)]);
        assert!(well, "{waiting}: {said}");
    }
}

/// The half that a worker waits for blocks on a task that only that worker is left to run.
#[test]
fn a_half_that_waits_for_a_spawned_task() {
    let test = "a_half_that_waits_for_a_spawned_task";
    if is_child() {
        let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let (begin, begun) = mpsc::channel();
        let spawns = || {
            begin.send(()).unwrap();
            let (send, receive) = mpsc::channel();
            rayon_core::spawn(move || send.send(7).unwrap());
            receive.recv().unwrap()
        };
        return assert_eq!(pool.install(|| join(move || begun.recv().unwrap(), spawns)), ((), 7));
    }
    for waiting in ["", "random"] {
        let Ended { well, said } = child(test, &[("POACH_WAITING", waiting)]);
        assert!(well, "{waiting}: {said}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn threads_on_processors_of_their_own() {
    /// How many processors this thread may run on.
    fn processors() -> usize {
        thread::available_parallelism().unwrap().get()
    }
    if is_child() {
        let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        return assert_eq!(pool.broadcast(|_| processors()), [1, 1]);
    }
    for placement in ["compact", "scatter"] {
        let Ended { well, said } =
            child("threads_on_processors_of_their_own", &[("POACH_PIN", placement)]);
        assert!(well, "{placement}: {said}");
    }
}

#[test]
#[cfg(unix)]
fn a_forked_child_has_a_global_pool_of_its_own() {
    if is_child() {
        assert_eq!(fib(10), 55);
        // SAFETY: the child uses the allocator, which the C library keeps usable across a fork, and
        // no lock of another thread.
        let process = unsafe { libc::fork() };
        assert!(process != -1);
        assert_eq!(fib(12), 144);
        assert_eq!(rayon_core::broadcast(|context| context.index()), [0, 1, 2]);
        if process == 0 {
            // Through the handlers of the end, as a program does.
            std::process::exit(7);
        }
        let mut status = 0;
        // SAFETY: `status` is valid for writes.
        unsafe { libc::waitpid(process, &raw mut status, 0) };
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7, "{status:#x}");
        return;
    }
    let test = "a_forked_child_has_a_global_pool_of_its_own";
    let trace = env::temp_dir().join(format!("poach-forked-{}.json", std::process::id()));
    let (stats, trace) = (("POACH_STATS", "1"), ("POACH_TRACE", &*trace.to_string_lossy()));
    let Ended { well, said } = child(test, &[("RAYON_NUM_THREADS", "3"), stats, trace]);
    fs::remove_file(trace.1).unwrap();
    assert!(well, "{said}");
    assert_eq!(said.matches("the global pool of 3 threads:").count(), 2, "{said}");
}

/// A child that has not used its pools reports none: they are its parent's.
#[test]
#[cfg(unix)]
fn a_forked_child_does_not_report_its_parents_pools() {
    if is_child() {
        let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        assert_eq!(pool.install(|| fib(10)) + fib(10), 110);
        // SAFETY: the child uses the allocator, which the C library keeps usable across a fork, and
        // no lock of another thread.
        let process = unsafe { libc::fork() };
        assert!(process != -1);
        if process == 0 {
            drop(pool);
            std::process::exit(7);
        }
        let mut status = 0;
        // SAFETY: `status` is valid for writes.
        unsafe { libc::waitpid(process, &raw mut status, 0) };
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7, "{status:#x}");
        drop(pool);
        return;
    }
    let test = "a_forked_child_does_not_report_its_parents_pools";
    let variables = [("RAYON_NUM_THREADS", "3"), ("POACH_STATS", "1")];
    let Ended { well, said } = child(test, &variables);
    assert!(well, "{said}");
    for name in ["pool 1 of 2 threads:", "the global pool of 3 threads:"] {
        assert_eq!(said.matches(name).count(), 1, "{said}");
    }
}

/// A setting that is empty is none.
#[test]
fn a_variable_that_is_empty_is_unset() {
    if is_child() {
        return assert_eq!(fib(10), 55);
    }
    let Ended { well, said } =
        child("a_variable_that_is_empty_is_unset", &[("POACH_WAITING", ""), ("POACH_PIN", "")]);
    assert!(well, "{said}");
}

#[test]
#[cfg(unix)]
fn a_global_pool_that_cannot_be_made_is_a_panic() {
    if is_child() {
        join(|| (), || ());
        return;
    }
    // No call stack has this size, so no thread can be had.
    let test = "a_global_pool_that_cannot_be_made_is_a_panic";
    let Ended { well, said } = child(test, &[("RUST_MIN_STACK", &(1_u64 << 60).to_string())]);
    let message = "The global thread pool has not been initialized.: ThreadPoolBuildError";
    assert!(!well && said.contains(message), "{said}");
}

#[test]
fn a_value_that_is_not_known_is_refused_with_those_that_are() {
    if is_child() {
        let error = ThreadPoolBuilder::new().build().unwrap_err();
        eprintln!("refused: {error}");
        return;
    }
    let test = "a_value_that_is_not_known_is_refused_with_those_that_are";
    for (variable, known) in [("POACH_WAITING", "leapfrog"), ("POACH_PIN", "scatter")] {
        let Ended { well, said } = child(test, &[(variable, "perhaps")]);
        let refused = format!("refused: {variable}=perhaps is none of: ");
        assert!(well && said.contains(&refused) && said.contains(known), "{said}");
    }
}
