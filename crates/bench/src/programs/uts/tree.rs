//! The trees of UTS, the Unbalanced Tree Search benchmark: what they are made from, and their
//! published sizes.
//!
//! Source: Olivier et al., *UTS: An Unbalanced Tree Search Benchmark*. A node's state is 20 bytes.
//! The root's is the SHA-1 of 16 zeros and the seed; its i-th child's is the SHA-1 of its own state
//! and i; both numbers as four bytes, the highest first. The last four bytes of a state, without
//! the sign bit and over 2^31, are its random number u.
//!
//! - Binomial: the root has b children; any other node m with probability q (u < q), else none.
//! - Geometric: a node at depth d has floor(ln(1 - u) / ln(1 - p)) children, at most 100, where p =
//!   1 / (1 + b(d)). Fixed shape: b(d) is b above the depth limit and 0 from there. Cyclic shape:
//!   b(d) is b^sin(2 pi d / limit), and 0 beyond five limits.
//!
//! `far/` has this file among its modules, too, so it names nothing of this crate.

use std::f64::consts::PI;

use sha1::{Digest, Sha1};

/// The most children of a node, but for the root of a binomial tree.
const MOST_CHILDREN: u32 = 100;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    Binomial { root: u32, many: u32, probability: f64 },
    GeometricFixed { branching: f64, limit: u32 },
    GeometricCyclic { branching: f64, limit: u32 },
}

/// A tree of the benchmark's sample list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tree {
    pub(crate) shape: Shape,
    pub(crate) seed: u32,
    /// The published number of nodes.
    pub(crate) nodes: u64,
}

pub(crate) const T1: Tree =
    Tree { shape: Shape::GeometricFixed { branching: 4.0, limit: 10 }, seed: 19, nodes: 4_130_071 };
pub(crate) const T2: Tree = Tree {
    shape: Shape::GeometricCyclic { branching: 6.0, limit: 16 },
    seed: 502,
    nodes: 4_117_769,
};
pub(crate) const T2L: Tree = Tree {
    shape: Shape::GeometricCyclic { branching: 7.0, limit: 23 },
    seed: 220,
    nodes: 96_793_510,
};
pub(crate) const T3: Tree = Tree {
    shape: Shape::Binomial { root: 2000, many: 8, probability: 0.124_875 },
    seed: 42,
    nodes: 4_112_897,
};
pub(crate) const T3L: Tree = Tree {
    shape: Shape::Binomial { root: 2000, many: 5, probability: 0.200_014 },
    seed: 7,
    nodes: 111_345_631,
};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub(crate) state: [u8; 20],
    pub(crate) depth: u32,
}

impl Node {
    pub(crate) fn root(seed: u32) -> Node {
        let mut hash = Sha1::new();
        hash.update([0; 16]);
        hash.update(seed.to_be_bytes());
        Node { state: hash.finalize().into(), depth: 0 }
    }

    #[inline]
    pub(crate) fn child(&self, index: u32) -> Node {
        let mut hash = Sha1::new();
        hash.update(self.state);
        hash.update(index.to_be_bytes());
        Node { state: hash.finalize().into(), depth: self.depth + 1 }
    }

    /// The node's random number, from 0 to just below 1.
    #[inline]
    fn random(&self) -> f64 {
        let [.., a, b, c, d] = self.state;
        f64::from(u32::from_be_bytes([a, b, c, d]) & 0x7fff_ffff) / 2_147_483_648.0
    }

    #[inline]
    pub(crate) fn children(&self, shape: Shape) -> u32 {
        match shape {
            Shape::Binomial { root, .. } if self.depth == 0 => root,
            Shape::Binomial { many, probability, .. } => {
                if self.random() < probability {
                    many
                } else {
                    0
                }
            }
            Shape::GeometricFixed { branching, limit } => {
                self.geometric(if self.depth < limit { branching } else { 0.0 })
            }
            Shape::GeometricCyclic { branching, limit } => {
                let turn = f64::from(self.depth) / f64::from(limit);
                self.geometric(match self.depth {
                    0 => branching,
                    depth if depth > 5 * limit => 0.0,
                    _ => branching.powf((2.0 * PI * turn).sin()),
                })
            }
        }
    }

    #[inline]
    fn geometric(&self, branching: f64) -> u32 {
        let p = 1.0 / (1.0 + branching);
        let children = ((1.0 - self.random()).ln() / (1.0 - p).ln()).floor() as u32;
        children.min(MOST_CHILDREN)
    }
}
