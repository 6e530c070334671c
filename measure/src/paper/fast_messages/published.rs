//! The numbers that the paper published.

/// The paper, and where in it.
pub fn cited(place: &str) -> String {
    format!(
        "M. Lauria, S. Pakin, A. A. Chien, Efficient Layering for High Speed Communication: Fast \
         Messages 2.x, 1998, {place}"
    )
}

/// Figure 5, of Fast Messages 2.1: the least latency in microseconds, the peak bandwidth in
/// megabytes a second, and a bound of the length that has half of that, in bytes.
pub const LATENCY: f64 = 11.0;
pub const PEAK: f64 = 77.0;
pub const HALF_LENGTH: f64 = 256.0;

/// Figure 6, of MPI on Fast Messages 2.0: the same, and which part of the bandwidth below it the
/// layer has of messages of 16 bytes and at its best, in per cent.
pub const LAYER_LATENCY: f64 = 17.0;
pub const LAYER_PEAK: f64 = 70.0;
pub const SHARE_OF_SHORT: f64 = 70.0;
pub const SHARE_AT_BEST: f64 = 90.0;
