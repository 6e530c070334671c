//! The numbers that the paper published, each with the table or figure that has it.

/// How the paper is cited, before the number of a table.
pub const PAPER: &str = "A. Begel, P. Buonadonna, D. E. Culler, D. Gay, An Analysis of VI \
    Architecture Primitives in Support of Parallel and Distributed Communication, 2001";

/// The paper, and where in it.
pub fn cited(place: &str) -> String {
    format!("{PAPER}, {place}")
}

/// Table 1 of the paper: half a round trip in microseconds, and throughput in megabytes a second.
pub const NATIVE: [(&str, f64, f64); 4] = [
    ("LANai 4 VI", 33.1, 62.8),
    ("LANai 7 VI", 30.2, 68.3),
    ("Giganet cLAN", 24.0, 70.0),
    ("Compaq ServerNet II", 7.4, 180.0),
];

/// Table 2, in microseconds: half a round trip, Δ, L, o_s, o_r, g.
pub const PARAMETERS: [(&str, [f64; 6]); 3] = [
    ("AMVIAv1, LANai 4", [53.0, 19.9, 45.0, 2.7, 5.3, 48.0]),
    ("AMVIAv1, LANai 7", [39.2, 9.0, 33.2, 3.2, 2.8, 34.7]),
    ("AMVIAv3, LANai 7", [35.6, 5.4, 29.6, 3.1, 2.9, 30.0]),
];

/// Tables 3 and 4, in per cent: base, event notification, flow control, semantics.
pub const REQUEST_AND_REPLY: [f64; 4] = [32.5, 44.2, 14.4, 8.9];
pub const GET: [f64; 4] = [36.1, 46.9, 11.6, 5.4];

/// Table 5, in microseconds, of a message of 1 KB: copying it, receiving a short message, both.
pub const BULK_DIFFERENCE: [f64; 3] = [4.0, 14.5, 18.5];

/// Section 7.4 of the paper: the VI benchmark's rate for messages of 32 bytes, and where the curves
/// of AMVIAv3 and Split-C have their knee, in bytes and megabytes a second.
pub const SHORT_STREAM: (f64, f64) = (32.0, 2.2);
pub const KNEE: (f64, f64) = (4096.0, 44.0);
