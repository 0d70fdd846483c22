//! The resources that a thread has used: its processor time, and how often it waited.

use std::mem::MaybeUninit;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::sys::Spent;

/// What the calling thread has spent.
pub(super) fn spent() -> Option<Spent> {
    // The clock is exact; the times of `getrusage` are those of the last tick.
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let computed = Duration::new(time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?);
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the record may be written to, and is as large as the call takes it to be.
    let answer = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    if answer != 0 {
        return None;
    }
    // SAFETY: the call succeeded, so it has filled the record.
    let usage = unsafe { usage.assume_init() };
    Some(Spent { computed, waits: usage.ru_nvcsw.try_into().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_told_from_computing() {
        let before = spent().expect("Linux says so");
        std::thread::sleep(Duration::from_millis(1));
        let slept = spent().expect("Linux says so");
        assert!(slept.waits > before.waits);
        let mut number = 1_u64;
        while spent().expect("Linux says so").computed == slept.computed {
            number = std::hint::black_box(number.wrapping_mul(3));
        }
    }
}
