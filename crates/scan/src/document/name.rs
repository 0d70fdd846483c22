//! Names and paths in text that must be UTF-8, with nothing of them lost.

use std::borrow::Cow;
use std::fmt::Write as _;

/// A name in UTF-8, with U+FFFD for each sequence of bytes that is none; and all of its bytes in
/// hexadecimal, if the first does not tell them.
pub(crate) fn lossless(name: &[u8]) -> (Cow<'_, str>, Option<String>) {
    let text = String::from_utf8_lossy(name);
    let hex = matches!(text, Cow::Owned(_)).then(|| hex(name));
    (text, hex)
}

/// Two hexadecimal digits for each byte.
pub(super) fn hex(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}
