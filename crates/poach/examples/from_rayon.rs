//! For users of rayon: a join, a loop that collects, a sort, a scope.

pub(crate) fn main() {
    let mut numbers: Vec<u64> = (0..100_000).map(|n| n * 7919 % 100_003).collect();
    let (smallest, largest) = poach::join(|| numbers.iter().min(), || numbers.iter().max());
    assert_eq!((smallest, largest), (Some(&0), Some(&100_002)));

    let squares = poach::par_map(&numbers, |n| n * n);
    assert_eq!(squares.len(), numbers.len());

    poach::par_sort(&mut numbers);
    assert!(numbers.is_sorted());

    let texts = ["1", "2", "three"];
    assert!(poach::try_par_map(&texts, |text| text.parse::<u32>()).is_err());

    let mut halves = [0, 0];
    poach::scope(|s| {
        for (half, part) in halves.iter_mut().zip(numbers.chunks(50_000)) {
            s.spawn(move |_| *half = part.iter().sum::<u64>());
        }
    });
    println!("{}", halves[0] + halves[1]);
}
