//! A recording that is forgotten: it keeps its pool's workers as long as the program lasts. Miri,
//! which sees all the rest, looks for no leaks here.

#![forbid(unsafe_code)]

use poach_runtime::ThreadPool;

#[test]
fn a_recording_that_is_forgotten_goes_on() {
    let pool = ThreadPool::builder().num_threads(2).build().unwrap();
    std::mem::forget(pool.record(10).unwrap());
    assert_eq!(pool.run(|_| poach_runtime::join(|| 1, || 2)), (1, 2));
    assert!(pool.record(10).is_err(), "the one before was forgotten");
}
