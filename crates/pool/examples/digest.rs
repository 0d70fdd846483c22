//! A pipeline: one thread reads files, all others hash them.
//!
//! ```console
//! $ cargo run --release -p poach-pool --example digest -- crates
//! ```
//!
//! The capacity holds the reader back, so that files wait on the disk and not in memory. The sum
//! over all files does not depend on who hashed which, or when.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;

use poach_pool::{Producer, TaskPool};

struct File {
    path: PathBuf,
    content: Vec<u8>,
}

fn main() -> ExitCode {
    let Some(root) = std::env::args_os().nth(1) else {
        eprintln!("digest: name a directory whose files are to be hashed");
        return ExitCode::from(2);
    };
    match digest(Path::new(&root)) {
        Ok((files, bytes, sum)) => {
            println!("{files} files, {bytes} bytes, {sum:016x}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("digest: {}: {error}", Path::new(&root).display());
            ExitCode::FAILURE
        }
    }
}

fn digest(root: &Path) -> io::Result<(u64, u64, u64)> {
    let pool = TaskPool::builder().capacity(1024).chunk_length(64).build().map_err(other)?;
    let hashers = thread::available_parallelism().map_or(1, Into::into);
    thread::scope(|scope| {
        let hashers: Vec<_> = (0..hashers)
            .map(|_| {
                let mut consumer = pool.consumer().map_err(other)?;
                Ok(scope.spawn(move || {
                    consumer.iter().fold((0, 0, 0u64), |(files, bytes, sum), file: File| {
                        let length = file.content.len() as u64;
                        (files + 1, bytes + length, sum.wrapping_add(hash(&file)))
                    })
                }))
            })
            .collect::<io::Result<_>>()?;
        let mut producer = pool.producer().map_err(other)?;
        let read = read(root, &mut producer);
        pool.close();
        let mut all = (0, 0, 0u64);
        for hasher in hashers {
            let (files, bytes, sum) = hasher.join().expect("a hasher that does not panic");
            all = (all.0 + files, all.1 + bytes, all.2.wrapping_add(sum));
        }
        read.map(|()| all)
    })
}

fn other(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::other(error)
}

fn read(directory: &Path, producer: &mut Producer<File>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            read(&entry.path(), producer)?;
        } else if kind.is_file() {
            let path = entry.path();
            let content = fs::read(&path)?;
            producer.put(File { path, content }).map_err(other)?;
        }
    }
    Ok(())
}

/// FNV-1a of the file's name and content.
fn hash(file: &File) -> u64 {
    let name = file.path.as_os_str().as_encoded_bytes();
    name.iter().chain(&file.content).fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
