//! The sequential program with which the parallel one is compared.

use std::time::{Duration, Instant};

use crate::graph::{Kind, Shape};

/// Simulates `steps` steps. Returns the values of the electric and of the magnetic nodes in the
/// end, and how long the steps took.
pub fn simulate(shape: &Shape, steps: u32) -> ([Vec<f64>; 2], Duration) {
    let mut electric = shape.whole(Kind::Electric);
    let mut magnetic = shape.whole(Kind::Magnetic);
    let start = Instant::now();
    for _ in 0..steps {
        electric.edges.update(&mut electric.values, &magnetic.values);
        magnetic.edges.update(&mut magnetic.values, &electric.values);
    }
    let time = start.elapsed();
    ([electric.values, magnetic.values], time)
}
