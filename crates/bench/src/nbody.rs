//! The gravity of n bodies on each other, all pairs, step by step: a loop whose every element is much
//! work, as users write it with a grain of their own choice.

use anyhow::{Result, ensure};

use crate::Size;
use crate::fork::{Fork, Program, System, Task, for_each};
use crate::quad::noise;

const STEP: f64 = 1e-3;
/// Keeps two bodies that meet from being thrown to infinity.
const SOFTENING: f64 = 1e-2;
/// The bodies whose forces are summed without dividing them further.
const GRAIN: usize = 8;

type Vector = [f64; 3];

#[derive(Clone, Copy)]
struct Body {
    at: Vector,
    speed: Vector,
    mass: f64,
}

/// Advances all bodies by so many steps.
struct Advance<'b> {
    bodies: &'b mut Vec<Body>,
    next: &'b mut Vec<Body>,
    steps: usize,
}

impl Task for Advance<'_> {
    type Output = ();

    fn run<F: Fork>(self, mut fork: F) {
        let Advance { bodies, next, steps } = self;
        for _ in 0..steps {
            let old = &bodies[..];
            for_each(&mut fork, next, GRAIN, &|first, piece| {
                for (body, moved) in old[first..].iter().zip(piece) {
                    *moved = advance(body, old);
                }
            });
            std::mem::swap(bodies, next);
        }
    }
}

fn advance(body: &Body, all: &[Body]) -> Body {
    let mut pull = [0.0; 3];
    for other in all {
        let away: Vector = std::array::from_fn(|axis| other.at[axis] - body.at[axis]);
        let square = SOFTENING + away.iter().map(|x| x * x).sum::<f64>();
        let strength = other.mass / (square * square.sqrt());
        for (pull, away) in pull.iter_mut().zip(away) {
            *pull += strength * away;
        }
    }
    let speed: Vector = std::array::from_fn(|axis| body.speed[axis] + STEP * pull[axis]);
    let at = std::array::from_fn(|axis| body.at[axis] + STEP * speed[axis]);
    Body { at, speed, mass: body.mass }
}

pub(crate) struct Nbody {
    input: Vec<Body>,
    bodies: Vec<Body>,
    next: Vec<Body>,
    steps: usize,
}

impl Nbody {
    /// What gravity keeps: the momentum along each axis.
    fn momentum(bodies: &[Body]) -> Vector {
        std::array::from_fn(|axis| bodies.iter().map(|body| body.mass * body.speed[axis]).sum())
    }

    /// And the sum of all kinetic and potential energy, which small steps nearly keep.
    fn energy(bodies: &[Body]) -> f64 {
        let kinetic = |body: &Body| body.mass / 2.0 * body.speed.iter().map(|v| v * v).sum::<f64>();
        let potential = |a: &Body, b: &Body| {
            let square: f64 = a.at.iter().zip(b.at).map(|(a, b)| (a - b) * (a - b)).sum();
            -a.mass * b.mass / (SOFTENING + square).sqrt()
        };
        let pairs = bodies
            .iter()
            .enumerate()
            .flat_map(|(at, a)| bodies[..at].iter().map(move |b| potential(a, b)));
        bodies.iter().map(kinetic).sum::<f64>() + pairs.sum::<f64>()
    }
}

impl Program for Nbody {
    const NAME: &'static str = "n-body";

    fn new(size: Size) -> Self {
        let (count, steps) = size.pick((40, 4), (1_000, 5), (4_000, 5), (10_000, 10));
        let input: Vec<Body> = (0..count)
            .map(|at| Body {
                at: std::array::from_fn(|axis| noise(21, 3 * at + axis)),
                speed: std::array::from_fn(|axis| noise(22, 3 * at + axis)),
                mass: (1.5 + noise(23, at)) / count as f64,
            })
            .collect();
        Nbody { bodies: input.clone(), next: input.clone(), input, steps }
    }

    fn reset(&mut self) {
        self.bodies.clone_from(&self.input);
    }

    fn run(&mut self, system: &impl System) {
        let Nbody { bodies, next, steps, .. } = self;
        system.run(Advance { bodies, next, steps: *steps });
    }

    /// Each body has moved; momentum and energy are those of the start.
    fn check(&self) -> Result<()> {
        let still =
            self.input.iter().zip(&self.bodies).position(|(old, new)| old.at.iter().eq(&new.at));
        ensure!(still.is_none(), "body {still:?} has not moved");
        let (before, after) = (Nbody::momentum(&self.input), Nbody::momentum(&self.bodies));
        let kept = before.iter().zip(after).all(|(before, after)| (before - after).abs() < 1e-12);
        ensure!(kept, "the momentum was {before:?}, and is {after:?}");
        let (before, after) = (Nbody::energy(&self.input), Nbody::energy(&self.bodies));
        let near = (before - after).abs() < 2.0 * STEP * self.steps as f64 * before.abs().max(1.0);
        ensure!(near, "the energy was {before}, and is {after}");
        Ok(())
    }
}
