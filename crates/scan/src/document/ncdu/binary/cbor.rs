//! As much of CBOR (RFC 8949) as the format needs: heads of values, and how to pass over a value.

/// The upper three bits of a value's first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Major {
    Positive,
    /// Minus one minus the argument.
    Negative,
    Bytes,
    Text,
    Array,
    Map,
    Tag,
    Simple,
}

const MAJORS: [Major; 8] = [
    Major::Positive,
    Major::Negative,
    Major::Bytes,
    Major::Text,
    Major::Array,
    Major::Map,
    Major::Tag,
    Major::Simple,
];

pub(super) const FALSE: u64 = 20;
pub(super) const TRUE: u64 = 21;
/// In the lower five bits: as many parts as come before [`BREAK`].
const INDEFINITE: u8 = 0x1f;
pub(super) const BREAK: u8 = 0xff;
pub(super) const BEGIN_MAP: u8 = 0xbf;
/// The deepest nesting of values. ncdu nests none in an item's map.
const DEEPEST: usize = 1000;

/// Appends a value's head.
pub(super) fn head(major: Major, argument: u64, out: &mut Vec<u8>) {
    let major = (major as u8) << 5;
    let bytes = argument.to_be_bytes();
    match argument {
        0..=23 => out.push(major | argument as u8),
        24..=0xff => out.extend([major | 0x18, bytes[7]]),
        0x100..=0xffff => {
            out.push(major | 0x19);
            out.extend(&bytes[6..]);
        }
        0x1_0000..=0xffff_ffff => {
            out.push(major | 0x1a);
            out.extend(&bytes[4..]);
        }
        _ => {
            out.push(major | 0x1b);
            out.extend(bytes);
        }
    }
}

/// A value's head that was read. Without an argument its parts come before a [`BREAK`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) major: Major,
    pub(super) argument: Option<u64>,
}

impl Head {
    /// The number, if it is one.
    pub(super) fn number(self) -> Option<i128> {
        let argument = i128::from(self.argument?);
        match self.major {
            Major::Positive => Some(argument),
            Major::Negative => Some(-1 - argument),
            _ => None,
        }
    }

    fn is_break(self) -> bool {
        self.major == Major::Simple && self.argument.is_none()
    }
}

/// Values in a row. Every method returns none where the bytes end too early or are no CBOR.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values<'a>(pub(super) &'a [u8]);

impl<'a> Values<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn head(&mut self) -> Option<Head> {
        let first = self.take(1)?[0];
        let major = MAJORS[usize::from(first >> 5)];
        let argument = match first & 31 {
            short @ 0..=0x17 => Some(u64::from(short)),
            size @ 0x18..=0x1b => {
                let bytes = self.take(1 << (size - 0x18))?;
                Some(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
            }
            INDEFINITE if !matches!(major, Major::Positive | Major::Negative | Major::Tag) => None,
            _ => return None,
        };
        Some(Head { major, argument })
    }

    /// The bytes of a string whose head was read.
    pub(super) fn string(&mut self, head: Head) -> Option<&'a [u8]> {
        let is_string = matches!(head.major, Major::Bytes | Major::Text);
        self.take(usize::try_from(head.argument.filter(|_| is_string)?).ok()?)
    }

    /// Passes over what belongs to a value whose head was read. Linear in its bytes, and none if
    /// it nests deeper than [`DEEPEST`].
    pub(super) fn skip(&mut self, head: Head) -> Option<()> {
        // How many values each value that has begun still has; none up to a break.
        let mut open: Vec<Option<u64>> = Vec::new();
        let mut next = head;
        loop {
            match (next.major, next.argument) {
                _ if next.is_break() => match open.pop() {
                    Some(None) => {}
                    _ => return None,
                },
                (Major::Bytes | Major::Text, Some(_)) => _ = self.string(next)?,
                (Major::Array | Major::Bytes | Major::Text | Major::Map, None) => open.push(None),
                (Major::Array, count) => open.push(count),
                (Major::Map, Some(count)) => open.push(Some(count.checked_mul(2)?)),
                (Major::Tag, _) => open.push(Some(1)),
                _ => {}
            }
            if open.len() > DEEPEST {
                return None;
            }
            while let Some(Some(0)) = open.last() {
                open.pop();
            }
            match open.last_mut() {
                None => return Some(()),
                Some(Some(left)) => *left -= 1,
                Some(None) => {}
            }
            next = self.head()?;
        }
    }

    /// Whether a map ends here, of which `left` entries are left, if it has a length. Otherwise its
    /// next key follows.
    pub(super) fn map_ends(&mut self, left: &mut Option<u64>) -> bool {
        match left {
            Some(0) => true,
            Some(left) => {
                *left -= 1;
                false
            }
            None => {
                let ends = self.0.first() == Some(&BREAK);
                self.0 = &self.0[usize::from(ends)..];
                ends
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_as_short_as_they_can_be_and_come_back() {
        let edges = [0, 23, 24, 0xff, 0x100, 0xffff, 0x1_0000, 0xffff_ffff, 1 << 32, u64::MAX];
        for (number, length) in edges.into_iter().zip([1, 1, 2, 2, 3, 3, 5, 5, 9, 9]) {
            for major in MAJORS.into_iter().filter(|major| *major != Major::Simple) {
                let mut out = Vec::new();
                head(major, number, &mut out);
                assert_eq!(out.len(), length);
                let mut values = Values(&out);
                assert_eq!(values.head(), Some(Head { major, argument: Some(number) }));
                assert!(values.0.is_empty());
                assert_eq!(Values(&out[..length - 1]).head(), None);
            }
        }
    }

    /// The examples of RFC 8949, appendix A.
    #[test]
    fn what_is_not_needed_is_passed_over() {
        for value in [
            "00",
            "3863",
            "f93e00",
            "fb3ff199999999999a",
            "f4",
            "f8ff",
            "c074323031332d30332d32315432303a30343a30305a",
            "4401020304",
            "6449455446",
            "80",
            "83010203",
            "8301820203820405",
            "a0",
            "a201020304",
            "a26161016162820203",
            "826161a161626163",
            "5f42010243030405ff",
            "9fff",
            "9f018202039f0405ffff",
            "bf61610161629f0203ffff",
            "c1fb41d452d9ec200000",
        ] {
            let bytes: Vec<u8> = (0..value.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&value[at..at + 2], 16).unwrap())
                .collect();
            let mut values = Values(&bytes);
            let head = values.head().unwrap();
            assert_eq!((values.skip(head), values.0.len()), (Some(()), 0), "{value}");
            let mut cut = Values(&bytes[..bytes.len() - 1]);
            assert_eq!(cut.head().and_then(|head| cut.skip(head)), None, "{value}");
        }
        for wrong in [&[0xff][..], &[0x1c], &[0x1f], &[0xdf]] {
            let mut values = Values(wrong);
            assert_eq!(values.head().and_then(|head| values.skip(head)), None, "{wrong:?}");
        }
        // As deep as it may be, and one deeper: arrays of one, tags, and arrays without a length.
        for (begins, ends) in [(0x81, 0), (0xc1, 0), (0x9f, 0xff)] {
            for (depth, is_passed) in [(DEEPEST, true), (DEEPEST + 1, false), (1 << 20, false)] {
                let mut deep = vec![begins; depth];
                deep.extend(vec![ends; if ends == 0 { 1 } else { depth }]);
                let mut values = Values(&deep);
                let head = values.head().unwrap();
                assert_eq!(values.skip(head).is_some(), is_passed, "{begins:x} and {depth}");
            }
        }
    }
}
