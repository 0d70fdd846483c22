//! Documents as they come: exports of ncdu, plain or compressed, and what is none.

#![no_main]

mod again;

libfuzzer_sys::fuzz_target!(|document: &[u8]| again::read_and_write(document));
