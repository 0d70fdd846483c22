//! What safe code cannot write. Each program stands beside a twin that compiles.

/// The trait of `ThreadPoolBuilder::spawn_handler` is a bound alone: nobody else implements it or
/// its `Sealed`, or calls its `ThreadSpawn::spawn`.
///
/// ```compile_fail,E0432
/// use rayon_core::ThreadSpawn;
/// ```
///
/// ```compile_fail,E0432
/// use rayon_core::Sealed;
/// ```
///
/// ```
/// use rayon_core::ThreadBuilder;
/// ```
mod bounds {}
