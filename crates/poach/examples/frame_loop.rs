//! A program in frames, as a game is: each frame is a parallel region on the window's own thread,
//! and what is loaded meanwhile holds no frame up.

use std::cell::Cell;
use std::thread;

use poach::ThreadPool;

thread_local! {
    /// What a window system or a graphics library keeps of the thread that it was made on.
    static HAS_WINDOW: Cell<bool> = const { Cell::new(false) };
}

struct Body {
    place: f32,
    speed: f32,
}

pub(crate) fn main() {
    HAS_WINDOW.set(true);
    let frames = ThreadPool::builder().num_threads(2).build().unwrap();
    // A pool of its own, so that no worker of a frame has taken a long load in hand when the frame
    // is to end.
    let loading =
        ThreadPool::builder().num_threads(1).name(|_| "loading".to_owned()).build().unwrap();

    let mut bodies: Vec<Body> = (0..10_000).map(|i| Body { place: i as f32, speed: 0.5 }).collect();
    let mut texture = Some(loading.spawn(|| vec![7_u8; 1 << 16]));
    let mut loaded = None;
    let mut frame = 0;
    while frame < 60 || loaded.is_none() {
        frame += 1;
        // The body of `run`, `join` and `scope` stays on this thread, one of few that call, with
        // its thread-local variables; the loop's iterations may run on others. `install`
        // would run all of it on the pool's threads.
        frames.run(|_| {
            assert!(HAS_WINDOW.get());
            poach::par_chunks_mut(&mut bodies, 256, |_, chunk| {
                for body in chunk {
                    body.place += body.speed;
                }
            });
        });
        // Asks, and does not wait: a frame has no time for that.
        if let Some(handle) = texture.take_if(|handle| handle.is_finished()) {
            loaded = Some(handle.join().unwrap());
        }
        thread::yield_now();
    }
    assert_eq!(loaded.unwrap().len(), 1 << 16);
    assert!((bodies[0].place - frame as f32 * 0.5).abs() < 0.1);
    println!("{frame} frames");
}
