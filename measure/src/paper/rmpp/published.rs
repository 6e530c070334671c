//! The numbers that the paper published, each with the table or figure that has it.

/// The paper, and where in it.
pub fn cited(place: &str) -> String {
    format!(
        "A. B. Maccabe, W. Zhu, J. Otto, R. Riesen, Experience in Offloading Protocol Processing to a \
         Programmable NIC, 2002, {place}"
    )
}

/// The bandwidth of each step, in megabytes a second.
pub const STEPS: [f64; 3] = [35.0, 50.0, 69.0];

/// The bandwidth with the request for more 0 and 15 frames early, in megabytes a second.
pub const EARLY: [(f64, f64); 2] = [(0.0, 69.0), (15.0, 88.0)];

/// The bubble between two windows, in microseconds: by the bandwidths, and by the sum of what has
/// to be done.
pub const BUBBLE: [f64; 2] = [72.0, 75.0];

/// The bandwidth in megabytes a second, the availability in per cent, and the effective bandwidth
/// in megabytes a second, of each step.
pub const AVAILABLE: [[f64; 3]; 3] = [[21.0, 60.0, 13.0], [38.0, 60.0, 23.0], [42.0, 85.0, 36.0]];
