//! A ray tracer: a picture of mirroring spheres on a plane, pixel by pixel. How much work a pixel is
//! depends on what it shows, so equal shares of the picture are unequal shares of the work.

use anyhow::{Result, ensure};

use crate::Size;
use crate::fork::{Fork, Program, System, Task, for_each};
use crate::quad::noise;

/// The mirrors that a ray may meet.
const BOUNCES: u32 = 6;

#[derive(Clone, Copy, Debug)]
struct Vector(f64, f64, f64);

impl Vector {
    fn add(self, other: Vector) -> Vector {
        Vector(self.0 + other.0, self.1 + other.1, self.2 + other.2)
    }

    fn scale(self, factor: f64) -> Vector {
        Vector(self.0 * factor, self.1 * factor, self.2 * factor)
    }

    fn dot(self, other: Vector) -> f64 {
        self.0 * other.0 + self.1 * other.1 + self.2 * other.2
    }

    fn unit(self) -> Vector {
        self.scale(1.0 / self.dot(self).sqrt())
    }

    /// The direction in which a mirror with this normal throws it back.
    fn mirror(self, normal: Vector) -> Vector {
        self.add(normal.scale(-2.0 * self.dot(normal)))
    }
}

#[derive(Clone, Copy, Debug)]
struct Sphere {
    centre: Vector,
    radius: f64,
    brightness: f64,
}

impl Sphere {
    /// How far along a ray it is met, if it is.
    fn meet(&self, from: Vector, along: Vector) -> Option<f64> {
        let to = self.centre.add(from.scale(-1.0));
        let middle = to.dot(along);
        let inside = self.radius * self.radius - (to.dot(to) - middle * middle);
        let far = middle - inside.max(0.0).sqrt();
        (inside > 0.0 && far > 1e-9).then_some(far)
    }
}

#[derive(Debug)]
struct Scene {
    spheres: Vec<Sphere>,
    side: usize,
}

impl Scene {
    fn pixel(&self, at: usize) -> f64 {
        let place = |at: usize| 2.0 * (at as f64 + 0.5) / self.side as f64 - 1.0;
        let along = Vector(place(at % self.side), -place(at / self.side), 1.5).unit();
        self.light(Vector(0.0, 1.0, -4.0), along, BOUNCES)
    }

    /// The light that comes back along a ray.
    fn light(&self, from: Vector, along: Vector, bounces: u32) -> f64 {
        let met =
            self.spheres.iter().filter_map(|sphere| Some((sphere.meet(from, along)?, sphere)));
        let nearest = met.min_by(|a, b| a.0.total_cmp(&b.0));
        let plane = -from.1 / along.1;
        let (far, normal, brightness) = match nearest {
            Some((far, _)) if along.1 < 0.0 && plane < far => (plane, Vector(0.0, 1.0, 0.0), 0.2),
            Some((far, sphere)) => {
                let here = from.add(along.scale(far));
                (far, here.add(sphere.centre.scale(-1.0)).unit(), sphere.brightness)
            }
            None if along.1 < -1e-9 => (plane, Vector(0.0, 1.0, 0.0), 0.2),
            None => return 0.3 + 0.7 * along.1,
        };
        let here = from.add(along.scale(far)).add(normal.scale(1e-6));
        let own = brightness * normal.dot(Vector(0.6, 0.7, -0.4).unit()).max(0.0);
        if bounces == 0 {
            own
        } else {
            own + 0.6 * self.light(here, along.mirror(normal), bounces - 1)
        }
    }
}

/// Paints the picture.
struct Paint<'p> {
    scene: &'p Scene,
    picture: &'p mut [f64],
    grain: usize,
}

impl Task for Paint<'_> {
    type Output = ();

    fn run<F: Fork>(self, mut fork: F) {
        let Paint { scene, picture, grain } = self;
        for_each(&mut fork, picture, grain, &|first, piece| {
            for (at, pixel) in (first..).zip(piece) {
                *pixel = scene.pixel(at);
            }
        });
    }
}

/// With a grain of a row's worth of pixels, or a task for each.
pub(crate) struct Ray<const GRAIN: bool> {
    scene: Scene,
    picture: Vec<f64>,
    expected: Vec<f64>,
}

impl<const GRAIN: bool> Program for Ray<GRAIN> {
    const NAME: &'static str = if GRAIN { "ray-grain" } else { "ray" };

    fn memory(size: Size) -> u64 {
        2 * 8 * (side(size) as u64).pow(2)
    }

    fn new(size: Size) -> Self {
        let side = side(size);
        let spheres = (0..40)
            .map(|at| Sphere {
                centre: Vector(
                    3.0 * noise(31, at),
                    0.6 + noise(32, at) / 2.0,
                    3.0 + 3.0 * noise(33, at),
                ),
                radius: 0.3 + noise(34, at) / 10.0,
                brightness: 0.7 + noise(35, at) / 4.0,
            })
            .collect();
        let scene = Scene { spheres, side };
        // Pixel by pixel, from the last to the first.
        let mut expected: Vec<f64> = (0..side * side).rev().map(|at| scene.pixel(at)).collect();
        expected.reverse();
        Ray { picture: vec![f64::NAN; side * side], scene, expected }
    }

    fn reset(&mut self) {
        self.picture.fill(f64::NAN);
    }

    fn run(&mut self, system: &impl System) {
        let Ray { scene, picture, .. } = self;
        let grain = if GRAIN { 64 } else { 1 };
        system.run(Paint { scene, picture, grain });
    }

    fn check(&self) -> Result<()> {
        let same = |(a, b): (&f64, &f64)| a.to_bits() != b.to_bits();
        let wrong = self.picture.iter().zip(&self.expected).position(same);
        ensure!(wrong.is_none(), "pixel {wrong:?} is wrong");
        Ok(())
    }
}

/// The pixels along a side of the picture.
fn side(size: Size) -> usize {
    size.pick(24, 200, 800, 2000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sphere_is_met_where_it_stands() {
        let sphere = Sphere { centre: Vector(0.0, 0.0, 5.0), radius: 1.0, brightness: 1.0 };
        let origin = Vector(0.0, 0.0, 0.0);
        let far = sphere.meet(origin, Vector(0.0, 0.0, 1.0)).unwrap();
        assert!((far - 4.0).abs() < 1e-12);
        assert!(sphere.meet(origin, Vector(0.0, 1.0, 0.0)).is_none());
        assert!(sphere.meet(origin, Vector(0.0, 0.0, -1.0)).is_none(), "it is behind");
    }

    #[test]
    fn a_mirror_keeps_the_angle() {
        let back = Vector(1.0, -1.0, 0.0).mirror(Vector(0.0, 1.0, 0.0));
        assert!((back.0 - 1.0).abs() < 1e-12 && (back.1 - 1.0).abs() < 1e-12);
    }
}
