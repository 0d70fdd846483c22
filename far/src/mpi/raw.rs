//! The calls of MPI's C interface that rsmpi does not wrap safely: sends whose buffers this module
//! keeps, and windows.
//!
//! All unsafe code of the crate is here. The invariants that the blocks cite:
//!
//! - **Initialised**: a [`Port`] is made from a communicator of a running MPI, and is dropped
//!   before MPI is finalised (the [`Link`](super::Link) that holds it is a field of the `World`
//!   before the one that finalises).
//! - **One at a time**: MPI was initialised with `MPI_THREAD_SERIALIZED` at least, and each call is
//!   made through `&mut`, so no two threads are in MPI at a time through a port.
//! - **Kept**: what a pending operation reads and writes is on the heap, and is neither touched nor
//!   freed before the request is complete; where MPI fails, it is never freed.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

use mpi::ffi;
use mpi::raw::AsRaw as _;
use mpi::topology::SimpleCommunicator;
use mpi::traits::Communicator as _;

use crate::transport::Word;

/// The tag of all messages.
const TAG: c_int = 1;

/// A communicator of this crate's own, with its pending sends.
pub(crate) struct Port {
    comm: SimpleCommunicator,
    pending: Vec<Pending>,
}

// SAFETY: MPI's handles are integers or pointers to what MPI guards itself; with
// MPI_THREAD_SERIALIZED any thread may use them, one at a time, and `&mut` is what lets one.
unsafe impl Send for Port {}

/// A send under way.
struct Pending {
    request: ffi::MPI_Request,
    /// Not touched before the request is complete.
    _bytes: Box<[u8]>,
}

fn check(code: c_int, doing: &str) -> Result<(), String> {
    if code == ffi::MPI_SUCCESS as c_int {
        Ok(())
    } else {
        Err(format!("MPI cannot {doing}: error {code}"))
    }
}

/// Whether an operation is complete, as of now.
///
/// # Safety
///
/// MPI is initialised, no other call of it is made meanwhile, and the request is of an operation
/// that was begun and was not complete.
unsafe fn is_complete(request: &mut ffi::MPI_Request, doing: &str) -> Result<bool, String> {
    let mut done = 0;
    // SAFETY: the caller's promise; no status is asked for.
    let code = unsafe { ffi::MPI_Test(request, &raw mut done, ffi::RSMPI_STATUS_IGNORE) };
    check(code, doing)?;
    Ok(done != 0)
}

impl Drop for Port {
    /// Keeps what MPI may still read (Kept): sends are left only where it has failed, or where
    /// nobody has waited for their end.
    fn drop(&mut self) {
        std::mem::forget(std::mem::take(&mut self.pending));
    }
}

impl Port {
    /// On a communicator that nothing else uses. Errors of it are returned from now on, and do not
    /// end the program.
    pub(crate) fn new(comm: SimpleCommunicator) -> Port {
        // SAFETY: Initialised; the handler is one of MPI's own constants.
        let errhandler = unsafe { ffi::RSMPI_ERRORS_RETURN };
        // SAFETY: Initialised, One at a time; both handles are valid.
        unsafe { ffi::MPI_Comm_set_errhandler(comm.as_raw(), errhandler) };
        Port { comm, pending: Vec::new() }
    }

    /// The communicator, for what rsmpi wraps.
    pub(crate) fn comm(&self) -> &SimpleCommunicator {
        &self.comm
    }

    /// Tells all ranks a byte, and waits for theirs. With a time limit it waits no longer than
    /// that, and then returns none. Collective. While it waits it gives the processor away, which
    /// MPI's own waiting does not.
    pub(crate) fn exchange(
        &mut self,
        own: u8,
        patience: Option<Duration>,
    ) -> Result<Option<Box<[u8]>>, String> {
        let mut all = vec![0; self.comm.size() as usize].into_boxed_slice();
        let own = Box::new(own);
        // SAFETY: constants of a running MPI (Initialised).
        let (byte, mut request) = unsafe { (ffi::RSMPI_UINT8_T, ffi::RSMPI_REQUEST_NULL) };
        // SAFETY: Initialised, One at a time; `own` is a byte and `all` one of each rank, and both
        // live until the request is complete (Kept).
        let code = unsafe {
            ffi::MPI_Iallgather(
                ptr::from_ref(&*own).cast(),
                1,
                byte,
                all.as_mut_ptr().cast(),
                1,
                byte,
                self.comm.as_raw(),
                &raw mut request,
            )
        };
        check(code, "begin to hear from all ranks")?;
        let began = Instant::now();
        for round in 0u32.. {
            // SAFETY: Initialised, One at a time; the request is not complete.
            match unsafe { is_complete(&mut request, "hear from all ranks") } {
                Ok(true) => return Ok(Some(all)),
                Ok(false) => {}
                Err(error) => {
                    // Kept: see below.
                    std::mem::forget((own, all));
                    return Err(error);
                }
            }
            if patience.is_some_and(|patience| began.elapsed() > patience) {
                // Kept, for as long as the program runs: MPI may still write there.
                std::mem::forget((own, all));
                return Ok(None);
            }
            if round < 256 {
                thread::yield_now();
            } else {
                thread::sleep(Duration::from_micros(50));
            }
        }
        unreachable!("there are more rounds than anybody waits for")
    }

    /// Begins to send.
    pub(crate) fn send(&mut self, to: usize, bytes: Vec<u8>) -> Result<(), String> {
        self.reap()?;
        let bytes = bytes.into_boxed_slice();
        let count = c_int::try_from(bytes.len())
            .map_err(|_| format!("a message of {} bytes is too long for MPI", bytes.len()))?;
        // SAFETY: a constant of a running MPI (Initialised).
        let (byte, mut request) = unsafe { (ffi::RSMPI_UINT8_T, ffi::RSMPI_REQUEST_NULL) };
        // SAFETY: Initialised, One at a time; `bytes` has `count` bytes and lives until the request
        // is complete (Kept).
        let code = unsafe {
            ffi::MPI_Isend(
                bytes.as_ptr().cast(),
                count,
                byte,
                to as c_int,
                TAG,
                self.comm.as_raw(),
                &raw mut request,
            )
        };
        check(code, "send")?;
        self.pending.push(Pending { request, _bytes: bytes });
        Ok(())
    }

    /// How many sends are not complete.
    pub(crate) fn pending(&mut self) -> Result<usize, String> {
        self.reap()?;
        Ok(self.pending.len())
    }

    /// Forgets the sends that are complete.
    fn reap(&mut self) -> Result<(), String> {
        let mut outcome = Ok(());
        self.pending.retain_mut(|pending| {
            // SAFETY: Initialised, One at a time; the request is one of `MPI_Isend`'s that was not
            // complete.
            let complete = unsafe { is_complete(&mut pending.request, "finish a send") };
            complete.map_or_else(
                |error| {
                    outcome = Err(error);
                    true
                },
                |complete| !complete,
            )
        });
        outcome
    }

    /// A message that has arrived.
    pub(crate) fn receive(&mut self) -> Result<Option<(usize, Vec<u8>)>, String> {
        // SAFETY: constants of a running MPI (Initialised).
        let (any, byte, mut message) =
            unsafe { (ffi::RSMPI_ANY_SOURCE, ffi::RSMPI_UINT8_T, ffi::RSMPI_MESSAGE_NULL) };
        let mut arrived = 0;
        // SAFETY: a status is plain numbers, for which zeros are values.
        let mut status: ffi::MPI_Status = unsafe { std::mem::zeroed() };
        // SAFETY: Initialised, One at a time; the three places are written to and live for the
        // call.
        let code = unsafe {
            ffi::MPI_Improbe(
                any,
                TAG,
                self.comm.as_raw(),
                &raw mut arrived,
                &raw mut message,
                &raw mut status,
            )
        };
        check(code, "look for a message")?;
        if arrived == 0 {
            return Ok(None);
        }
        let mut count = 0;
        // SAFETY: the status was written by the probe; `count` lives for the call.
        let code = unsafe { ffi::MPI_Get_count(&raw const status, byte, &raw mut count) };
        check(code, "tell how long a message is")?;
        let mut bytes = vec![0; count as usize];
        // SAFETY: Initialised, One at a time; the message was matched by the probe and is received
        // once; `bytes` has `count` bytes; no status is asked for.
        let code = unsafe {
            ffi::MPI_Mrecv(
                bytes.as_mut_ptr().cast(),
                count,
                byte,
                &raw mut message,
                ffi::RSMPI_STATUS_IGNORE,
            )
        };
        check(code, "receive")?;
        Ok(Some((status.MPI_SOURCE as usize, bytes)))
    }
}

/// A window: two words and some slots on each rank, in one passive epoch from its making to its
/// end.
pub(crate) struct Window {
    raw: ffi::MPI_Win,
    slots: usize,
    /// Those of all slots can be counted by a [`ffi::MPI_Aint`], and those of one by a [`c_int`].
    slot_bytes: usize,
}

// SAFETY: as of `Port`.
unsafe impl Send for Window {}

/// Where the slots begin: the two words have a cache line each.
const SLOTS_AT: usize = 128;

/// Bytes that an encoded parcel takes beside its tasks, at most: two numbers of postcard's.
const PARCEL_HEAD: usize = 16;

/// The bytes of a slot for parcels of the given size, and of a window of the given number of slots.
/// `None` if MPI cannot count them.
fn sizes(slots: usize, parcel_bytes: usize) -> Option<(usize, usize, ffi::MPI_Aint)> {
    let slot = parcel_bytes.checked_add(PARCEL_HEAD)?;
    c_int::try_from(slot).ok()?;
    let bytes = slots.checked_mul(slot)?.checked_add(SLOTS_AT)?;
    Some((slot, bytes, bytes.try_into().ok()?))
}

/// How often a rank looks for the end of an operation before it sleeps between two looks, and for
/// how long.
const LOOKS: u32 = 64;
const NAP: Duration = Duration::from_micros(20);

fn word_at(word: Word) -> ffi::MPI_Aint {
    match word {
        Word::Ends => 0,
        Word::Copied => 64,
    }
}

/// Waits until an operation on a rank's window is done, and returns the places that it reads and
/// writes. If MPI fails they are kept for as long as the program runs, since it may still write
/// there.
///
/// Where the network needs that rank's doing, it answers when it looks at the network next, some 50
/// us later; or some milliseconds later, if it has no processor. So the thread sleeps between two
/// looks, and leaves its processor to that rank.
///
/// # Safety
///
/// As of [`is_complete`]; and the operation accesses no other memory of this program than that of
/// `places`, which is on the heap.
unsafe fn complete<P>(mut request: ffi::MPI_Request, places: P, doing: &str) -> Result<P, String> {
    for round in 0u32.. {
        // SAFETY: the caller's promise.
        match unsafe { is_complete(&mut request, doing) } {
            Ok(true) => break,
            Ok(false) => {}
            Err(error) => {
                std::mem::forget(places);
                return Err(error);
            }
        }
        if round >= LOOKS {
            thread::sleep(NAP);
        }
    }
    Ok(places)
}

impl Window {
    /// Makes a window on all ranks of a communicator, for parcels of the given size in bytes.
    /// Collective: each rank must call it, with the same numbers.
    pub(crate) fn new(
        port: &mut Port,
        slots: usize,
        parcel_bytes: usize,
    ) -> Result<Window, String> {
        let (slot_bytes, bytes, size) = sizes(slots, parcel_bytes).ok_or_else(|| {
            format!("a window for parcels of {parcel_bytes} bytes is too large for MPI")
        })?;
        // SAFETY: constants of a running MPI (Initialised).
        let (info, mut raw) = unsafe { (ffi::RSMPI_INFO_NULL, ffi::RSMPI_WIN_NULL) };
        let mut base: *mut c_void = ptr::null_mut();
        // SAFETY: Initialised, One at a time; MPI writes the address of `bytes` bytes to `base` and
        // the handle to `raw`.
        let code = unsafe {
            ffi::MPI_Win_allocate(
                size,
                1,
                info,
                port.comm.as_raw(),
                (&raw mut base).cast(),
                &raw mut raw,
            )
        };
        check(code, &format!("make a window of {bytes} bytes"))?;
        // SAFETY: MPI has just allocated `bytes` bytes there, and no other rank knows the window
        // before the barrier that the caller waits in.
        unsafe { ptr::write_bytes(base.cast::<u8>(), 0, bytes) };
        // SAFETY: One at a time; the window is whole.
        check(unsafe { ffi::MPI_Win_lock_all(0, raw) }, "open a window")?;
        // SAFETY: One at a time; the window is locked by `lock_all`. It makes the zeros seen by
        // operations of others.
        check(unsafe { ffi::MPI_Win_sync(raw) }, "open a window")?;
        Ok(Window { raw, slots, slot_bytes })
    }

    /// Where a slot begins, which lies in the window with all of its bytes: their number was no
    /// overflow when the window was made.
    fn slot_at(&self, slot: usize) -> ffi::MPI_Aint {
        assert!(slot < self.slots, "slot {slot} of {}", self.slots);
        (SLOTS_AT + slot * self.slot_bytes) as ffi::MPI_Aint
    }

    /// See [`Transport`](crate::transport::Transport).
    pub(crate) fn fetch_add(
        &mut self,
        rank: usize,
        word: Word,
        number: u64,
    ) -> Result<u64, String> {
        // SAFETY: constants of a running MPI (Initialised).
        let (unsigned, sum, mut request) =
            unsafe { (ffi::RSMPI_UINT64_T, ffi::RSMPI_SUM, ffi::RSMPI_REQUEST_NULL) };
        let mut places = Box::new((number, 0u64));
        // SAFETY: One at a time; the window is locked; both places live until the request is
        // complete (Kept); the word lies in the window.
        let code = unsafe {
            ffi::MPI_Rget_accumulate(
                (&raw const places.0).cast(),
                1,
                unsigned,
                (&raw mut places.1).cast(),
                1,
                unsigned,
                rank as c_int,
                word_at(word),
                1,
                unsigned,
                sum,
                self.raw,
                &raw mut request,
            )
        };
        check(code, "reach a window")?;
        // SAFETY: Initialised, One at a time; the request was begun just now, with these places.
        let places = unsafe { complete(request, places, "reach a window") }?;
        Ok(places.1)
    }

    /// See [`Transport`](crate::transport::Transport).
    pub(crate) fn get(&mut self, rank: usize, slot: usize) -> Result<Vec<u8>, String> {
        // SAFETY: constants of a running MPI (Initialised).
        let (byte, mut request) = unsafe { (ffi::RSMPI_UINT8_T, ffi::RSMPI_REQUEST_NULL) };
        let at = self.slot_at(slot);
        let mut bytes = vec![0u8; self.slot_bytes];
        // SAFETY: One at a time; the window is locked; `bytes` has a slot's bytes and lives until
        // the request is complete (Kept); the slot lies in the window (`slot_at`).
        let code = unsafe {
            ffi::MPI_Rget(
                bytes.as_mut_ptr().cast(),
                self.slot_bytes as c_int,
                byte,
                rank as c_int,
                at,
                self.slot_bytes as c_int,
                byte,
                self.raw,
                &raw mut request,
            )
        };
        check(code, "read a window")?;
        // SAFETY: Initialised, One at a time; the request was begun just now, with these bytes.
        unsafe { complete(request, bytes, "read a window") }
    }

    /// See [`Transport`](crate::transport::Transport); `rank` is this rank.
    pub(crate) fn put(&mut self, rank: usize, slot: usize, bytes: &[u8]) -> Result<(), String> {
        assert!(
            bytes.len() <= self.slot_bytes,
            "{} bytes for a slot of {}",
            bytes.len(),
            self.slot_bytes
        );
        let at = self.slot_at(slot);
        // SAFETY: a constant of a running MPI (Initialised).
        let byte = unsafe { ffi::RSMPI_UINT8_T };
        // SAFETY: One at a time; the window is locked; `bytes` lives until the flush, and fits into
        // the slot, which lies in the window (`slot_at`).
        let code = unsafe {
            ffi::MPI_Put(
                bytes.as_ptr().cast(),
                bytes.len() as c_int,
                byte,
                rank as c_int,
                at,
                bytes.len() as c_int,
                byte,
                self.raw,
            )
        };
        check(code, "write to a window")?;
        // SAFETY: One at a time; the window is locked by `lock_all`.
        check(unsafe { ffi::MPI_Win_flush(rank as c_int, self.raw) }, "write to a window")
    }

    /// Frees it. Collective: each rank must call it.
    pub(crate) fn free(mut self) {
        // SAFETY: One at a time; the window was locked by `lock_all`, and no operation is under
        // way.
        unsafe { ffi::MPI_Win_unlock_all(self.raw) };
        // SAFETY: One at a time; the window is not locked, and is not used after this.
        unsafe { ffi::MPI_Win_free(&raw mut self.raw) };
    }
}
