//! Globs of any bytes, and regular expressions: read or refused, and named if they can match
//! nothing.

#![no_main]

use poach_scan::choice::Patterns;

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    let globs: Vec<&[u8]> = text.split(|&byte| byte == b'\n').collect();
    if let Ok(patterns) = Patterns::of_bytes(&globs, &[]) {
        assert_eq!(patterns.unmatched().count() + patterns.impossible().count(), globs.len());
    }
    let regex = String::from_utf8_lossy(text).into_owned();
    let _ = Patterns::new(&[], &[regex]);
});
