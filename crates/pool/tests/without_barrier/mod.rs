//! The simulated machine on a system that has no process-wide barrier: both ends of an asymmetric fence are full ones.

use poach_explore::{Simulated, SimulatedCell, SimulatedPointer, SimulatedWord};
use poach_memory::{Freed, Memory};

#[derive(Debug)]
pub(crate) struct WithoutBarrier;

// SAFETY: the simulated machine's, which says that it has no barrier, and whose barrier is never asked for.
unsafe impl Memory for WithoutBarrier {
    type Word = SimulatedWord;
    type Pointer<T> = SimulatedPointer<T>;
    type Cell<T> = SimulatedCell<T>;

    #[track_caller]
    fn full() {
        Simulated::full();
    }

    fn light() {}

    #[track_caller]
    fn heavy() {
        Simulated::full();
    }

    fn asymmetric() -> bool {
        false
    }

    #[track_caller]
    fn pause() {
        Simulated::pause();
    }

    #[track_caller]
    fn free(object: Freed) {
        Simulated::free(object);
    }
}
