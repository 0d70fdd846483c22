//! The guide's pages: `cargo test --doc -p poach-guide` compiles and runs every snippet of Rust in
//! them, and `cargo xtask guide` every command.
//!
//! A page is a file of `pages/` and a line in `pages/SUMMARY.md` and here.

#![forbid(unsafe_code)]

macro_rules! pages {
    ($($name:ident in $file:literal)*) => {$(
        #[cfg(doctest)]
        #[doc = include_str!($file)]
        mod $name {}
    )*};
}

pages! {
    browser in "../pages/browser.md"
    channels in "../pages/from-channels.md"
    crossbeam in "../pages/from-crossbeam.md"
    disks in "../pages/from-dust.md"
    duplicates in "../pages/duplicates.md"
    first_change in "../pages/first-change.md"
    fork_join in "../pages/fork-join.md"
    introduction in "../pages/introduction.md"
    lace in "../pages/from-lace.md"
    large_disks in "../pages/large-disks.md"
    life_of_a_task in "../pages/life-of-a-task.md"
    loom in "../pages/from-loom.md"
    memory_model in "../pages/memory-model.md"
    papers in "../pages/papers.md"
    queues in "../pages/queues.md"
    rayon in "../pages/from-rayon.md"
    schedulers in "../pages/schedulers.md"
    tokio in "../pages/from-tokio.md"
    when_to_fork in "../pages/when-to-fork.md"
    words in "../pages/words.md"
    without_membarrier in "../pages/without-membarrier.md"
}
