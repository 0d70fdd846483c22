//! The facts that are kept of an entry beside its name and sizes, if they are asked for.

use crate::sys::Meta;

/// When an entry was changed, whose it is, and its mode; 18 bytes, kept if
/// [`Options::keep_facts`](crate::Options) says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
// Packed, because an entry of many would otherwise take 24 bytes.
#[repr(Rust, packed(2))]
pub struct Facts {
    modified: i64,
    owner: u32,
    group: u32,
    mode: u16,
}

const _: () = assert!(size_of::<Facts>() == 18);

impl Facts {
    #[inline]
    pub(crate) fn of(meta: &Meta) -> Facts {
        let Meta { modified, owner, group, .. } = *meta;
        Facts { modified, owner, group, mode: meta.mode as u16 }
    }

    /// When its content was last changed, in seconds since 1970.
    pub fn modified(&self) -> i64 {
        self.modified
    }

    /// Its type and permissions, as Unix numbers them; 0 where the system does not say.
    pub fn mode(&self) -> u16 {
        self.mode
    }

    /// The number of the user that owns it; 0 where the system does not say.
    pub fn owner(&self) -> u32 {
        self.owner
    }

    /// The number of the group that owns it; 0 where the system does not say.
    pub fn group(&self) -> u32 {
        self.group
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    #[test]
    fn what_is_packed_is_read_back() {
        for modified in [0, -1, 1_700_000_000, i64::MIN, i64::MAX] {
            for mode in [0, 0o100_644, 0xffff] {
                let meta =
                    Meta { modified, mode, owner: 7, group: u32::MAX, ..Meta::of(Kind::File) };
                let facts = Facts::of(&meta);
                assert_eq!((facts.modified(), u32::from(facts.mode())), (modified, mode));
                assert_eq!((facts.owner(), facts.group()), (7, u32::MAX));
            }
        }
    }
}
