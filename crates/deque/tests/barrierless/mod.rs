//! The simulated machine, whose process-wide barrier does nothing: for models that must fail on it.

use poach_explore::Simulated;
use poach_memory::Memory;

#[derive(Clone, Copy)]
pub(crate) struct Barrierless;

// SAFETY: the simulated machine's but for its barrier, which is none on purpose: for these models alone, whose tasks
// are numbers.
unsafe impl Memory for Barrierless {
    type Word = <Simulated as Memory>::Word;
    type Pointer<T> = <Simulated as Memory>::Pointer<T>;
    type Cell<T> = <Simulated as Memory>::Cell<T>;

    fn full() {
        Simulated::full();
    }

    fn light() {}

    fn heavy() {}

    fn asymmetric() -> bool {
        true
    }

    fn pause() {
        Simulated::pause();
    }
}
