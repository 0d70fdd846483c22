//! Sorting on all workers, in safe code: joins split the slice, and `std` sorts the parts.
//!
//! A slice is halved until there are a few parts for each worker, or the parts are small. `std`
//! sorts the parts.
//!
//! - *Stable*: two sorted neighbours are merged by rotation (Kim and Kutzner, *Stable minimum
//!   storage merging by symmetric comparisons*, 2004). A binary search finds the place of the
//!   longer part's middle in the shorter part. The items between are rotated, and the two halves
//!   are merged in parallel. `std`'s stable sort merges small parts: it finds the two runs and
//!   takes linear time. The rotations move each item once a level; there are enough levels to have
//!   work for all workers.
//! - *Unstable*: `select_nth_unstable` puts the median into its place, in linear time, and the
//!   halves are sorted in parallel. The first selection runs on one worker. For n items it is about
//!   2n of the n log n steps, which limits the speedup to some log(n) / 4 to 6.
//!
//! A comparison that panics leaves the slice with all its items, because `std` moves them.

use std::cmp::Ordering;

use poach_runtime::Worker;

/// One worker sorts or merges a part of fewer items.
const SMALL: usize = 1 << 12;

/// Sorts a slice, perhaps in parallel; equal items keep their order.
///
/// ```
/// # mod poach { pub use {poach_parallel::*, poach_runtime::*}; }
/// let mut numbers: Vec<u64> = (0..10_000).map(|n| n * 7919 % 10_007).collect();
/// poach::par_sort(&mut numbers);
/// assert!(numbers.is_sorted());
/// ```
///
/// # Panics
///
/// As [`slice::sort`]: perhaps if the order is not total, or with a comparison's payload. All items
/// are then in the slice, in some order.
pub fn par_sort<T: Ord + Send>(items: &mut [T]) {
    par_sort_by(items, T::cmp);
}

/// As [`par_sort`], by a comparison, like [`slice::sort_by`].
///
/// # Panics
///
/// As [`par_sort`].
pub fn par_sort_by<T: Send>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering + Sync) {
    poach_runtime::worker(|worker| {
        let part = part_of(items.len());
        sort(worker, items, part, &compare);
    });
}

/// As [`par_sort`], by a key, like [`slice::sort_by_key`].
///
/// # Panics
///
/// As [`par_sort`].
pub fn par_sort_by_key<T: Send, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K + Sync) {
    par_sort_by(items, |a, b| key(a).cmp(&key(b)));
}

/// Sorts a slice in place, perhaps in parallel; equal items may change their order.
///
/// ```
/// # mod poach { pub use {poach_parallel::*, poach_runtime::*}; }
/// let mut numbers: Vec<u64> = (0..10_000).map(|n| n * 7919 % 10_007).collect();
/// poach::par_sort_unstable(&mut numbers);
/// assert!(numbers.is_sorted());
/// ```
///
/// # Panics
///
/// As [`par_sort`].
pub fn par_sort_unstable<T: Ord + Send>(items: &mut [T]) {
    par_sort_unstable_by(items, T::cmp);
}

/// As [`par_sort_unstable`], by a comparison, like [`slice::sort_unstable_by`].
///
/// # Panics
///
/// As [`par_sort`].
pub fn par_sort_unstable_by<T: Send>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering + Sync) {
    poach_runtime::worker(|worker| {
        let part = part_of(items.len());
        sort_unstable(worker, items, part, &compare);
    });
}

/// As [`par_sort_unstable`], by a key, like [`slice::sort_unstable_by_key`].
///
/// # Panics
///
/// As [`par_sort`].
pub fn par_sort_unstable_by_key<T: Send, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K + Sync) {
    par_sort_unstable_by(items, |a, b| key(a).cmp(&key(b)));
}

/// The greatest number of items that one worker sorts.
fn part_of(items: usize) -> usize {
    match poach_runtime::current_num_threads() {
        1 => items,
        threads => (items / (4 * threads)).max(SMALL),
    }
}

fn sort<T: Send>(
    mut worker: Worker<'_>,
    items: &mut [T],
    part: usize,
    compare: &(impl Fn(&T, &T) -> Ordering + Sync),
) {
    if items.len() <= part {
        return items.sort_by(compare);
    }
    let middle = items.len() / 2;
    let (left, right) = items.split_at_mut(middle);
    worker.join(|w| sort(w, left, part, compare), |w| sort(w, right, part, compare));
    merge(worker, items, middle, part, compare);
}

/// Merges two sorted neighbours, the second of which begins at `middle`.
fn merge<T: Send>(
    mut worker: Worker<'_>,
    items: &mut [T],
    middle: usize,
    part: usize,
    compare: &(impl Fn(&T, &T) -> Ordering + Sync),
) {
    let length = items.len();
    if middle == 0 || middle == length || compare(&items[middle - 1], &items[middle]).is_le() {
        return;
    }
    if length <= part {
        return items.sort_by(compare);
    }
    let (left, right) = items.split_at(middle);
    // Equal items of the left part come first: items of the right part go before an item of the
    // left part only if they are less.
    let (from, to) = if left.len() >= right.len() {
        let from = left.len() / 2;
        (from, middle + right.partition_point(|item| compare(item, &left[from]).is_lt()))
    } else {
        let to = right.len() / 2;
        (left.partition_point(|item| compare(item, &right[to]).is_le()), middle + to)
    };
    items[from..to].rotate_left(middle - from);
    let cut = from + (to - middle);
    let (low, high) = items.split_at_mut(cut);
    worker.join(
        |w| merge(w, low, from, part, compare),
        |w| merge(w, high, middle - from, part, compare),
    );
}

fn sort_unstable<T: Send>(
    mut worker: Worker<'_>,
    items: &mut [T],
    part: usize,
    compare: &(impl Fn(&T, &T) -> Ordering + Sync),
) {
    if items.len() <= part {
        return items.sort_unstable_by(compare);
    }
    let (low, _, high) = items.select_nth_unstable_by(items.len() / 2, compare);
    worker
        .join(|w| sort_unstable(w, low, part, compare), |w| sort_unstable(w, high, part, compare));
}
