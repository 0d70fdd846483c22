//! Where processors are: groups of groups, and sets of processors.

use crate::describe::{Description, MAX_PROCESSORS};

/// The topology, ready for use: groups are ranges of processors.
#[derive(Debug)]
pub(crate) struct Places {
    /// Processors in a group, for each level.
    spans: Vec<usize>,
    /// The level of the memory nodes.
    node: usize,
}

impl Places {
    pub(crate) fn of(description: &Description) -> Self {
        let mut span = 1;
        let spans = description
            .levels
            .iter()
            .map(|level| {
                span *= level.size;
                span
            })
            .collect();
        let node = description.levels.iter().position(|it| it.name == description.memory.node);
        Places { spans, node: node.unwrap_or(0) }
    }

    /// The innermost level at which both are in one group.
    #[inline]
    pub(crate) fn common(&self, a: usize, b: usize) -> usize {
        let outermost = self.spans.len() - 1;
        self.spans.iter().position(|span| a / span == b / span).unwrap_or(outermost)
    }

    /// The group of a level that a processor is in.
    #[inline]
    pub(crate) fn group(&self, level: usize, processor: usize) -> usize {
        processor / self.spans[level]
    }

    /// The processors of that group: from the first to the one after the last.
    pub(crate) fn range(&self, level: usize, processor: usize) -> (usize, usize) {
        let span = self.spans[level];
        let first = processor / span * span;
        (first, first + span)
    }

    pub(crate) fn node_of(&self, processor: usize) -> usize {
        self.group(self.node, processor)
    }

    /// A processor of a node, to measure distances by.
    pub(crate) fn first_of(&self, node: usize) -> usize {
        node * self.spans[self.node]
    }

    /// The level of the nearest processor of a set, from `from`; the set is not empty.
    pub(crate) fn nearest(&self, from: usize, set: &Set) -> usize {
        let within = |span: &usize| {
            let first = from / span * span;
            set.any(first, first + span)
        };
        self.spans.iter().position(within).unwrap_or(self.spans.len() - 1)
    }

    /// The level of the farthest.
    pub(crate) fn farthest(&self, from: usize, set: &Set) -> usize {
        let within = |span: &usize| {
            let first = from / span * span;
            !set.any(0, first) && !set.any(first + span, MAX_PROCESSORS)
        };
        self.spans.iter().position(within).unwrap_or(self.spans.len() - 1)
    }

    pub(crate) fn level_of_nodes(&self) -> usize {
        self.node
    }

    pub(crate) fn levels(&self) -> usize {
        self.spans.len()
    }
}

const WORDS: usize = MAX_PROCESSORS / 64;

/// A set of processors.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Set([u64; WORDS]);

impl Set {
    #[inline]
    pub(crate) fn add(&mut self, processor: usize) {
        self.0[processor / 64] |= 1 << (processor % 64);
    }

    #[inline]
    pub(crate) fn remove(&mut self, processor: usize) {
        self.0[processor / 64] &= !(1 << (processor % 64));
    }

    #[inline]
    pub(crate) fn has(&self, processor: usize) -> bool {
        self.0[processor / 64] & (1 << (processor % 64)) != 0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Whether this one is the only one.
    #[inline]
    pub(crate) fn only(&self, processor: usize) -> bool {
        let (at, bit) = (processor / 64, 1 << (processor % 64));
        self.0.iter().enumerate().all(|(word, bits)| *bits == if word == at { bit } else { 0 })
    }

    /// Those from `from` up to `to`, which is not included.
    pub(crate) fn within(&self, from: usize, to: usize) -> impl Iterator<Item = usize> + '_ {
        (from..to.min(MAX_PROCESSORS)).filter(|processor| self.has(*processor))
    }

    /// Whether there is one from `from` up to `to`, which is not included.
    pub(crate) fn any(&self, from: usize, to: usize) -> bool {
        let to = to.min(MAX_PROCESSORS);
        if from >= to {
            return false;
        }
        let (first, last) = (from / 64, (to - 1) / 64);
        (first..=last).any(|at| {
            let low = if at == first { !0 << (from % 64) } else { !0 };
            let high = if at == last { !0 >> (63 - (to - 1) % 64) } else { !0 };
            self.0[at] & low & high != 0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_knows_its_ranges() {
        let mut set = Set::default();
        for processor in [0, 63, 64, 1087] {
            set.add(processor);
        }
        for (from, to, any) in [
            (0, 1, true),
            (1, 63, false),
            (1, 64, true),
            (65, 1087, false),
            (64, 65, true),
            (65, 5000, true),
            (7, 7, false),
        ] {
            assert_eq!(set.any(from, to), any, "{from}..{to}");
        }
        set.remove(63);
        assert!(!set.any(1, 64) && !set.has(63) && set.has(64) && !set.is_empty());
    }

    #[test]
    fn levels_by_hand() {
        let machine = Description::shipped("lace").unwrap();
        let places = Places::of(&machine);
        let outer = places.levels() - 1;
        assert_eq!(places.common(0, 5), 0);
        assert_eq!(places.common(0, 47), outer);
        let mut set = Set::default();
        set.add(1);
        set.add(47);
        assert_eq!(places.nearest(0, &set), 0);
        assert_eq!(places.farthest(0, &set), outer);
        set.remove(47);
        assert_eq!(places.farthest(0, &set), 0);
    }
}
