//! Snapshots: the bytes are the contents, with a beginning and a checksum that are right.

#![no_main]

use std::io::Write as _;

mod again;

libfuzzer_sys::fuzz_target!(|contents: &[u8]| {
    let start = b"\x89POACH\r\n\x01\0\0\0".to_vec();
    let mut document = flate2::write::GzEncoder::new(start, flate2::Compression::none());
    let written = document.write_all(contents).and_then(|()| document.finish());
    again::read_and_write(&written.expect("a vector can be written to"));
});
