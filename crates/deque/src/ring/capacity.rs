//! How many slots a queue can be asked for.

use core::fmt;

/// The most slots that a ring can have: 2^30, so that 32-bit indices tell ahead from behind.
pub(crate) const MAX_CAPACITY: usize = 1 << 30;

/// Slots that a queue starts with where the caller does not say.
pub(crate) const DEFAULT_CAPACITY: usize = 64;

/// Why a queue cannot be made with the capacity asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CapacityError {
    /// A queue needs at least one slot to start with.
    Zero,
    /// Slots are found by masking an index, which wants a power of two.
    NotPowerOfTwo(usize),
    /// More than 2^30 slots.
    TooLarge(usize),
    /// The memory for the slots cannot be had.
    OutOfMemory(usize),
}

impl fmt::Display for CapacityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CapacityError::Zero => {
                f.write_str("a queue's capacity cannot be 0: ask for at least 1")
            }
            CapacityError::NotPowerOfTwo(asked) => write!(
                f,
                "a queue's capacity must be a power of two, and {asked} is not: ask for {}",
                asked.checked_next_power_of_two().map_or(MAX_CAPACITY, |c| c.min(MAX_CAPACITY))
            ),
            CapacityError::TooLarge(asked) => write!(
                f,
                "a queue's capacity can be at most {MAX_CAPACITY} (2^30), and {asked} is more"
            ),
            CapacityError::OutOfMemory(asked) => {
                write!(
                    f,
                    "no memory for a queue of {asked} slots: ask for fewer, it grows as needed"
                )
            }
        }
    }
}

impl std::error::Error for CapacityError {}

pub(crate) fn check_capacity(capacity: usize) -> Result<(), CapacityError> {
    match capacity {
        0 => Err(CapacityError::Zero),
        _ if !capacity.is_power_of_two() => Err(CapacityError::NotPowerOfTwo(capacity)),
        _ if capacity > MAX_CAPACITY => Err(CapacityError::TooLarge(capacity)),
        _ => Ok(()),
    }
}

/// The capacity of the next ring, if a ring may have twice as many slots.
pub(super) fn doubled(capacity: usize) -> Option<usize> {
    (capacity < MAX_CAPACITY).then(|| capacity * 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_capacity_may_be_had_and_no_larger_one() {
        assert_eq!(check_capacity(MAX_CAPACITY), Ok(()));
        assert_eq!(
            check_capacity(2 * MAX_CAPACITY),
            Err(CapacityError::TooLarge(2 * MAX_CAPACITY))
        );
    }

    #[test]
    fn a_ring_doubles_up_to_the_largest_capacity() {
        assert_eq!(doubled(1), Some(2));
        assert_eq!(doubled(MAX_CAPACITY / 2), Some(MAX_CAPACITY));
        assert_eq!(doubled(MAX_CAPACITY), None);
    }
}
