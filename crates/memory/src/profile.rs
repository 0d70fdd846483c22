//! A profile: a processor's measured store buffer, as a few lines of text.
//!
//! `poach measure` writes a profile. A program reads it and calls
//! [`Delta::measured`](crate::Delta::measured), which is unsafe: anybody can write such a text.
//!
//! ```text
//! poach-profile 1
//! processor GenuineIntel 6 47
//! capacity 32
//! bound 33
//! check 1d0bcf6bfb45d8a3
//! ```
//!
//! The last line is the FNV-1a sum of the text before it: a wrong digit would break a queue.

use core::fmt;
use core::num::NonZeroU64;
use core::str::FromStr;

use crate::delta::{Delta, hidden_pops};
use crate::processor::{Maker, Processor};

const HEAD: &str = "poach-profile 1";

/// A measured store buffer.
///
/// ```
/// use poach_memory::{Profile, delta::{Maker, Processor}};
///
/// let processor = Processor { maker: Maker::Intel, family: 6, model: 47 };
/// let profile = Profile::new(processor, 32, 33)?;
/// assert_eq!(profile.to_string().parse::<Profile>()?, profile);
/// # Ok::<(), poach_memory::profile::ProfileError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    processor: Processor,
    capacity: NonZeroU64,
    bound: NonZeroU64,
}

/// Why a text is not a profile, or not a profile of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProfileError {
    /// It does not begin with the line `poach-profile 1`.
    NotAProfile,
    /// A line is missing, changed, or too many.
    Damaged,
    /// A capacity of 0, or a bound not above it.
    Senseless {
        /// Entries.
        capacity: u64,
        /// Stores.
        bound: u64,
    },
    /// It was measured on another processor.
    Foreign {
        /// The processor that was measured.
        of: Processor,
        /// The processor that this program runs on, if it is known.
        here: Option<Processor>,
    },
    /// A bound is smaller than what was measured.
    TooSmall {
        /// The pops that the bound allows for.
        pops: u64,
        /// The pops that the profile's processor can hide.
        measured: u64,
    },
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProfileError::NotAProfile => {
                write!(f, "this is no profile of poach measure: one begins with \"{HEAD}\"")
            }
            ProfileError::Damaged => {
                f.write_str("the profile is damaged: measure again with poach measure all")
            }
            ProfileError::Senseless { capacity, bound } => write!(
                f,
                "a store buffer of {capacity} entries cannot have a reordering bound of {bound}"
            ),
            ProfileError::TooSmall { pops, measured } => write!(
                f,
                "a delta of {pops} is too small here: the profile shows that {measured} pops can be hidden"
            ),
            ProfileError::Foreign { of, here } => {
                let name = |f: &mut fmt::Formatter<'_>, p: &Processor| {
                    write!(f, "{:?} family {:#x} model {:#x}", p.maker, p.family, p.model)
                };
                f.write_str("the profile was measured on ")?;
                name(f, of)?;
                f.write_str(" and this is ")?;
                match here {
                    Some(here) => name(f, here)?,
                    None => f.write_str("another processor")?,
                }
                f.write_str(": measure here")
            }
        }
    }
}

impl core::error::Error for ProfileError {}

impl Profile {
    /// A profile of `processor`, with `capacity` entries and loads that overtake at most `bound`
    /// stores.
    ///
    /// # Errors
    ///
    /// [`ProfileError::Senseless`] if the capacity is 0, or the bound not above it.
    pub fn new(processor: Processor, capacity: u64, bound: u64) -> Result<Profile, ProfileError> {
        match (NonZeroU64::new(capacity), NonZeroU64::new(bound)) {
            (Some(entries), Some(stores)) if capacity < bound => {
                Ok(Profile { processor, capacity: entries, bound: stores })
            }
            _ => Err(ProfileError::Senseless { capacity, bound }),
        }
    }

    /// The processor that was measured.
    pub fn processor(&self) -> Processor {
        self.processor
    }

    /// Entries of the store buffer.
    pub fn capacity(&self) -> u64 {
        self.capacity.get()
    }

    /// The paper's S of TSO\[S\]: how many stores a load may overtake.
    pub fn bound(&self) -> u64 {
        self.bound.get()
    }

    /// Checks that this is a profile of the processor that this program runs on.
    ///
    /// # Errors
    ///
    /// [`ProfileError::Foreign`] if it is not, or if this processor is not known.
    pub fn check_here(&self) -> Result<(), ProfileError> {
        let here = Processor::here();
        if here == Some(self.processor) {
            Ok(())
        } else {
            Err(ProfileError::Foreign { of: self.processor, here })
        }
    }

    /// How many pops the measured processor can hide from a client with `stores` stores between two
    /// pops ([`hidden_pops`]). The program may run on another processor.
    pub fn pops(&self, stores: u64) -> NonZeroU64 {
        let egress = self.bound.get() - self.capacity.get();
        // Both were checked when the profile was made.
        hidden_pops(self.capacity.get(), egress, stores).unwrap_or(NonZeroU64::MAX)
    }

    fn body(&self) -> String {
        let Processor { maker, family, model } = self.processor;
        let maker = match maker {
            Maker::Amd => "AuthenticAMD",
            Maker::Intel => "GenuineIntel",
        };
        format!(
            "{HEAD}\nprocessor {maker} {family} {model}\ncapacity {}\nbound {}\n",
            self.capacity, self.bound
        )
    }
}

impl Delta {
    /// The bound on this processor, from a profile that was measured on it.
    ///
    /// The measured bound less the measured capacity counts as entries between the store buffer and
    /// the cache (`egress` of [`with_egress`](Delta::with_egress)).
    ///
    /// # Errors
    ///
    /// [`ProfileError::Foreign`] if the profile is another processor's.
    ///
    /// # Safety
    ///
    /// As [`with_egress`](Delta::with_egress), with the profile's capacity as `capacity`, and its
    /// bound less its capacity as `egress`. A virtual machine may be measured on one host and moved
    /// to another.
    pub unsafe fn measured(profile: &Profile, stores: u64) -> Result<Delta, ProfileError> {
        profile.check_here()?;
        let egress = profile.bound() - profile.capacity();
        // SAFETY: by this function's contract.
        let delta = unsafe { Delta::with_egress(profile.capacity(), egress, stores) };
        delta.map_err(|_| ProfileError::Damaged)
    }

    /// Checks that this bound is large enough by a profile of this processor.
    ///
    /// # Errors
    ///
    /// [`ProfileError::TooSmall`] if the profile's processor hides more pops from a client with the
    /// same number of stores between them. [`ProfileError::Foreign`] if the profile is another
    /// processor's.
    pub fn check(self, profile: &Profile) -> Result<(), ProfileError> {
        profile.check_here()?;
        self.covers(profile)
    }

    fn covers(self, profile: &Profile) -> Result<(), ProfileError> {
        let measured = profile.pops(self.stores()).get();
        if measured <= self.pops() {
            Ok(())
        } else {
            Err(ProfileError::TooSmall { pops: self.pops(), measured })
        }
    }
}

fn sum(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = self.body();
        writeln!(f, "{body}check {:016x}", sum(&body))
    }
}

impl FromStr for Profile {
    type Err = ProfileError;

    fn from_str(text: &str) -> Result<Profile, ProfileError> {
        if !text.starts_with(HEAD) {
            return Err(ProfileError::NotAProfile);
        }
        let profile = parse(text).ok_or(ProfileError::Damaged)??;
        // A profile has one spelling, so this finds any other difference.
        if profile.to_string().trim_end() == text.trim_end() {
            Ok(profile)
        } else {
            Err(ProfileError::Damaged)
        }
    }
}

fn parse(text: &str) -> Option<Result<Profile, ProfileError>> {
    let mut lines = text.lines().skip(1);
    let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
    let mut words = field("processor")?.split(' ');
    let maker = match words.next()? {
        "AuthenticAMD" => Maker::Amd,
        "GenuineIntel" => Maker::Intel,
        _ => return None,
    };
    let (family, model) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let (capacity, bound) = (field("capacity")?.parse().ok()?, field("bound")?.parse().ok()?);
    Some(Profile::new(Processor { maker, family, model }, capacity, bound))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Profile {
        let processor = Processor { maker: Maker::Intel, family: 6, model: 47 };
        Profile::new(processor, 32, 33).unwrap()
    }

    #[test]
    fn every_changed_byte_and_every_missing_end_is_found() {
        let text = sample().to_string();
        assert_eq!(text.parse(), Ok(sample()));
        for at in 0..text.trim_end().len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = if bytes[at] == b'7' { b'8' } else { b'7' };
            let changed = String::from_utf8(bytes).unwrap();
            assert!(changed.parse::<Profile>().is_err(), "{changed}");
            assert!(text[..at].parse::<Profile>().is_err(), "cut at {at}");
        }
        assert_eq!(format!("{text}more").parse::<Profile>(), Err(ProfileError::Damaged));
        assert_eq!("{}".parse::<Profile>(), Err(ProfileError::NotAProfile));
    }

    #[test]
    fn a_bound_within_the_capacity_is_refused() {
        let processor = sample().processor();
        for (capacity, bound) in [(0, 5), (32, 32), (32, 0)] {
            let refused = Profile::new(processor, capacity, bound);
            assert_eq!(refused, Err(ProfileError::Senseless { capacity, bound }));
        }
    }

    #[test]
    fn a_bound_is_checked_against_what_was_measured() {
        let pops = |pops| {
            // SAFETY: no queue is given it.
            unsafe { Delta::exactly(NonZeroU64::new(pops).unwrap()) }
        };
        // 32 entries and one: 17 with the queue's store between two pops.
        assert_eq!(pops(17).covers(&sample()), Ok(()));
        let refused = pops(16).covers(&sample()).unwrap_err();
        assert_eq!(refused, ProfileError::TooSmall { pops: 16, measured: 17 });
        assert!(refused.to_string().contains("too small"), "{refused}");
        let foreign = Processor { maker: Maker::Amd, family: 0x7f, model: 1 };
        let foreign = Profile::new(foreign, 32, 33).unwrap();
        assert!(matches!(pops(99).check(&foreign), Err(ProfileError::Foreign { .. })));
    }

    #[test]
    fn another_processors_profile_is_refused_by_name() {
        let processor = Processor { maker: Maker::Amd, family: 0x7f, model: 1 };
        let foreign = Profile::new(processor, 32, 33).unwrap();
        let said = foreign.check_here().unwrap_err().to_string();
        let text = "the profile was measured on Amd family 0x7f model 0x1 and this is ";
        assert!(said.starts_with(text), "{said}");
        // SAFETY: no policy is made with it.
        let delta = unsafe { Delta::measured(&foreign, 1) };
        assert!(matches!(delta, Err(ProfileError::Foreign { .. })), "{delta:?}");
    }
}
