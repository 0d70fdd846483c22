//! The process-wide barrier: a full fence in every running thread of this process, paid by the
//! caller alone.
//!
//! A thread that calls [`barrier`] makes each processor that runs a thread of the process execute a
//! full fence before the call returns; a thread that is not running passed one when it was
//! descheduled. So a store that another thread had issued before its fence is visible after
//! `barrier`, and a load that it issues after the fence sees all that preceded `barrier`. The other
//! thread needs no more than to keep its compiler from reordering.
//!
//! | system | means | source |
//! |---|---|---|
//! | Linux 4.14+ | `membarrier(2)`, private expedited: registered once per process | its manual page |
//! | Windows | `FlushProcessWriteBuffers` | its reference page |
//! | others, Miri, feature `portable` | none: [`register`] says why, [`barrier`] is a full fence | |
//!
//! # One answer a process
//!
//! An owner leaves its fence out because [`register`] has said `Ok` to it, or to the thread that
//! made its queue; a thief calls [`barrier`] for it on the same ground. Would one of them be told
//! otherwise, the owner would go without a fence against a thief's local one, and a task would come
//! out twice. But the kernel may answer two threads of one process differently: a seccomp filter is
//! a thread's own. So the first answer that arrives is the process's, by a compare-and-swap from
//! "unknown", and every thread takes it, also one whose own request had another result. If the
//! first is "refused", all use full fences, which need no registration. If it is "granted", the
//! process is registered, for it is the process that is, not the thread that asked.
//!
//! # A barrier that fails later
//!
//! A seccomp filter may be installed after the first use, or may be on one thread only. Then the
//! kernel refuses a barrier that the process was granted. The owner may have read the thieves'
//! index already, without a fence, so a full fence of the caller comes too late. There are two ways
//! to call for a barrier:
//!
//! - [`try_barrier`] says that it failed. The caller must then do nothing that needed the barrier.
//!   The answer of the process becomes "lost", which is final: [`register`] and [`is_registered`]
//!   refuse from then on, so that what is made later uses full fences, and [`is_refused`] tells
//!   owners to fence from their next safe point on. All deques are built on this: a thief takes
//!   nothing then, and asks the owner (`poach_deque::split`,
//!   [`StoreLoad::ask_owner`](crate::StoreLoad::ask_owner)).
//! - [`barrier`] cannot fail: its caller has no way back. If the kernel refuses it, the program is
//!   aborted, with a message. The task pools make such barriers: a consumer that has made a chunk
//!   its own, or is about to sleep, depends on all other threads of the pool, and none of them can
//!   be asked to come to a safe point.
//!
//! Both make the system call as long as the process was registered, also when the answer is "lost":
//! an owner that has not come to a safe point goes without fences, and the calling thread may be
//! one that the filter does not concern. [`may_succeed`] says whether that is worth a try.
//!
//! [`switch_off`] makes the answer "switched off" without a filter. The kernel still grants the
//! call then, so a thief can still deal with an owner that has not come to a safe point.
//!
//! # No substitute for it
//!
//! folly and others take a page's write permission away where `membarrier(2)` is refused: the
//! kernel then interrupts each processor that runs the process, to have it forget the old
//! permission, and such an interrupt is a full fence there. No page of Linux or of a processor's
//! maker promises the interrupt. Since Linux 6.15 an AMD processor with `INVLPGB` forgets by a
//! broadcast, without one, in a process that runs on four processors or more; an owner's store may
//! stay in its store buffer. A process cannot find out which it is. So there is no second means: a
//! thief that has lost the barrier waits for the owner (`docs/notebook/runtime.md` has what else
//! was thought of).
//!
//! # Registered before `main`
//!
//! The kernel registers a process with one thread at once. Where there are several it first waits
//! until every processor has passed through its scheduler: 5 to 25 ms (Linux 6.1, two processors),
//! longer than many a program runs that walks a directory and starts a thread before its first
//! pool. So a function in `.init_array` registers the process before `main`, if it has one thread
//! then; that is one system call. It decides nothing: the answer is still that of the first
//! [`register`], so a filter that a program installs in between is heard. A library that is loaded
//! by a process with threads cannot do that. There [`is_registered`] lets another thread wait for
//! the kernel.
//!
//! Miri interprets the C11 memory model, in which a fence in another thread's name has no meaning:
//! there, too, the answer is an open "unavailable" and the policies fall back to full fences.

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

/// Registers the process, the first time; the same answer ever after.
///
/// The first call may take milliseconds, if the process had threads when this library was loaded;
/// the others cost a load. No call waits for another: a process forked while a thread of its parent
/// registered is not left waiting for that thread. (Calls at once may all register, which the
/// kernel allows; the first answer is everybody's.)
///
/// # Errors
///
/// [`Unavailable`], where full fences must be used instead.
#[inline]
pub fn register() -> Result<(), Unavailable> {
    // Acquire: pairs with the release in `decide`; the process is registered before this thread's
    // first barrier.
    told(ANSWER.load(Ordering::Acquire)).unwrap_or_else(register_now)
}

/// Whether this process has the barrier by now, and has not lost it. If nobody has asked yet, asks,
/// and waits for nothing: if the kernel would take its time, another thread asks it, and the answer
/// is `true` once it has.
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

/// Whether it is known that this process has no barrier, or none any more. Once `true`, it stays
/// so. Asks nobody.
///
/// Wait-free: a load.
#[inline]
pub fn is_refused() -> bool {
    // Relaxed: who sees it fences more than is needed, at worst.
    !matches!(ANSWER.load(Ordering::Relaxed), UNKNOWN | REGISTERED)
}

/// Whether [`try_barrier`] may succeed in this thread: the process has the barrier, or has had it,
/// and the system has not refused one to this thread. (A thread never loses a seccomp filter.) If
/// nobody has asked yet, asks, as [`is_registered`] does.
///
/// Wait-free, a load, once there is an answer.
#[inline]
pub fn may_succeed() -> bool {
    // Acquire: as in `register`.
    match ANSWER.load(Ordering::Acquire) {
        UNKNOWN => ask(),
        REGISTERED => true,
        // Of a thread whose own words are gone it is not known: the next barrier tells.
        LOST | RETIRED => !REFUSED_HERE.try_with(Cell::get).unwrap_or(false),
        _ => false,
    }
}

/// Uses the process-wide barrier no more, in the whole process: for a program that will install a
/// seccomp filter against it, and for tests. What is made from now on uses full fences; split
/// deques that exist change over at their owners' next safe point, and until then a thief that
/// takes tasks of such an owner makes a barrier. Other deques that were made before go on to make
/// barriers as long as the system grants them, and task pools in any case: so call this before the
/// first of them is made, in particular if the filter kills or traps.
///
/// It cannot be undone. Wait-free: two exchanges.
pub fn switch_off() {
    switch_off_in(&ANSWER);
}

fn switch_off_in(process: &AtomicU8) {
    // In this order: "unknown" may become "registered", and nothing becomes "unknown".
    for (from, to) in [(UNKNOWN, OFF), (REGISTERED, RETIRED)] {
        // Release: pairs with the acquires of those that ask. Relaxed on failure: nothing is read.
        let _ = process.compare_exchange(from, to, Ordering::Release, Ordering::Relaxed);
    }
}

#[cold]
fn ask() -> bool {
    /// The process in which somebody has asked. A child that was forked since has lost the thread
    /// that did.
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let process = std::process::id();
    // Relaxed: it keeps others from asking again, and guards nothing.
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

/// What this process has been told; changes once it is not [`UNKNOWN`] only from [`REGISTERED`] to
/// [`LOST`] or [`RETIRED`].
static ANSWER: AtomicU8 = AtomicU8::new(if BUILT { UNKNOWN } else { NOT_BUILT });
/// Whether this build has the barrier. Where it has not, no one need ask.
const BUILT: bool =
    cfg!(all(any(target_os = "linux", windows), not(miri), not(feature = "portable")));
const UNKNOWN: u8 = 0;
const REGISTERED: u8 = 1;
const NOT_BUILT: u8 = 2;
const REFUSED: u8 = 3;
/// A barrier was refused to the registered process.
const LOST: u8 = 4;
/// Switched off in the registered process.
const RETIRED: u8 = 5;
/// Switched off before anybody asked.
const OFF: u8 = 6;

/// What an answer says, if it is one.
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

/// The process's answer, which is `own` if no other was there before.
fn decide(process: &AtomicU8, own: Result<(), Unavailable>) -> Result<(), Unavailable> {
    let word = match own {
        Ok(()) => REGISTERED,
        Err(Unavailable::NotBuilt) => NOT_BUILT,
        Err(Unavailable::Refused) => REFUSED,
        Err(Unavailable::Lost) => LOST,
        Err(Unavailable::SwitchedOff) => OFF,
    };
    // Release: pairs with the acquire in `register`. Acquire: as there, of the winner's
    // registration.
    match process.compare_exchange(UNKNOWN, word, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => own,
        Err(first) => told(first).unwrap_or(own),
    }
}

/// A full fence in every thread of this process, where [`register`] has answered `Ok`; a full fence
/// in this thread alone elsewhere, and while nobody has asked.
///
/// Costs one system call: about 0.1 us alone, 0.4 us when it must interrupt another processor.
/// Aborts the program if the system refuses it in spite of its answer, as a seccomp filter that is
/// installed later makes it do.
#[inline]
pub fn barrier() {
    if !try_barrier() {
        failed();
    }
}

/// [`barrier`], which says `false` where that would abort: the caller must do nothing then that
/// needs the barrier. From then on the process has none, for those that ask: [a barrier that fails
/// later](self#a-barrier-that-fails-later).
#[inline]
#[must_use = "if it is false there was no barrier"]
pub fn try_barrier() -> bool {
    // Acquire: as in `register`. Whoever relies on the barrier knows of an answer, and so does this
    // load.
    if matches!(ANSWER.load(Ordering::Acquire), REGISTERED | LOST | RETIRED) {
        return system::barrier() || lost();
    }
    atomic::fence(Ordering::SeqCst);
    true
}

thread_local! {
    /// Whether a barrier of this thread was refused.
    static REFUSED_HERE: Cell<bool> = const { Cell::new(false) };
}

/// The registered process was refused a barrier.
#[cold]
fn lost() -> bool {
    // A destructor of a thread's other words may come after this one is gone.
    let _ = REFUSED_HERE.try_with(|refused| refused.set(true));
    // Release: pairs with the acquires of those that ask. Relaxed on failure: it was lost or
    // switched off before.
    let _ = ANSWER.compare_exchange(REGISTERED, LOST, Ordering::Release, Ordering::Relaxed);
    false
}

#[cold]
fn failed() -> ! {
    /// Aborts when the panic below unwinds; its message has been printed then.
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

    /// Whether the process was registered before `main`.
    static EARLY: AtomicBool = AtomicBool::new(false);

    #[used]
    // SAFETY: the section holds pointers to functions of the C calling convention that the system's
    // loader calls before `main`, and this is one. The function touches only the kernel and a
    // static.
    #[unsafe(link_section = ".init_array")]
    static BEFORE_MAIN: extern "C" fn() = register_early;

    extern "C" fn register_early() {
        if is_alone() && membarrier(RegisterPrivateExpedited).is_ok() {
            // Relaxed: there is one thread.
            EARLY.store(true, Ordering::Relaxed);
        }
    }

    /// Whether this is the only thread of the process: a directory has two links and one for each
    /// below it.
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

    /// Whether the system says at once that there is no such barrier. A filter answers every
    /// command alike, as a rule.
    pub(super) fn refuses() -> bool {
        !membarrier_query().contains(MembarrierQuery::PRIVATE_EXPEDITED)
    }

    pub(super) fn barrier() -> bool {
        // Once a process is registered the command has no way to fail (its manual page, ERRORS) but
        // by a filter.
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
