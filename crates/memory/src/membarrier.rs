//! The process-wide barrier: a full fence in each running thread, paid by the caller alone.
//!
//! A thread that calls [`barrier`] makes each processor that runs a thread of the process execute a
//! full fence before the call returns. A thread that is not running executed a full fence when it
//! was descheduled. So the stores that another thread issued before its fence are visible after
//! `barrier`, and the loads that it issues after its fence see all stores before `barrier`. The
//! other thread itself needs only a compiler fence.
//!
//! | system | means | source |
//! |---|---|---|
//! | Linux 4.14+ | `membarrier(2)`, private expedited: registered once per process | its manual page |
//! | Windows | `FlushProcessWriteBuffers` | its reference page |
//! | others, Miri, feature `portable` | none: [`register`] says why, [`barrier`] is a full fence | |
//!
//! # One answer a process
//!
//! If owner and thief got different answers from [`register`], the owner would have no fence and
//! the thief only a local fence, and a task would come out twice. But the kernel may answer two
//! threads of one process differently, because each thread has its own seccomp filters.
//!
//! So the first answer holds for the process: it is set by a compare-and-swap from "unknown". Every
//! thread uses it, even if its own request had another result. If the answer is "refused", all
//! threads use full fences, which need no registration. If it is "granted", the whole process is
//! registered, because the kernel registers processes, not threads.
//!
//! # A barrier that fails later
//!
//! A seccomp filter may be installed after the first use, or in one thread only. Then the kernel
//! refuses the barrier although the process is registered. The owner may have read the thieves'
//! index already, without a fence: a full fence of the caller comes too late. Two calls:
//!
//! - [`try_barrier`] returns `false` if it failed. The caller must then do nothing that needs the
//!   barrier. The answer becomes "lost", which is final: [`register`] and [`is_registered`] refuse,
//!   so that later queues use full fences, and [`is_refused`] tells owners to fence from their next
//!   safe point on. All deques use this call. A thief takes nothing then, and asks the owner
//!   (`poach_deque::split`, [`StoreLoad::ask_owner`](crate::StoreLoad::ask_owner)).
//! - [`barrier`] cannot fail. If the kernel refuses it, the program aborts with a message. The task
//!   pools use this call. A consumer that has taken a chunk, or is about to sleep, depends on all
//!   other threads of the pool, and cannot ask them to come to a safe point.
//!
//! Both make the system call if the process was ever registered, also after the answer became
//! "lost". An owner before its safe point still has no fence, and the filter may not concern the
//! calling thread. [`may_succeed`] tells whether the call may succeed.
//!
//! [`switch_off`] makes the answer "switched off" without a filter. The kernel still grants the
//! call then, so a thief can still synchronize with an owner before its safe point.
//!
//! # No substitute for it
//!
//! Where `membarrier(2)` is refused, folly and others remove a page's write permission. The kernel
//! then interrupts each processor that runs the process, to flush its TLB, and the interrupt is a
//! full fence. But no documentation of Linux or of a processor's maker promises the interrupt.
//! Since Linux 6.15 an AMD processor with `INVLPGB` flushes by a broadcast, without an interrupt,
//! in a process that runs on four processors or more. An owner's store may then stay in its store
//! buffer. A process cannot find out which of the two happens. So a thief that has lost the barrier
//! waits for the owner (`docs/notebook/runtime.md` lists the alternatives).
//!
//! # Registered before `main`
//!
//! The kernel registers a process with one thread at once. If there are several threads, it first
//! waits until every processor has passed through its scheduler: 5 to 25 ms (Linux 6.1, two
//! processors), longer than many programs run. So a function in `.init_array` registers the process
//! before `main`, if it has one thread then. It does not set the answer: the first [`register`]
//! does, and respects a filter that the program installs in between. In a library that is loaded by
//! a process with threads [`is_registered`] lets another thread wait for the kernel.
//!
//! In Miri's memory model, C11's, a thread cannot fence for another: the answer is "unavailable".

use core::cell::Cell;
use core::fmt;
use core::sync::atomic::{self, AtomicU8, AtomicU32, Ordering};

/// Why this process has no process-wide barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unavailable {
    /// This build has none: the system offers none, or the `portable` feature asks for none.
    NotBuilt,
    /// The kernel does not list the command, or refused to register the process.
    Refused,
    /// The process had it, and the kernel has refused it since: [a barrier that fails
    /// later](self#a-barrier-that-fails-later).
    Lost,
    /// The program has [switched it off](switch_off).
    SwitchedOff,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unavailable::NotBuilt => "this build has no process-wide memory barrier",
            Unavailable::Refused => "the kernel refuses membarrier(2) private expedited",
            Unavailable::Lost => "the kernel refuses membarrier(2), which it has granted before",
            Unavailable::SwitchedOff => "the process-wide memory barrier is switched off",
        })
    }
}

impl std::error::Error for Unavailable {}

/// Registers the process at the first call. Later calls return the same answer.
///
/// The first call may take milliseconds, if the process had threads when this library was loaded;
/// later calls cost a load. No call waits for another, so a child forked while its parent registers
/// does not hang. Concurrent calls may all register, which the kernel allows; the first answer is
/// the answer of all.
///
/// # Errors
///
/// [`Unavailable`], where full fences must be used instead.
#[inline]
pub fn register() -> Result<(), Unavailable> {
    // Acquire: pairs with `decide`; the process is registered before this thread's first barrier.
    told(ANSWER.load(Ordering::Acquire)).unwrap_or_else(register_now)
}

/// Returns `true` if this process has the barrier by now, and has not lost it. If no call has asked
/// the kernel yet, this call asks, without waiting: if the kernel may take long, another thread
/// asks, and the result becomes `true` later.
///
/// Wait-free, a load, once there is an answer.
#[inline]
pub fn is_registered() -> bool {
    // Acquire: as in `register`.
    match ANSWER.load(Ordering::Acquire) {
        UNKNOWN => ask(),
        answer => answer == REGISTERED,
    }
}

/// Returns `true` if this process is known to have no barrier, or to have lost it. Once `true`, it
/// stays so. Does not ask the kernel.
///
/// Wait-free: a load.
#[inline]
pub fn is_refused() -> bool {
    // Relaxed: at worst the caller fences more than is needed.
    !matches!(ANSWER.load(Ordering::Relaxed), UNKNOWN | REGISTERED)
}

/// Returns `true` if [`try_barrier`] may succeed in this thread: the process has or had the
/// barrier, and the system has not refused it to this thread. (A thread never loses a seccomp
/// filter.) Asks the kernel as [`is_registered`] does.
///
/// Wait-free, a load, once there is an answer.
#[inline]
pub fn may_succeed() -> bool {
    // Acquire: as in `register`.
    match ANSWER.load(Ordering::Acquire) {
        UNKNOWN => ask(),
        REGISTERED => true,
        // Unknown once the thread's thread-local variables are gone: the next barrier tells.
        LOST | RETIRED => !REFUSED_HERE.try_with(Cell::get).unwrap_or(false),
        _ => false,
    }
}

/// Stops the whole process from using the process-wide barrier: for a program that will install a
/// seccomp filter against it, and for tests. It cannot be undone.
///
/// | what | from now on |
/// |---|---|
/// | queues made later | full fences |
/// | existing split deques | full fences from the owner's next safe point on; until then thieves execute barriers |
/// | other existing deques | barriers, while the system grants them |
/// | existing task pools | barriers |
///
/// So call this before the first deque or pool is made, in particular if the filter kills or traps.
///
/// Wait-free: two exchanges.
pub fn switch_off() {
    switch_off_in(&ANSWER);
}

fn switch_off_in(process: &AtomicU8) {
    // In this order: "unknown" may become "registered", and nothing becomes "unknown".
    for (from, to) in [(UNKNOWN, OFF), (REGISTERED, RETIRED)] {
        // Release: pairs with the acquires in `register` and its like. Relaxed on failure: nothing
        // is read.
        let _ = process.compare_exchange(from, to, Ordering::Release, Ordering::Relaxed);
    }
}

#[cold]
fn ask() -> bool {
    /// The process that has asked. A child that is forked later has no thread that asks.
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let process = std::process::id();
    // Relaxed: it only keeps other threads from asking again.
    if ASKED.swap(process, Ordering::Relaxed) == process {
        return false;
    }
    let register_there = || {
        let thread = std::thread::Builder::new().name("poach-membarrier".into());
        thread.stack_size(64 << 10).spawn(register_now)
    };
    let at_once = system::answers_at_once() || system::refuses() || register_there().is_err();
    at_once && register_now().is_ok()
}

/// Changes from [`UNKNOWN`] once, and from [`REGISTERED`] only to [`LOST`] or [`RETIRED`].
static ANSWER: AtomicU8 = AtomicU8::new(if BUILT { UNKNOWN } else { NOT_BUILT });
const BUILT: bool =
    cfg!(all(any(target_os = "linux", windows), not(miri), not(feature = "portable")));
const UNKNOWN: u8 = 0;
const REGISTERED: u8 = 1;
const NOT_BUILT: u8 = 2;
const REFUSED: u8 = 3;
const LOST: u8 = 4;
/// Switched off in the registered process.
const RETIRED: u8 = 5;
/// Switched off before a thread asked.
const OFF: u8 = 6;

#[inline(always)]
fn told(answer: u8) -> Option<Result<(), Unavailable>> {
    match answer {
        REGISTERED => Some(Ok(())),
        NOT_BUILT => Some(Err(Unavailable::NotBuilt)),
        REFUSED => Some(Err(Unavailable::Refused)),
        LOST => Some(Err(Unavailable::Lost)),
        RETIRED | OFF => Some(Err(Unavailable::SwitchedOff)),
        _ => None,
    }
}

#[cold]
fn register_now() -> Result<(), Unavailable> {
    decide(&ANSWER, system::register())
}

/// Returns the process's answer, and sets it to `own` if it is unknown.
fn decide(process: &AtomicU8, own: Result<(), Unavailable>) -> Result<(), Unavailable> {
    let word = match own {
        Ok(()) => REGISTERED,
        Err(Unavailable::NotBuilt) => NOT_BUILT,
        Err(Unavailable::Refused) => REFUSED,
        Err(Unavailable::Lost) => LOST,
        Err(Unavailable::SwitchedOff) => OFF,
    };
    // Release: pairs with the acquire in `register`. Acquire: pairs with the winner's release.
    match process.compare_exchange(UNKNOWN, word, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => own,
        Err(first) => told(first).unwrap_or(own),
    }
}

/// Executes a full fence in every thread of this process, if [`register`] has returned `Ok`; else a
/// full fence in this thread alone.
///
/// Costs one system call: about 0.1 us alone, 0.4 us when it must interrupt another processor.
/// Aborts the program if a seccomp filter that was installed later refuses the call.
#[inline]
pub fn barrier() {
    if !try_barrier() {
        failed();
    }
}

/// As [`barrier`], but returns `false` instead of aborting. Then the caller must do nothing that
/// needs the barrier, and the process has lost it: see [a barrier that fails
/// later](self#a-barrier-that-fails-later).
#[inline]
#[must_use = "if it is false there was no barrier"]
pub fn try_barrier() -> bool {
    // Acquire: as in `register`. A caller that relies on the barrier has seen an answer, so this
    // load sees it too.
    if matches!(ANSWER.load(Ordering::Acquire), REGISTERED | LOST | RETIRED) {
        return system::barrier() || lost();
    }
    atomic::fence(Ordering::SeqCst);
    true
}

thread_local! {
    /// `true` once a barrier of this thread was refused.
    static REFUSED_HERE: Cell<bool> = const { Cell::new(false) };
}

#[cold]
fn lost() -> bool {
    // The destructor of another thread-local variable may run after this variable is gone.
    let _ = REFUSED_HERE.try_with(|refused| refused.set(true));
    // Release: pairs with the acquires in `register` and its like. Relaxed on failure: it was lost
    // or switched off before.
    let _ = ANSWER.compare_exchange(REGISTERED, LOST, Ordering::Release, Ordering::Relaxed);
    false
}

#[cold]
fn failed() -> ! {
    /// Aborts when the panic below unwinds, after its message was printed.
    struct Abort;
    impl Drop for Abort {
        fn drop(&mut self) {
            std::process::abort();
        }
    }
    let _abort = Abort;
    panic!(
        "membarrier(2) failed after the process had been registered for it, and task pools rely on it: install no seccomp \
         filter against it once Poach is in use; or install it before the first call, or switch the barrier off before \
         (`POACH_BARRIER=off`), so that full fences are used instead"
    );
}

#[cfg(all(target_os = "linux", not(miri), not(feature = "portable")))]
mod system {
    use core::sync::atomic::{AtomicBool, Ordering};
    use std::os::unix::fs::MetadataExt as _;

    use super::Unavailable;
    use rustix::thread::{
        MembarrierCommand::{PrivateExpedited, RegisterPrivateExpedited},
        MembarrierQuery, membarrier, membarrier_query,
    };

    /// `true` if the process was registered before `main`.
    static EARLY: AtomicBool = AtomicBool::new(false);

    #[used]
    // SAFETY: the section holds pointers to functions of the C calling convention, which the loader
    // calls before `main`. The function makes system calls and writes a static, nothing else.
    #[unsafe(link_section = ".init_array")]
    static BEFORE_MAIN: extern "C" fn() = register_early;

    extern "C" fn register_early() {
        if is_alone() && membarrier(RegisterPrivateExpedited).is_ok() {
            // Relaxed: there is one thread.
            EARLY.store(true, Ordering::Relaxed);
        }
    }

    /// Whether this is the only thread of the process. A directory has two links, and one for each
    /// subdirectory.
    fn is_alone() -> bool {
        std::fs::metadata("/proc/self/task").is_ok_and(|threads| threads.nlink() == 3)
    }

    pub(super) fn answers_at_once() -> bool {
        // Relaxed: it was stored before there were other threads.
        EARLY.load(Ordering::Relaxed) || is_alone()
    }

    pub(super) fn register() -> Result<(), Unavailable> {
        if refuses() {
            return Err(Unavailable::Refused);
        }
        membarrier(RegisterPrivateExpedited).map_err(|_| Unavailable::Refused)
    }

    /// Whether the system says at once that it has no such barrier. A filter usually answers every
    /// command of the system call alike.
    pub(super) fn refuses() -> bool {
        !membarrier_query().contains(MembarrierQuery::PRIVATE_EXPEDITED)
    }

    pub(super) fn barrier() -> bool {
        // In a registered process only a filter makes the command fail (its manual page, ERRORS).
        membarrier(PrivateExpedited).is_ok()
    }
}

#[cfg(all(windows, not(miri), not(feature = "portable")))]
mod system {
    use super::Unavailable;
    use windows_sys::Win32::System::Threading::FlushProcessWriteBuffers;

    #[expect(clippy::unnecessary_wraps, reason = "the other systems' answer can be an error")]
    pub(super) fn register() -> Result<(), Unavailable> {
        Ok(())
    }

    pub(super) fn answers_at_once() -> bool {
        true
    }

    pub(super) fn refuses() -> bool {
        false
    }

    pub(super) fn barrier() -> bool {
        // SAFETY: the function takes nothing, returns nothing, and has no precondition.
        unsafe { FlushProcessWriteBuffers() };
        true
    }
}

#[cfg(any(not(any(target_os = "linux", windows)), miri, feature = "portable"))]
mod system {
    use super::Unavailable;

    pub(super) fn register() -> Result<(), Unavailable> {
        Err(Unavailable::NotBuilt)
    }

    pub(super) fn answers_at_once() -> bool {
        true
    }

    pub(super) fn refuses() -> bool {
        true
    }

    pub(super) fn barrier() -> bool {
        unreachable!("a barrier is only asked for where one is registered")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_once_and_keeps_its_answer() {
        let first = register();
        barrier();
        assert_eq!(first, register());
    }

    #[test]
    fn what_is_asked_soon_is_answered_like_any_other() {
        let soon = is_registered();
        let answer = register();
        assert!(answer.is_ok() || !soon);
        assert_eq!(is_registered(), answer.is_ok());
    }

    #[test]
    fn the_first_answer_is_everybodys() {
        const ANSWERS: [Result<(), Unavailable>; 3] =
            [Ok(()), Err(Unavailable::Refused), Err(Unavailable::NotBuilt)];
        for first in ANSWERS {
            let process = AtomicU8::new(UNKNOWN);
            assert_eq!(decide(&process, first), first);
            for later in ANSWERS {
                assert_eq!(decide(&process, later), first, "{later:?} came after it");
                assert_eq!(told(process.load(Ordering::Relaxed)), Some(first));
            }
        }
    }

    #[test]
    fn what_is_switched_off_stays_off() {
        for (before, after) in [(UNKNOWN, OFF), (REGISTERED, RETIRED)] {
            let process = AtomicU8::new(before);
            switch_off_in(&process);
            assert_eq!(process.load(Ordering::Relaxed), after);
            assert_eq!(decide(&process, Ok(())), Err(Unavailable::SwitchedOff));
        }
        for answer in [NOT_BUILT, REFUSED, LOST, RETIRED, OFF] {
            let process = AtomicU8::new(answer);
            switch_off_in(&process);
            assert_eq!(process.load(Ordering::Relaxed), answer);
        }
    }

    #[test]
    #[cfg(all(target_os = "linux", not(miri), not(feature = "portable")))]
    fn answers_as_the_kernel_does() {
        let listed = rustix::thread::membarrier_query()
            .contains(rustix::thread::MembarrierQuery::PRIVATE_EXPEDITED);
        assert_eq!(register().is_ok(), listed);
    }

    #[test]
    #[cfg(any(miri, feature = "portable"))]
    fn says_that_it_was_not_built() {
        assert_eq!(register(), Err(Unavailable::NotBuilt));
    }
}
