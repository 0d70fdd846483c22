//! What safe code cannot write. Each program stands beside a twin that differs in what the error is
//! about, and compiles.

/// A world in two threads: MPI may be called by one at a time, and is finalised by the thread that
/// has initialised it.
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>() {}
/// shared::<poach_far::World>();
/// ```
///
/// ```compile_fail,E0277
/// fn sent<T: Send>() {}
/// sent::<poach_far::World>();
/// ```
///
/// ```
/// fn shared<T: Sync>() {}
/// fn sent<T: Send>() {}
/// shared::<poach_far::Builder>();
/// sent::<poach_far::Builder>();
/// ```
mod worlds {}

/// A world while a job of it is about to be run.
///
/// ```compile_fail,E0502
/// fn rank(world: &mut poach_far::World) {
///     let job = world.job([1u32]);
///     world.rank();
///     drop(job);
/// }
/// ```
///
/// ```
/// fn rank(world: &mut poach_far::World) {
///     let job = world.job([1u32]);
///     drop(job);
///     world.rank();
/// }
/// ```
mod borrowed {}

/// Tasks and results that hold what belongs to a thread or a frame.
///
/// ```compile_fail,E0277
/// fn run(world: &mut poach_far::World, seen: &std::cell::Cell<u32>) {
///     let _ = world.run([1u32], poach_far::sum::<u32>(), |n, _| seen.set(n));
/// }
/// ```
///
/// ```
/// fn run(world: &mut poach_far::World, seen: &std::sync::atomic::AtomicU32) {
///     let order = std::sync::atomic::Ordering::Relaxed;
///     let _ = world.run([1u32], poach_far::sum::<u32>(), |n, _| seen.store(n, order));
/// }
/// ```
///
/// ```compile_fail
/// fn value<T: poach_far::Value>() {}
/// value::<std::rc::Rc<u32>>();
/// ```
///
/// ```compile_fail
/// fn value<T: poach_far::Value>() {}
/// value::<&'static mut u32>();
/// ```
///
/// ```
/// fn value<T: poach_far::Value>() {}
/// value::<Box<u32>>();
/// ```
mod values {}
