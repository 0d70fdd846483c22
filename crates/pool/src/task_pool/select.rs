//! [`Selector`]: the first of several gets and puts that can be done. It polls their futures. When
//! one is ready the others are dropped, which loses nothing: their wake-ups are passed on.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use super::consumer::Consumer;
use super::error::{Closed, PutError};
use super::producer::Producer;
use super::wait::Parked;

/// Waits for the first of several gets and puts, and does that one alone.
///
/// Each is added with a closure for its result. If several can be done at once, each selection
/// begins with a different one. A get from a pool that is closed and empty *can be done*: its
/// result is [`Closed`]. So can a put that is refused.
///
/// ```
/// use poach_pool::{Selector, TaskPool};
///
/// let (orders, names) = (TaskPool::new(), TaskPool::new());
/// let (mut order, mut name) = (orders.consumer().unwrap(), names.consumer().unwrap());
/// let mut to = names.producer().unwrap();
/// to.put("Ada").unwrap();
/// let got = Selector::new()
///     .get(&mut order, |order: Result<u32, _>| format!("order {}", order.unwrap()))
///     .get(&mut name, |name| format!("for {}", name.unwrap()))
///     .wait();
/// assert_eq!(got, "for Ada");
/// ```
///
/// It is a future as well: in an async program `.await` it in place of [`wait`](Selector::wait).
/// Like all futures of this crate it is cancel safe for gets: dropped before it is ready it has
/// taken no task. The task of a put that was not done is dropped with it.
///
/// An operation costs an allocation, and an entry at its pool's gate if none can be done at once.
#[must_use = "a selector does nothing unless it is waited for"]
#[doc(alias = "select")]
#[doc(alias = "Select")]
pub struct Selector<'a, R> {
    operations: Vec<Operation<'a, R>>,
    first: usize,
    has_ended: bool,
}

/// Sets the flag before it calls the closure, which may panic.
type Operation<'a, R> = Box<dyn FnMut(&mut Context<'_>, &mut bool) -> Poll<R> + Send + 'a>;

/// No operation could be done in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectTimeoutError;

impl fmt::Display for SelectTimeoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no get or put of a selection could be done in time")
    }
}

impl std::error::Error for SelectTimeoutError {}

impl<R> Default for Selector<'_, R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a, R> Selector<'a, R> {
    /// A selection without operations.
    pub fn new() -> Self {
        thread_local! { static FIRST: Cell<usize> = const { Cell::new(0) } }
        let first = FIRST.get();
        FIRST.set(first.wrapping_add(1));
        Selector { operations: Vec::new(), first, has_ended: false }
    }

    fn operation<O>(
        mut self,
        mut operation: impl Future<Output = O> + Unpin + Send + 'a,
        then: impl FnOnce(O) -> R + Send + 'a,
    ) -> Self {
        let mut then = Some(then);
        self.operations.push(Box::new(move |context, is_done| {
            Pin::new(&mut operation).poll(context).map(|output| {
                *is_done = true;
                let then = then.take().expect("a selection ends once");
                then(output)
            })
        }));
        self
    }

    /// Adds a get from `consumer`'s pool.
    #[doc(alias = "recv")]
    pub fn get<T: Send + 'a>(
        self,
        consumer: &'a mut Consumer<T>,
        then: impl FnOnce(Result<T, Closed>) -> R + Send + 'a,
    ) -> Self {
        self.operation(consumer.get_async(), then)
    }

    /// Adds a put of `task` into `producer`'s pool.
    #[doc(alias = "send")]
    pub fn put<T: Send + 'a>(
        self,
        producer: &'a mut Producer<T>,
        task: T,
        then: impl FnOnce(Result<(), PutError<T>>) -> R + Send + 'a,
    ) -> Self {
        self.operation(producer.put_async(task), then)
    }

    fn poll_each(&mut self, context: &mut Context<'_>) -> Poll<R> {
        // Checked before any operation takes a task, which would be lost.
        assert!(!self.has_ended, "a selection that was ready is not polled again");
        let Selector { operations, first, has_ended } = self;
        let count = operations.len().max(1);
        let (before, after) = operations.split_at_mut(*first % count);
        let mut operations = after.iter_mut().chain(before);
        let ready = operations.find_map(|operation| match operation(context, has_ended) {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        });
        ready.map_or(Poll::Pending, Poll::Ready)
    }

    /// Waits until an operation can be done, and does it.
    ///
    /// # Panics
    ///
    /// If there is no operation, which would wait for ever, or if the closure of a result panics.
    pub fn wait(self) -> R {
        assert!(!self.operations.is_empty(), "a selection among nothing would wait for ever");
        match self.wait_until(None) {
            Ok(result) => result,
            Err(SelectTimeoutError) => unreachable!("it has no deadline"),
        }
    }

    /// Does an operation that can be done at once.
    ///
    /// # Errors
    ///
    /// [`SelectTimeoutError`], if there is none.
    #[doc(alias = "try_select")]
    pub fn try_wait(mut self) -> Result<R, SelectTimeoutError> {
        match self.poll_each(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => Ok(result),
            Poll::Pending => Err(SelectTimeoutError),
        }
    }

    /// As [`wait`](Selector::wait), no longer than `timeout`. A timeout beyond the range of the
    /// clock is for ever. Without operations it waits for the whole timeout.
    ///
    /// # Errors
    ///
    /// [`SelectTimeoutError`].
    #[doc(alias = "select_timeout")]
    pub fn wait_timeout(self, timeout: Duration) -> Result<R, SelectTimeoutError> {
        self.wait_until(Instant::now().checked_add(timeout))
    }

    /// As [`wait`](Selector::wait), until `deadline`, which may have passed.
    ///
    /// # Errors
    ///
    /// [`SelectTimeoutError`].
    #[doc(alias = "select_deadline")]
    pub fn wait_deadline(self, deadline: Instant) -> Result<R, SelectTimeoutError> {
        self.wait_until(Some(deadline))
    }

    fn wait_until(mut self, deadline: Option<Instant>) -> Result<R, SelectTimeoutError> {
        let parked = Parked::new();
        let waker = Waker::from(Arc::clone(&parked));
        let mut context = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(result) = self.poll_each(&mut context) {
                return Ok(result);
            }
            if !parked.sleep(deadline) {
                return Err(SelectTimeoutError);
            }
        }
    }
}

impl<R> fmt::Debug for Selector<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Selector")
            .field("operations", &self.operations.len())
            .finish_non_exhaustive()
    }
}

/// Pending for ever without operations.
///
/// # Panics
///
/// `poll` panics if it has been ready before, or if a closure panics or has panicked before.
impl<R> Future for Selector<'_, R> {
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<R> {
        self.poll_each(context)
    }
}
