//! A frame loop, as in a game: each frame is a parallel region on the window's own thread, and
//! loading in the background delays no frame.

use std::cell::Cell;
use std::thread;

use poach::ThreadPool;

thread_local! {
    /// The state that a window system or a graphics library keeps in its thread.
    static HAS_WINDOW: Cell<bool> = const { Cell::new(false) };
}

struct Body {
    place: f32,
    speed: f32,
}

pub(crate) fn main() {
    HAS_WINDOW.set(true);
    let frames = ThreadPool::builder().num_threads(2).build().unwrap();
    // Loads run in another pool, so that no worker of a frame runs a long load when the frame ends.
    let loading =
        ThreadPool::builder().num_threads(1).name(|_| "loading".to_owned()).build().unwrap();

    let mut bodies: Vec<Body> = (0..10_000).map(|i| Body { place: i as f32, speed: 0.5 }).collect();
    let mut texture = Some(loading.spawn_handle(|| vec![7_u8; 1 << 16]));
    let mut loaded = None;
    let mut frame = 0;
    while frame < 60 || loaded.is_none() {
        frame += 1;
        // The body of `run`, `join` and `scope` stays on this thread, with its thread-local
        // variables. The loop's iterations may run on other threads. `install` would run everything
        // on the pool's threads.
        frames.run(|_| {
            assert!(HAS_WINDOW.get());
            poach::par_chunks_mut(&mut bodies, 256, |_, chunk| {
                for body in chunk {
                    body.place += body.speed;
                }
            });
        });
        // Polls without waiting: a frame has no time to wait.
        if let Some(handle) = texture.take_if(|handle| handle.is_finished()) {
            loaded = Some(handle.join().unwrap());
        }
        thread::yield_now();
    }
    assert_eq!(loaded.unwrap().len(), 1 << 16);
    assert!((bodies[0].place - frame as f32 * 0.5).abs() < 0.1);
    println!("{frame} frames");
}
