//! Forks: what `include/poach/fork.h` does not do inline.
//!
//! A task stands in a slot of its worker's stack, as [`poach_runtime::foreign`] says. Its
//! descriptor is a [`poach_task`] of the C program's, whose first word is [`poach_run_stolen`]:
//! what a thief calls.

use std::ffi::{c_int, c_void};
use std::mem::offset_of;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use poach_deque::split::{PAYLOAD, PushError, layout};
use poach_runtime::{Worker, current_thread_index, foreign};

use crate::call::{call, check_frames, fatal};

/// Bytes of a slot that a task, and then its result, may use. They are aligned to 16.
pub const POACH_PAYLOAD: usize = 48;
/// A task stack begins at a multiple of this.
pub const POACH_STACK_ALIGN: usize = 134_217_728;
/// In a slot's task word while a task stands there.
pub const POACH_PRESENT: usize = 1;

/// A slot of a worker's stack of forks. Written by the functions of `poach/fork.h` alone, but for
/// the payload.
#[repr(C)]
pub struct poach_slot {
    /// The address of the task's `poach_task`, and `POACH_PRESENT`.
    pub task: usize,
    /// Zero; of a stolen task more, and odd once it is done.
    pub status: u64,
    /// What the task needs; then its result.
    pub payload: [u8; POACH_PAYLOAD],
}

/// The first words of a worker's stack: where the stack's limits are at the time.
#[repr(C)]
pub struct poach_stack {
    /// A push at this slot or above it is more than a few stores.
    pub limit: usize,
    /// A pop below this slot is more than a store and a load.
    pub floor: usize,
}

/// A worker of a pool, as a value: the address of the first free slot of its stack. A callback's
/// parameter; `poach_fork_push` gives the worker above the pushed task. It belongs to its thread,
/// and to the innermost fork.
pub type poach_worker = poach_slot;

/// What a task is: one constant object each, which lasts as long as the program's code.
#[repr(C)]
pub struct poach_task {
    /// `poach_run_stolen`, always.
    pub run: Option<unsafe extern "C" fn(task: *mut poach_slot, worker: *mut poach_worker)>,
    /// Runs the task in `task`, as a worker of the thief's, and leaves the result in the slot's
    /// payload.
    pub body: Option<unsafe extern "C-unwind" fn(task: *mut poach_slot, worker: *mut poach_worker)>,
}

const _: () = assert!(POACH_PAYLOAD == PAYLOAD && POACH_PRESENT == layout::PRESENT);
const _: () = assert!(
    size_of::<poach_slot>() == layout::SLOT && offset_of!(poach_slot, task) == layout::TASK
);
const _: () = assert!(offset_of!(poach_slot, payload) == layout::PAYLOAD);
const _: () = assert!(offset_of!(poach_stack, limit) == layout::LIMIT);
const _: () = assert!(offset_of!(poach_stack, floor) == layout::FLOOR);
#[cfg(target_pointer_width = "64")]
const _: () = assert!(POACH_STACK_ALIGN == layout::ALIGN);

/// A worker's address, as C has it.
#[expect(clippy::needless_pass_by_value, reason = "the token is given up for its address")]
pub(crate) fn address(worker: Worker<'_>) -> *mut poach_worker {
    foreign::slot_of(&worker).as_ptr().cast()
}

/// A body of the program's with its context, as what is run with a worker.
pub(crate) type Run<'r> = dyn Fn(Worker<'_>) + Sync + 'r;

/// A body of the program's is run with this worker, which must have no task left of its own
/// afterwards.
pub(crate) fn run_body(
    body: unsafe extern "C-unwind" fn(*mut poach_worker, *mut c_void),
    worker: *mut poach_worker,
    context: *mut c_void,
) {
    // SAFETY: who passed the body says that it may be called with the context on this thread, whose
    // worker it is.
    call(|| unsafe { body(worker, context) });
    // SAFETY: the worker's first free slot, which its stack keeps ready.
    let left = unsafe { (*worker).task } & POACH_PRESENT != 0;
    if left {
        fatal("a task returned with a fork that it has not popped: each SPAWN needs its SYNC");
    }
}

/// What a thief calls: the first word of every `poach_task`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_run_stolen(task: *mut poach_slot, worker: *mut poach_worker) {
    // SAFETY: the runtime calls it with a slot that it has stolen.
    let word = unsafe { &raw mut (*task).task };
    // SAFETY: it points to a slot that was stolen; while the task runs, both sides access the word
    // by atomic operations alone.
    let word = unsafe { AtomicUsize::from_ptr(word) };
    // Relaxed: the steal has acquired the push. The owner may take the mark off at the same time,
    // by `poach_fork_pop`.
    let word = word.load(Ordering::Relaxed);
    // SAFETY: the word is the address of a `poach_task`, since this is called through one, and
    // perhaps the mark.
    let descriptor = unsafe { &*((word & !POACH_PRESENT) as *const poach_task) };
    let Some(body) = descriptor.body else { fatal("a poach_task has no body") };
    // SAFETY: the body takes the task and a worker of this thread.
    call(|| unsafe { body(task, worker) });
    // SAFETY: the worker's first free slot, which its stack keeps ready.
    let left = unsafe { (*worker).task } & POACH_PRESENT != 0;
    if left {
        fatal(
            "a stolen task returned with a fork that it has not popped: each SPAWN needs its SYNC",
        );
    }
}

/// The rest of a push whose slot is not below the limit: the worker above, or NULL where the stack
/// is full, and the slot is free again. For `poach_fork_push` alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_fork_at_limit(slot: *mut poach_slot) -> *mut poach_worker {
    check_frames();
    let Some(place) = NonNull::new(slot) else { fatal("a fork at a worker that is NULL") };
    // SAFETY: the caller owns the stack and has just written a task to the slot.
    match unsafe { foreign::push_at_limit(place.cast()) } {
        Ok(()) => slot.wrapping_add(1),
        Err(PushError::Full { .. }) => std::ptr::null_mut(),
        Err(error) => fatal(&error.to_string()),
    }
}

/// The rest of a pop whose slot is below the floor: 1 if the task is the caller's to run, 0 if a
/// thief has run it. For `poach_fork_pop` alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_fork_at_floor(slot: *mut poach_slot) -> c_int {
    check_frames();
    let Some(place) = NonNull::new(slot) else { fatal("a pop at a worker that is NULL") };
    // SAFETY: the caller owns the stack and has unset the mark of its topmost task.
    c_int::from(unsafe { foreign::pop_at_floor(place.cast()) })
}

/// The same two for the header's inline code, which calls them with the slot in `rax` and gets the
/// result there: all other registers but those of the x87 and of vectors are as they were. The
/// stack pointer may be anything that is a multiple of 8.
#[cfg(all(target_arch = "x86_64", unix, not(target_vendor = "apple")))]
macro_rules! saving {
    ($name:literal, $function:path) => {
        std::arch::global_asm!(
            concat!(".globl ", $name),
            concat!(".type ", $name, ", @function"),
            concat!($name, ":"),
            ".cfi_startproc",
            "push rbp",
            ".cfi_def_cfa_offset 16",
            ".cfi_offset rbp, -16",
            "mov rbp, rsp",
            ".cfi_def_cfa_register rbp",
            "push rcx", "push rdx", "push rsi", "push rdi", "push r8", "push r9", "push r10", "push r11",
            "and rsp, -16",
            "mov rdi, rax",
            "call {function}",
            "lea rsp, [rbp - 64]",
            "pop r11", "pop r10", "pop r9", "pop r8", "pop rdi", "pop rsi", "pop rdx", "pop rcx",
            "pop rbp",
            ".cfi_def_cfa rsp, 8",
            "ret",
            ".cfi_endproc",
            concat!(".size ", $name, ", . - ", $name),
            function = sym $function,
        );
    };
}

#[cfg(all(target_arch = "x86_64", unix, not(target_vendor = "apple")))]
saving!("poach_fork_at_limit_saving", poach_fork_at_limit);
#[cfg(all(target_arch = "x86_64", unix, not(target_vendor = "apple")))]
saving!("poach_fork_at_floor_saving", poach_fork_at_floor);

/// Ends the process with a message: the functions of `poach/fork.h` found something other than they
/// must. `pushing` is what they did.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_fork_misused(slot: *const poach_slot, pushing: c_int) -> ! {
    check_frames();
    let what = match (slot.is_null(), pushing != 0) {
        (true, _) => "a fork at a worker that is NULL",
        (_, true) => {
            "a fork below the top of the task stack: fork with the worker that the innermost fork or callback gave, and on its thread"
        }
        (_, false) => "sync without spawn: the topmost task is not the one that is popped",
    };
    fatal(what)
}

/// Ends the process with a message: a task was to be pushed where that cannot be refused, and the
/// stack is full.
#[unsafe(no_mangle)]
pub extern "C" fn poach_fork_overflow() -> ! {
    fatal("the task stack is full: recurse less deeply, or make the pool with a larger task stack")
}

/// The worker that the calling thread is; NULL if it is none. `poach_run` and the callbacks give it
/// without asking.
#[unsafe(no_mangle)]
pub extern "C" fn poach_current_worker() -> *mut poach_worker {
    check_frames();
    match current_thread_index() {
        Some(_) => poach_runtime::worker(|worker| Sent(address(worker))).0,
        None => std::ptr::null_mut(),
    }
}

/// This thread's own worker, which comes back to this thread.
struct Sent(*mut poach_worker);

// SAFETY: it is made and used on one thread: that of the worker itself.
unsafe impl Send for Sent {}

/// The calling thread's index in its pool, from 0; -1 if it is no worker.
#[unsafe(no_mangle)]
pub extern "C" fn poach_current_index() -> isize {
    current_thread_index().map_or(-1, |index| index as isize)
}

/// The index of a worker in its pool, from 0. The worker is the calling thread's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_worker_index(worker: *const poach_worker) -> isize {
    let Some(place) = NonNull::new(worker.cast_mut()) else { return -1 };
    // SAFETY: the calling thread's worker, by this function's contract.
    unsafe { foreign::worker_at(place.cast()) }.index() as isize
}
