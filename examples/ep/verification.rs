//! What the result must be.

use anyhow::{Result, ensure};

use super::deviates::Tally;
use super::nas::Class;

/// The greatest relative error that a sum may have.
const EPSILON: f64 = 1e-8;

/// Returns the logarithm to base 2 of how many pairs of uniform random numbers a class has, the
/// sums that the deviates must have, and how many pairs of deviates there must be. The values are
/// those of the NAS Parallel Benchmarks 3, file `ep.f`.
fn reference(class: Class) -> (u32, [f64; 2], u64) {
    match class {
        Class::S => (24, [-3.24783465203474e3, -6.958407078382297e3], 13_176_389),
        Class::W => (25, [-2.863319731645753e3, -6.320053679109499e3], 26_354_769),
        Class::A => (28, [-4.295875165629892e3, -1.580732573678431e4], 210_832_767),
    }
}

/// How many pairs of uniform random numbers a class has.
pub fn uniform_pairs(class: Class) -> u64 {
    1 << reference(class).0
}

/// Checks the sums and the number of pairs of a class.
pub fn verify(class: Class, tally: &Tally) -> Result<()> {
    let (_, sums, pairs) = reference(class);
    for (axis, (found, expected)) in ["x", "y"].iter().zip(tally.sums.into_iter().zip(sums)) {
        let error = ((found - expected) / expected).abs();
        ensure!(
            error <= EPSILON,
            "not verified: the sum of {axis} is {found:.15e} and must be {expected:.15e}"
        );
    }
    let found = tally.pairs();
    ensure!(found == pairs, "not verified: there are {found} pairs and must be {pairs}");
    Ok(())
}
