//! The ranks that a rank without tasks asks, and the ranks at which it leaves a request.

/// Ranks in the order in which they are asked: those of the same node first, each group at random.
#[derive(Clone, Debug)]
pub struct Victims {
    near: Vec<usize>,
    far: Vec<usize>,
    random: fastrand::Rng,
    /// How many of this round were asked.
    asked: usize,
}

impl Victims {
    /// The victims of `rank`; `nodes` tells which node each rank is on.
    ///
    /// # Panics
    ///
    /// If the rank is not among them.
    pub fn new(rank: usize, nodes: &[usize], seed: u64) -> Victims {
        let others = (0..nodes.len()).filter(|&other| other != rank);
        let (near, far) = others.partition(|&other| nodes[other] == nodes[rank]);
        let random =
            fastrand::Rng::with_seed(seed ^ (rank as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Victims { near, far, random, asked: 0 }
    }

    /// Whether there is anybody.
    pub fn is_empty(&self) -> bool {
        self.near.is_empty() && self.far.is_empty()
    }

    /// Begins a round.
    pub fn restart(&mut self) {
        self.asked = 0;
    }

    /// The next of a round in which at most `most` of each group are asked; `None` at its end.
    pub fn next(&mut self, most: usize) -> Option<usize> {
        let near = self.near.len().min(most);
        let (group, at) = if self.asked < near {
            (&mut self.near, self.asked)
        } else {
            (&mut self.far, self.asked - near)
        };
        if at >= group.len().min(most) {
            return None;
        }
        // A shuffle, as far as it is looked at.
        let chosen = self.random.usize(at..group.len());
        group.swap(at, chosen);
        self.asked += 1;
        Some(group[at])
    }
}

/// The lifelines of `rank`: its neighbours in the binary hypercube, as far as they exist.
///
/// Source: Saraswat et al., *Lifeline-based global load balancing* (2011), with base 2. The graph
/// is connected for any number of ranks. To clear a bit of a number makes it smaller, so from each
/// rank a path of existing ranks leads to rank 0, and each edge goes both ways. A rank has at most
/// log2(ranks) lifelines.
pub fn lifelines(rank: usize, ranks: usize) -> Vec<usize> {
    let bits = ranks.next_power_of_two().trailing_zeros();
    (0..bits).map(|bit| rank ^ (1 << bit)).filter(|&other| other < ranks).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_asks_the_ranks_of_the_node_first_and_each_once() {
        let mut victims = Victims::new(1, &[0, 0, 0, 1, 1, 1], 7);
        for _ in 0..100 {
            victims.restart();
            let round: Vec<_> = std::iter::from_fn(|| victims.next(usize::MAX)).collect();
            let mut near = round[..2].to_vec();
            let mut far = round[2..].to_vec();
            near.sort_unstable();
            far.sort_unstable();
            assert_eq!((near, far), (vec![0, 2], vec![3, 4, 5]));
        }
        victims.restart();
        assert_eq!(std::iter::from_fn(|| victims.next(1)).count(), 2);
    }

    #[test]
    fn lifelines_lead_from_everybody_to_everybody() {
        for ranks in 1..200 {
            let mut reached = vec![false; ranks];
            let mut waiting = vec![0];
            while let Some(rank) = waiting.pop() {
                if !std::mem::replace(&mut reached[rank], true) {
                    waiting.extend(lifelines(rank, ranks));
                }
            }
            assert!(reached.iter().all(|&reached| reached), "{ranks}");
            for rank in 0..ranks {
                assert!(
                    lifelines(rank, ranks).iter().all(|&o| lifelines(o, ranks).contains(&rank))
                );
            }
        }
    }
}
