//! Names of 16-bit units as bytes, and back: UTF-8, and an unpaired surrogate as the three bytes
//! that UTF-8 would have for its number (WTF-8), as in the standard library's paths.

/// Writes a name, and a NUL after it.
pub(super) fn write(units: impl Iterator<Item = u16>, name: &mut Vec<u8>) {
    name.clear();
    for unit in char::decode_utf16(units) {
        match unit {
            Ok(letter) => name.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
            Err(error) => {
                let unit = error.unpaired_surrogate();
                let last = [unit >> 6, unit].map(|part| 0x80 | (part & 0x3f) as u8);
                name.extend_from_slice(&[0xed, last[0], last[1]]);
            }
        }
    }
    name.push(0);
}

/// The units of a name; nothing, if no entry of a directory can have it.
pub(super) fn read(name: &[u8]) -> Option<Vec<u16>> {
    if name.is_empty() || name.iter().any(|byte| b"\\/:".contains(byte)) {
        return None;
    }
    let mut units = Vec::with_capacity(name.len());
    let mut rest = name;
    loop {
        let error = match std::str::from_utf8(rest) {
            Ok(text) => {
                units.extend(text.encode_utf16());
                return Some(units);
            }
            Err(error) => error,
        };
        let (text, other) = rest.split_at(error.valid_up_to());
        units.extend(std::str::from_utf8(text).ok()?.encode_utf16());
        let [0xed, high @ 0xa0..=0xbf, low @ 0x80..=0xbf, ..] = *other else { return None };
        units.push(0xd000 | u16::from(high & 0x3f) << 6 | u16::from(low & 0x3f));
        rest = &other[3..];
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::windows::ffi::OsStringExt as _;

    use super::*;

    #[test]
    fn every_name_is_read_as_it_was_written() {
        let mut bytes = Vec::new();
        let names: [&[u16]; 6] = [
            &[0x61],
            &[0xd800],
            &[0xdfff, 0x61, 0xdbff],
            &[0xd83d, 0xde00, 0xd83d],
            &[0xe9, 0x65e5, 0xffff],
            &[0xdc00, 0xd800],
        ];
        for name in names {
            write(name.iter().copied(), &mut bytes);
            assert_eq!(bytes.pop(), Some(0));
            assert_eq!(read(&bytes).as_deref(), Some(name), "{bytes:x?}");
        }
        // As the standard library spells them.
        for name in names {
            write(name.iter().copied(), &mut bytes);
            bytes.pop();
            assert_eq!(OsString::from_wide(name).as_encoded_bytes(), bytes);
        }
    }

    #[test]
    fn what_no_entry_is_called_is_no_name() {
        for name in [&b""[..], b"a\\b", b"a/b", b"a:b", b"\xff", b"\xed\xa0", b"\xe9"] {
            assert_eq!(read(name), None, "{name:x?}");
        }
    }
}
