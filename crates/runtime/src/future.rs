//! Futures as tasks of a pool, over the crate `async-task`.
//!
//! # How it works
//!
//! A spawned future is one allocation of `async-task`'s and one `FuturePacket`, which it shares
//! with its handle. Each time it is to be polled, by its spawn or by a waker, `async-task` calls
//! `schedule` with a `Runnable`, of which there is one at most. That becomes an ordinary task of
//! the pool, of one word.
//!
//! | the future is scheduled by | goes to |
//! |---|---|
//! | its spawn | the same queue as a closure |
//! | a waker on a worker of its pool, and so by itself while it is polled | that worker's `ready`, last |
//! | a waker on any other thread | the pool's common queue, last |
//!
//! # Why no task starves
//!
//! A worker polls what is in its `ready`, in order, once its queue of closures is empty, up to
//! `BURST_TASKS_AT_ONCE` in a row. Then it looks for everything else once, and for futures last:
//! first at its own, then at those of others. So futures that wake themselves or each other keep no
//! closure from running, and each other in turn. A future does not wait for a worker that runs a
//! long closure. `ready` is an `Inbox`: a put there is line P1 of `sleep/README.md`, as into the
//! pool's common queue.
//!
//! # Who keeps what alive
//!
//! - A future that is scheduled, or polled, keeps its pool open, as a closure does. A future that
//!   waits to be woken does not: a pool ends without it, and a later wake-up cancels it
//!   (`schedule` drops the `Runnable`, and with it the future).
//! - A future of a scope is counted there until it has been dropped, so what it borrows lives long
//!   enough. `Driven` drops the future first and tells the scope afterwards, in each of the three
//!   ways to end: ready, panicked, and dropped by `async-task`. A waker that is left afterwards
//!   refers to an allocation in which no future is any more.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::mem;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use async_task::{Builder, Runnable};
use pin_project_lite::pin_project;

use crate::handle::packet::{Awaited, Packet, PoolTask, Waiter};
use crate::handle::{JoinError, JoinHandle, ScopedJoinHandle};
use crate::scope::Scope;
use crate::shared::{OpenPool, PoolShared};
use crate::sleep::Caller;
use crate::spawn::{TaskBuilder, task};
use crate::system::process::ProcessGuard;
use crate::task::panic::{Outcome, catch, dispose};
use crate::task::value::Fresh;
use crate::worker::current::WorkerThread;
use crate::worker::signal::Signal;
use crate::worker::tally::{HeldScope, ScopeKind};

/// Starts a future as a task of the calling worker's pool, or, if the caller is no worker, of the
/// global pool. The pool's threads poll it, beside its other tasks.
///
/// The handle can be awaited, [joined](JoinHandle::join) by a thread, and
/// [cancelled](JoinHandle::cancel): then the future is dropped before its next poll. If the handle
/// is dropped, the future goes on. A panic of its `poll` or of its destructor ends it, as one of a
/// closure does.
///
/// A future is polled by a worker that looks for work, or waits and may run any task. A worker that
/// waits with [`Waiting::Sleep`](crate::config::Waiting::Sleep) or in
/// [`blocking`](crate::blocking()) does not poll what it waits for. Await handles in a future: a poll that [joins](JoinHandle::join)
/// one blocks its worker, and is not covered by what `join` says of chains of tasks.
///
/// Nor is a chain of closures that join futures which wait for something outside the pool, such as
/// a timer. Once no worker has been at work for a millisecond, a waiting one takes any task. That
/// task may wait for one below it, and panics or hangs. In such chains await, and do not join.
///
/// A pool has no timers and no input or output: those of tokio, async-io and others work, as long as
/// their own threads call the wakers. The end of a pool waits for futures that run or have been
/// woken. It does not wait for those that wait: they are cancelled when they are woken, and a
/// [`join`](JoinHandle::join) of one waits until then.
///
/// ```
/// # use poach_runtime as poach;
/// let (send, receive) = std::sync::mpsc::channel();
/// let answer = poach::spawn_future(async move {
///     let half = poach::spawn_handle(|| 21); // a closure that computes, on any worker
///     send.send("begun").unwrap();
///     half.await.unwrap() * 2
/// });
/// assert_eq!(receive.recv(), Ok("begun"));
/// assert_eq!(answer.join().unwrap(), 42);
/// ```
///
/// # Panics
///
/// As [`spawn`](crate::spawn()).
pub fn spawn_future<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    task().spawn_future(future)
}

impl TaskBuilder<'_> {
    /// Starts a future, as [`spawn_future`]. The options say where its first poll waits; after that
    /// it goes where its wakers send it.
    ///
    /// # Panics
    ///
    /// As it does.
    pub fn spawn_future<F>(self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.start(|shared| {
            // The packet's owner is the pool: a frame ends with its interrupt.
            let (first, pool) = (shared.keep_open(), shared.outermost());
            let packet = FuturePacket::new(pool.process_guard);
            let end = End::new(&packet, Owner::Pool(Arc::clone(pool)));
            // SAFETY: the future is 'static and Send.
            let runnable = unsafe { packet.drive(Arc::clone(shared), false, future, end) };
            (Fresh::detached(move || run(&first, runnable, false)), JoinHandle::new(packet))
        })
    }
}

impl<'scope> Scope<'scope> {
    /// Spawns a future into the scope, which may borrow what outlives the scope. The scope ends
    /// after it. See [`spawn_future`].
    ///
    /// A future that nobody wakes any more keeps the scope waiting for ever.
    ///
    /// A panic of the future is that of [`join`](ScopedJoinHandle::join), or, if the handle is gone,
    /// the scope's.
    ///
    /// ```
    /// # use poach_runtime as poach;
    /// let words = ["fork".to_owned(), "join".to_owned()];
    /// let length = poach::scope(|s| {
    ///     let first = s.spawn_future(async { words[0].len() });
    ///     let second = s.spawn_future(async { words[1].len() });
    ///     first.join().unwrap() + second.join().unwrap()
    /// });
    /// assert_eq!(length, 8);
    /// ```
    pub fn spawn_future<F>(&self, future: F) -> ScopedJoinHandle<'scope, F::Output>
    where
        F: Future + Send + 'scope,
        F::Output: Send + 'scope,
    {
        let base = self.base();
        let pool = base.tally.shared();
        let packet = FuturePacket::new(pool.process_guard);
        let end = End::new(&packet, Owner::Scope(base.hold()));
        // SAFETY: the future is Send. What it borrows outlives the scope, which ends after `end`,
        // and `end` is told or dropped after the future: see "Who keeps what alive".
        let runnable = unsafe { packet.drive(Arc::clone(pool), true, future, end) };
        runnable.schedule();
        ScopedJoinHandle::new(packet)
    }
}

/// Runs a future on the calling thread until it is ready. A worker runs other tasks of its pool on
/// top of the caller while the future waits, as in [`JoinHandle::join`], and with the same limits:
/// with [`Waiting::Sleep`](crate::config::Waiting::Sleep), and in
/// [`blocking`](crate::blocking()), it runs none.
///
/// ```
/// # use poach_runtime as poach;
/// let pool = poach::ThreadPool::builder().num_threads(1).build()?;
/// // The one worker waits for a future that only it can poll.
/// let sum = pool.install(|| poach::future::block_on(poach::spawn_future(async { 40 + 2 })));
/// assert_eq!(sum.unwrap(), 42);
/// # Ok::<(), poach::BuildError>(())
/// ```
///
/// # Panics
///
/// As the future's `poll` does.
pub fn block_on<F: Future>(future: F) -> F::Output {
    WorkerThread::with(|local| {
        let current = Arc::new(Current(ProcessGuard::here(), Mutex::new(Signal::new(local))));
        let waker = Waker::from(Arc::clone(&current));
        let mut future = pin!(future);
        loop {
            let signal = current.renew(local);
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return output;
            }
            match local {
                // It has woken itself: other tasks go first.
                Some(local) if signal.is_set() && !local.is_still() => _ = local.run_any(),
                _ => signal.wait(local),
            }
        }
    })
}

/// The signal that a thread in [`block_on`] waits for, or is to wait for next.
struct Current(ProcessGuard, Mutex<Signal>);

impl Current {
    /// Replaces the last signal by a new one, not yet set. A wake that comes too late for the last
    /// signal sets the new one, and causes one poll more.
    fn renew(&self, local: Option<&WorkerThread>) -> Signal {
        let signal = Signal::new(local);
        *self.0.lock(&self.1) = signal.clone();
        signal
    }
}

impl Wake for Current {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // In a child process nobody waits.
        if !self.0.is_elsewhere() {
            let signal = self.0.lock(&self.1).clone();
            signal.set();
        }
    }
}

/// Lets other tasks run first: ready at its second poll, before which the closures of this worker
/// run, and the futures that were woken before.
///
/// ```
/// # use poach_runtime as poach;
/// let counted = poach::spawn_future(async {
///     for _ in 0..100 {
///         poach::future::yield_now().await;
///     }
///     "done"
/// });
/// assert_eq!(counted.join().unwrap(), "done");
/// ```
pub fn yield_now() -> impl Future<Output = ()> + Send + Sync + Unpin {
    let mut yielded = false;
    poll_fn(move |context| {
        if mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
}

/// Queues a future that has been woken. On any thread; does not unwind.
fn schedule(pool: &Arc<PoolShared>, in_scope: bool, runnable: Runnable) {
    if pool.process_guard.is_elsewhere() {
        // A child process has no workers, and a lock of the future's may be held by a thread that
        // is not there.
        mem::forget(runnable);
        return;
    }
    // What began in an interrupt goes on in its frame, whose workers are busy with it, and after
    // that in the pool.
    let frame = pool.try_keep_open();
    let pool = if frame.is_some() { pool } else { pool.outermost() };
    let Some(open) = frame.or_else(|| pool.try_keep_open()) else {
        // Nobody polls it any more. This cancels the future.
        return dispose(runnable);
    };
    let task = Fresh::detached(move || run(&open, runnable, in_scope));
    WorkerThread::with(|local| {
        let own = |local: &&WorkerThread| {
            std::ptr::eq(&raw const *local.shared, &raw const **pool) && !local.is_guest()
        };
        match local.filter(own) {
            Some(local) => {
                local.slot().ready.put(task.task());
                pool.sleep.wake_one(Caller::GoesOn);
            }
            None => pool.inject(task.task()),
        }
    });
}

/// Polls a future once, or drops it, if its pool drops what nobody waits for.
fn run(open: &OpenPool, runnable: Runnable, in_scope: bool) {
    let shared = open.shared();
    // Of the future's code all panics are caught; a waker's are not.
    shared.handlers.told(|| {
        if shared.is_dropping() && !in_scope {
            drop(runnable);
        } else {
            runnable.run();
        }
    });
}

/// What a future shares with its handle: what it came to, and the way to cancel it.
struct FuturePacket<R> {
    /// A packet whose job has begun.
    outcome: Packet<R, fn() -> R, PoolTask>,
    /// Dropped, it cancels the future.
    task: Mutex<Option<async_task::Task<()>>>,
}

impl<R: Send> FuturePacket<R> {
    fn new(process_guard: ProcessGuard) -> Arc<FuturePacket<R>> {
        Arc::new(FuturePacket { outcome: Packet::begun(process_guard), task: Mutex::new(None) })
    }

    /// Makes a task of the future, and returns its first `Runnable`.
    ///
    /// # Safety
    ///
    /// The future is Send, and what it borrows lives until `end` has been told or dropped.
    unsafe fn drive<F: Future<Output = R>>(
        self: &Arc<Self>,
        pool: Arc<PoolShared>,
        in_scope: bool,
        future: F,
        end: End<R>,
    ) -> Runnable {
        let driven = Driven { future: Some(future), end: Some(end) };
        let schedule = move |runnable| schedule(&pool, in_scope, runnable);
        // SAFETY: the future is Send; `schedule` is Send, Sync and 'static; and `Driven` has
        // dropped the future, the only part that may borrow, before `end` is told or dropped. The
        // output is ().
        let (runnable, task) = unsafe { Builder::new().spawn_unchecked(|()| driven, schedule) };
        *self.lock() = Some(task);
        runnable
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<async_task::Task<()>>> {
        self.task.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl<R: Send> Awaited<R> for FuturePacket<R> {
    fn process_guard(&self) -> ProcessGuard {
        self.outcome.process_guard()
    }

    fn is_finished(&self) -> bool {
        self.outcome.is_finished()
    }

    /// A waiting thread cannot take it out of a queue.
    fn run_on(&self, _: &WorkerThread) -> bool {
        false
    }

    /// See [`JoinHandle::cancel`].
    fn cancel(&self) -> bool {
        let task = self.lock().take();
        let pending = !self.outcome.is_finished();
        // Not under the lock: it calls `schedule`.
        drop(task);
        pending
    }

    fn wait_by(&self, waiter: Waiter) -> Option<Waiter> {
        self.outcome.wait_by(waiter)
    }

    fn is_below(&self) -> bool {
        self.outcome.is_below()
    }

    fn is_pending_for(&self, waker: &Waker) -> (bool, bool) {
        self.outcome.is_pending_for(waker)
    }

    fn take(&self) -> Result<R, JoinError> {
        self.outcome.take()
    }

    fn detach(&self) {
        if self.process_guard().is_elsewhere() {
            return;
        }
        // Not under the lock: it may call `schedule`.
        let task = self.lock().take();
        if let Some(task) = task {
            task.detach();
        }
        self.outcome.detach();
    }
}

pin_project! {
    /// A spawned future, and who is told of its end. The order of the fields is that of the drops.
    struct Driven<F, R>
    where
        F: Future<Output = R>,
    {
        #[pin]
        future: Option<F>,
        end: Option<End<R>>,
    }

    impl<F, R> PinnedDrop for Driven<F, R>
    where
        F: Future<Output = R>,
    {
        // `async-task` ends the process if this unwinds.
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            if let Err(payload) = catch(|| this.future.set(None)) {
                match this.end {
                    Some(end) => end.shared().handlers.panicked(payload),
                    None => dispose(payload),
                }
            }
        }
    }
}

impl<F: Future<Output = R>, R> Future for Driven<F, R> {
    type Output = ();

    /// Does not unwind, but for a waker's panic.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        let Some(future) = this.future.as_mut().as_pin_mut() else {
            return Poll::Ready(());
        };
        if let Some(end) = &this.end {
            end.packet.outcome.runs(end.shared());
        }
        let mut outcome = match catch(|| future.poll(context)) {
            Ok(Poll::Pending) => {
                if let Some(end) = &this.end {
                    end.packet.outcome.pauses();
                }
                return Poll::Pending;
            }
            Ok(Poll::Ready(output)) => Ok(output),
            Err(payload) => Err(payload),
        };
        if let Err(payload) = catch(|| this.future.set(None)) {
            // The first panic travels.
            match outcome {
                Ok(output) => {
                    dispose(output);
                    outcome = Err(payload);
                }
                Err(first) => {
                    dispose(payload);
                    outcome = Err(first);
                }
            }
        }
        if let Some(end) = this.end.take() {
            end.tell(outcome);
        }
        Poll::Ready(())
    }
}

/// The receivers of a future's outcome. Its drop tells them that the future was cancelled.
struct End<R> {
    packet: Arc<FuturePacket<R>>,
    owner: Owner,
    told: bool,
}

enum Owner {
    Pool(Arc<PoolShared>),
    Scope(HeldScope),
}

impl<R> End<R> {
    fn new(packet: &Arc<FuturePacket<R>>, owner: Owner) -> End<R> {
        End { packet: Arc::clone(packet), owner, told: false }
    }

    fn tell(mut self, outcome: Outcome<R>) {
        self.told = true;
        self.end(outcome.map_err(JoinError::panicked));
    }

    fn shared(&self) -> &Arc<PoolShared> {
        match &self.owner {
            Owner::Pool(shared) => shared,
            Owner::Scope(scope) => scope.shared(),
        }
    }

    fn end(&self, outcome: Result<R, JoinError>) {
        // A waker may panic here, and the destructor of a result that nobody wants.
        self.shared().handlers.told(|| match self.packet.outcome.end(outcome) {
            Some(Err(error)) if error.is_panic() => self.unheard(error.into_panic()),
            nobody_asks => drop(nobody_asks),
        });
    }

    /// A panic of which no handle will ask.
    fn unheard(&self, payload: Box<dyn Any + Send>) {
        match &self.owner {
            Owner::Pool(shared) => shared.handlers.panicked(payload),
            Owner::Scope(scope) => scope.panicked(payload),
        }
    }
}

impl<R> Drop for End<R> {
    fn drop(&mut self) {
        if !self.told {
            self.end(Err(JoinError::cancelled()));
        }
    }
}
