//! What the workers of a pool do in a few milliseconds of work, as files to look at.
//!
//! ```text
//! cargo run --release -p poach-runtime --example timeline -- [DIRECTORY]
//! ```
//!
//! Writes `timeline.svg`, for a browser, and `timeline.json`, for <https://ui.perfetto.dev>, into the
//! directory, and prints the counters.

use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{env, fs, hint, io, thread};

use poach_runtime::{ThreadPool, Worker, scope};

/// A tree of joins, whose leaves are of different lengths.
fn tree(mut worker: Worker<'_>, depth: u32, seed: u64) -> u64 {
    if depth == 0 {
        let spun = Instant::now();
        while spun.elapsed() < Duration::from_micros(5 + seed % 64) {
            hint::spin_loop();
        }
        return 1;
    }
    let next = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let (a, b) = worker.join(|w| tree(w, depth - 1, next >> 7), |w| tree(w, depth - 1, next >> 11));
    a + b
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = env::args_os().nth(1).map_or_else(|| PathBuf::from("."), PathBuf::from);
    let pool = ThreadPool::builder().build()?;
    // Long enough for all to fall asleep.
    thread::sleep(Duration::from_millis(5));
    let before = pool.stats();
    let recording = pool.record(1 << 16)?;
    assert_eq!(pool.run(|worker| tree(worker, 7, 1)), 128);
    // A pause, to see who sleeps.
    thread::sleep(Duration::from_millis(1));
    pool.install(|| {
        scope(|s| {
            for i in 0..40 {
                s.spawn(move |_| _ = poach_runtime::worker(|w| tree(w, 1, i * 977)));
            }
        });
    });
    let trace = recording.stop();
    println!("{}", pool.stats().since(&before));
    let write = |name: &str, text: String| -> io::Result<()> {
        let path = directory.join(name);
        fs::write(&path, text)?;
        println!("{}", path.display());
        Ok(())
    };
    write("timeline.svg", trace.svg().to_string())?;
    write("timeline.json", trace.chrome_json().to_string())?;
    Ok(())
}
