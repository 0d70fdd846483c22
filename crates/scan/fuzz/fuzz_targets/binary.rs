//! ncdu's binary exports: the bytes are what its blocks hold, with heads, frames and an index that
//! are right.
//!
//! The first byte says into how many blocks the bytes are divided, the next four where the root's
//! item is.

#![no_main]

mod again;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&[count, block, high, middle, low], contents)) = bytes.split_first_chunk() else {
        return;
    };
    let mut document = b"\xbfncduEX1".to_vec();
    let mut index = Vec::new();
    let length = contents.len().div_ceil(usize::from(count % 3) + 1).max(1);
    for (number, contents) in contents.chunks(length).enumerate() {
        let frame = frame(contents);
        let length = 4 + 4 + frame.len() as u32 + 4;
        index.extend((((document.len() as u64) << 24) | u64::from(length)).to_be_bytes());
        document.extend(length.to_be_bytes());
        document.extend((number as u32).to_be_bytes());
        document.extend(frame);
        document.extend(length.to_be_bytes());
    }
    index.extend([0, 0, 0, 0, block, high, middle, low]);
    let head = (1 << 28 | (index.len() as u32 + 8)).to_be_bytes();
    document.extend([&head[..], &index, &head].concat());
    again::read_and_write(&document);
});

/// A zstd frame that says its length, of blocks that are not compressed (RFC 8878, 3.1.1).
fn frame(contents: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0xa0];
    frame.extend((contents.len() as u32).to_le_bytes());
    let mut blocks = contents.chunks(1 << 17).peekable();
    while let Some(block) = blocks.next() {
        let head = u32::from(blocks.peek().is_none()) | (block.len() as u32) << 3;
        frame.extend(&head.to_le_bytes()[..3]);
        frame.extend(block);
    }
    frame
}
