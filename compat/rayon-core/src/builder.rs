//! How a pool is made, and what the environment says of it.

use std::any::Any;
use std::env;
use std::fmt;
use std::io::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::thread;

use poach_runtime as poach;
use poach_runtime::config::{MAX_THREADS, SpawnOrder, Waiting};
use poach_runtime::topology::Placement;

use crate::observe;
use crate::{ThreadPool, ThreadPoolBuildError};

type PanicHandler = dyn Fn(Box<dyn Any + Send>) + Send + Sync;
type IndexHandler = dyn Fn(usize) + Send + Sync;
type Namer = dyn FnMut(usize) -> String;

/// The settings of a [`ThreadPool`], or of the global pool.
pub struct ThreadPoolBuilder<S = DefaultSpawn> {
    num_threads: usize,
    use_current_thread: bool,
    breadth_first: bool,
    stack_size: Option<usize>,
    get_thread_name: Option<Box<Namer>>,
    panic_handler: Option<Box<PanicHandler>>,
    start_handler: Option<Box<IndexHandler>>,
    exit_handler: Option<Box<IndexHandler>>,
    spawn_handler: S,
}

/// A thread to be started: the argument of a [spawn handler](ThreadPoolBuilder::spawn_handler).
pub struct ThreadBuilder(poach::config::ThreadBuilder);

/// Starts a thread that calls [`ThreadBuilder::run`]. Sealed.
pub trait ThreadSpawn: sealed::Sealed {
    /// Starts it.
    ///
    /// # Errors
    ///
    /// Those of the system, or of the handler.
    fn spawn(&mut self, thread: ThreadBuilder) -> io::Result<()>;
}

/// Poach starts the threads.
#[derive(Debug, Default)]
pub struct DefaultSpawn;

/// A handler starts them.
#[derive(Debug)]
pub struct CustomSpawn<F>(F);

mod sealed {
    pub trait Sealed {
        /// Whether Poach starts the threads, which then knows their call stacks.
        const STARTS_THREADS: bool;
    }
    impl Sealed for super::DefaultSpawn {
        const STARTS_THREADS: bool = true;
    }
    impl<F> Sealed for super::CustomSpawn<F> {
        const STARTS_THREADS: bool = false;
    }
}

impl ThreadSpawn for DefaultSpawn {
    fn spawn(&mut self, thread: ThreadBuilder) -> io::Result<()> {
        thread.describe().spawn(|| thread.run()).map(drop)
    }
}

impl<F> ThreadSpawn for CustomSpawn<F>
where
    F: FnMut(ThreadBuilder) -> io::Result<()>,
{
    fn spawn(&mut self, thread: ThreadBuilder) -> io::Result<()> {
        (self.0)(thread)
    }
}

impl ThreadBuilder {
    /// The thread's index in its pool.
    pub fn index(&self) -> usize {
        self.0.index()
    }

    /// The thread's name, if the pool's builder gives it one.
    pub fn name(&self) -> Option<&str> {
        self.0.name()
    }

    /// The size of the call stack in bytes, if the pool's builder sets it.
    pub fn stack_size(&self) -> Option<usize> {
        self.0.stack_size()
    }

    /// Works on this thread until the pool ends.
    pub fn run(self) {
        self.0.run();
    }

    /// What the thread is to be like.
    fn describe(&self) -> thread::Builder {
        let mut builder = thread::Builder::new();
        if let Some(name) = self.name() {
            builder = builder.name(name.to_owned());
        }
        match self.stack_size() {
            Some(bytes) => builder.stack_size(bytes),
            None => builder,
        }
    }
}

impl fmt::Debug for ThreadBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Default for ThreadPoolBuilder {
    fn default() -> ThreadPoolBuilder {
        ThreadPoolBuilder {
            num_threads: 0,
            use_current_thread: false,
            breadth_first: false,
            stack_size: None,
            get_thread_name: None,
            panic_handler: None,
            start_handler: None,
            exit_handler: None,
            spawn_handler: DefaultSpawn,
        }
    }
}

impl ThreadPoolBuilder {
    /// A builder with the default settings.
    pub fn new() -> ThreadPoolBuilder {
        ThreadPoolBuilder::default()
    }

    /// Makes a pool that lasts as long as `with_pool` runs. Its threads may borrow what outlives
    /// this call. Each of them calls `wrapper`, which calls [`ThreadBuilder::run`].
    ///
    /// # Errors
    ///
    /// As [`build`](ThreadPoolBuilder::build).
    ///
    /// # Panics
    ///
    /// If `with_pool` or `wrapper` panics, after all threads have ended.
    pub fn build_scoped<W, F, R>(self, wrapper: W, with_pool: F) -> Result<R, ThreadPoolBuildError>
    where
        W: Fn(ThreadBuilder) + Sync,
        F: FnOnce(&ThreadPool) -> R,
    {
        let wrapper = &wrapper;
        thread::scope(|scope| {
            let start = |thread: ThreadBuilder| {
                thread.describe().spawn_scoped(scope, move || wrapper(thread)).map(drop)
            };
            let pool = self.spawn_handler(start).build()?;
            Ok(with_pool(&pool))
        })
    }
}

impl<S> ThreadPoolBuilder<S>
where
    S: ThreadSpawn,
{
    /// Starts the threads.
    ///
    /// # Errors
    ///
    /// If the system or the spawn handler refuses a thread; and with
    /// [`use_current_thread`](Self::use_current_thread), if this thread belongs to a
    /// pool already. The threads that have started end.
    pub fn build(self) -> Result<ThreadPool, ThreadPoolBuildError> {
        Ok(ThreadPool::of(self.with_poach(|builder| builder.build())?))
    }

    /// Makes the global pool, which runs what is called outside of any pool.
    ///
    /// # Errors
    ///
    /// As [`build`](ThreadPoolBuilder::build), and if there is a global pool already. An earlier
    /// call may have made it, or the first use of one of this crate's or Poach's functions.
    pub fn build_global(self) -> Result<(), ThreadPoolBuildError> {
        self.with_poach(|builder| builder.build_global())?;
        observe::global();
        Ok(())
    }

    /// Calls `build` with a builder of Poach's that has the same settings.
    fn with_poach<R>(
        self,
        build: impl FnOnce(poach::ThreadPoolBuilder<'_>) -> Result<R, poach::BuildError>,
    ) -> Result<R, ThreadPoolBuildError> {
        let threads = match self.num_threads {
            0 => default_threads(|variable| env::var(variable).ok()),
            threads => Some(threads.min(MAX_THREADS)),
        };
        let Environment { waiting, pin } = Environment::read()?;
        let panic_handler = self.panic_handler;
        let mut spawner = self.spawn_handler;
        let mut builder = poach::ThreadPool::builder()
            .callers_work(false)
            .join_on_drop(false)
            .wait_for_start(false)
            .waiting(waiting)
            .pin(pin)
            .spawn_order(if self.breadth_first { SpawnOrder::Fifo } else { SpawnOrder::Lifo })
            .on_panic(move |payload| panicked(panic_handler.as_deref(), payload));
        if let Some(threads) = threads {
            builder = builder.num_threads(threads);
        }
        if let Some(bytes) = self.stack_size {
            builder = builder.stack_size(bytes);
        }
        if self.use_current_thread {
            builder = builder.use_current_thread();
        }
        if let Some(handler) = self.start_handler {
            builder = builder.on_start(handler);
        }
        if let Some(handler) = self.exit_handler {
            builder = builder.on_exit(handler);
        }
        builder = match self.get_thread_name {
            Some(name) => builder.name(name),
            None => builder.unnamed(),
        };
        if !S::STARTS_THREADS {
            builder = builder.spawn_handler(|thread| spawner.spawn(ThreadBuilder(thread)));
        }
        Ok(build(builder)?)
    }
}

impl<S> ThreadPoolBuilder<S> {
    /// Sets the function that starts the threads. It is called on the thread that builds, for one
    /// thread after the other.
    ///
    /// If it returns an error, the build fails with that error.
    pub fn spawn_handler<F>(self, spawn: F) -> ThreadPoolBuilder<CustomSpawn<F>>
    where
        F: FnMut(ThreadBuilder) -> io::Result<()>,
    {
        ThreadPoolBuilder {
            num_threads: self.num_threads,
            use_current_thread: self.use_current_thread,
            breadth_first: self.breadth_first,
            stack_size: self.stack_size,
            get_thread_name: self.get_thread_name,
            panic_handler: self.panic_handler,
            start_handler: self.start_handler,
            exit_handler: self.exit_handler,
            spawn_handler: CustomSpawn(spawn),
        }
    }

    /// Sets the function that names each thread by its index. Without it the threads have no names.
    #[must_use]
    pub fn thread_name<F>(mut self, closure: F) -> Self
    where
        F: FnMut(usize) -> String + 'static,
    {
        self.get_thread_name = Some(Box::new(closure));
        self
    }

    /// Sets the number of threads. A number above [`max_num_threads`](crate::max_num_threads) is
    /// reduced to it.
    ///
    /// Zero, the default, takes the number from the environment variable `RAYON_NUM_THREADS`, or
    /// from `RAYON_RS_NUM_CPUS` if that is unset or not a number. If neither has a number, or
    /// it is zero, the number is that of `POACH_THREADS`, and without that variable as many as
    /// the system can run in parallel.
    #[must_use]
    pub fn num_threads(mut self, num_threads: usize) -> Self {
        self.num_threads = num_threads;
        self
    }

    /// Makes the thread that builds the pool its thread 0, for as long as the thread lives. It runs
    /// tasks when it waits for one, or yields. The spawn, start and exit handlers are not
    /// called for it.
    #[must_use]
    pub fn use_current_thread(mut self) -> Self {
        self.use_current_thread = true;
        self
    }

    /// Sets the function that is called with the payload of a panic in a task that nobody waits
    /// for. Without it such a panic ends the process, and so does a panic of the function
    /// itself.
    #[must_use]
    pub fn panic_handler<H>(mut self, panic_handler: H) -> Self
    where
        H: Fn(Box<dyn Any + Send>) + Send + Sync + 'static,
    {
        self.panic_handler = Some(Box::new(panic_handler));
        self
    }

    /// Sets the size of each thread's call stack in bytes. The default is 8 MiB, or
    /// `RUST_MIN_STACK` if that is more.
    #[must_use]
    pub fn stack_size(mut self, stack_size: usize) -> Self {
        self.stack_size = Some(stack_size);
        self
    }

    /// Suggests that the threads run what they have spawned oldest first.
    #[deprecated(note = "use `scope_fifo` and `spawn_fifo` for similar effect")]
    #[must_use]
    pub fn breadth_first(mut self) -> Self {
        self.breadth_first = true;
        self
    }

    /// Sets the function that each thread calls with its index before it takes work. A panic goes
    /// to the panic handler, and the thread works on.
    #[must_use]
    pub fn start_handler<H>(mut self, start_handler: H) -> Self
    where
        H: Fn(usize) + Send + Sync + 'static,
    {
        self.start_handler = Some(Box::new(start_handler));
        self
    }

    /// Sets the function that each thread calls with its index when it ends. A panic goes to the
    /// panic handler.
    #[must_use]
    pub fn exit_handler<H>(mut self, exit_handler: H) -> Self
    where
        H: Fn(usize) + Send + Sync + 'static,
    {
        self.exit_handler = Some(Box::new(exit_handler));
        self
    }
}

/// What `Debug` shows of a handler that is set.
struct Closure;

impl fmt::Debug for Closure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<closure>")
    }
}

impl<S> fmt::Debug for ThreadPoolBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPoolBuilder")
            .field("num_threads", &self.num_threads)
            .field("use_current_thread", &self.use_current_thread)
            .field("get_thread_name", &self.get_thread_name.as_ref().map(|_| Closure))
            .field("panic_handler", &self.panic_handler.as_ref().map(|_| Closure))
            .field("stack_size", &self.stack_size)
            .field("start_handler", &self.start_handler.as_ref().map(|_| Closure))
            .field("exit_handler", &self.exit_handler.as_ref().map(|_| Closure))
            .field("breadth_first", &self.breadth_first)
            .finish()
    }
}

/// A panic that nobody waits for.
fn panicked(handler: Option<&PanicHandler>, payload: Box<dyn Any + Send>) {
    let Some(handler) = handler else {
        abort("a task panicked, nobody waits for it, and there is no panic handler");
    };
    if catch_unwind(AssertUnwindSafe(|| handler(payload))).is_err() {
        abort("the panic handler panicked");
    }
}

/// Prints the reason and then the original's message, and ends the process. `eprintln` would panic
/// if standard error is closed.
fn abort(why: &str) -> ! {
    let said = "Rayon: detected unexpected panic; aborting";
    drop(writeln!(io::stderr(), "rayon-core (Poach): {why}\n{said}"));
    process::abort();
}

/// Makes the global pool with the default settings, unless there is one.
pub(crate) fn ensure_global() -> Result<(), ThreadPoolBuildError> {
    match ThreadPoolBuilder::new().build_global() {
        Err(error) if error.is_unsupported() => {
            // The system has no threads: this thread runs everything.
            ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global()
        }
        Err(error) if error.is_global_there() => Ok(()),
        made => made,
    }
}

/// The number of threads that rayon's variables set, if they do.
fn default_threads(variable: impl Fn(&str) -> Option<String>) -> Option<usize> {
    let number = |name| variable(name)?.parse::<usize>().ok();
    let threads = number("RAYON_NUM_THREADS").or_else(|| number("RAYON_RS_NUM_CPUS"));
    threads.filter(|&threads| threads != 0).map(|threads| threads.min(MAX_THREADS))
}

/// What Poach's own variables set.
struct Environment {
    waiting: Waiting,
    pin: Placement,
}

impl Environment {
    fn read() -> io::Result<Environment> {
        let waiting = choice(
            "POACH_WAITING",
            &[
                ("patient", Waiting::Patient),
                ("random", Waiting::Random),
                ("transitive", Waiting::Transitive),
                ("leapfrog", Waiting::Leapfrog),
                ("sleep", Waiting::Sleep),
            ],
        )?;
        let pin = choice(
            "POACH_PIN",
            &[
                ("no", Placement::Anywhere),
                ("compact", Placement::Compact),
                ("scatter", Placement::Scatter),
            ],
        )?;
        Ok(Environment { waiting, pin })
    }
}

/// The choice that the environment variable names; the first one if it is unset or empty.
fn choice<T: Clone>(variable: &str, choices: &[(&str, T)]) -> io::Result<T> {
    let value = env::var_os(variable).filter(|value| !value.is_empty());
    choice_of(variable, value.as_ref().map(|value| value.to_string_lossy()).as_deref(), choices)
}

fn choice_of<T: Clone>(
    variable: &str,
    value: Option<&str>,
    choices: &[(&str, T)],
) -> io::Result<T> {
    let Some(value) = value else {
        return Ok(choices[0].1.clone());
    };
    if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == value) {
        return Ok(choice.clone());
    }
    let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
    let names = names.join(", ");
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("{variable}={value} is none of: {names}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of threads where RAYON_NUM_THREADS and RAYON_RS_NUM_CPUS have these values.
    fn threads(new: Option<&str>, old: Option<&str>) -> Option<usize> {
        default_threads(|variable| {
            let value = if variable == "RAYON_NUM_THREADS" { new } else { old };
            value.map(str::to_owned)
        })
    }

    #[test]
    fn rayons_variables_in_their_order() {
        assert_eq!(threads(None, None), None);
        assert_eq!(threads(Some("3"), None), Some(3));
        assert_eq!(threads(Some("3"), Some("5")), Some(3));
        assert_eq!(threads(None, Some("5")), Some(5));
        assert_eq!(threads(Some("many"), Some("5")), Some(5));
        assert_eq!(threads(Some("0"), Some("5")), None);
        assert_eq!(threads(Some("many"), None), None);
        assert_eq!(threads(Some("99999999"), None), Some(MAX_THREADS));
    }

    #[test]
    fn a_choice_that_is_not_there_is_refused_with_those_that_are() {
        let choices = [("a", 1), ("b", 2)];
        assert_eq!(choice_of("V", None, &choices).unwrap(), 1);
        assert_eq!(choice_of("V", Some("b"), &choices).unwrap(), 2);
        let error = choice_of("V", Some("c"), &choices).unwrap_err();
        assert_eq!(error.to_string(), "V=c is none of: a, b");
    }
}
