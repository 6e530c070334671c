//! What was published, to compare with.

/// The paper whose parameters stand beside those of this machine.
pub const PAPER: &str = "A. Begel, P. Buonadonna, D. E. Culler, D. Gay, An Analysis of VI \
    Architecture Primitives in Support of Parallel and Distributed Communication (2001), table 2: \
    Active Messages over VIA on Myrinet. LANai 4: two 400 MHz Pentium II; LANai 7: four 550 MHz \
    Pentium III Xeon";

/// The paper and its table in short, for figures.
pub const PAPER_IN_SHORT: &str = "A. Begel and others, 2001, table 2 (Active Messages on Myrinet)";

/// The heading of the rows of table 2 among others, and what their names have where they stand alone.
pub const HEADING: &str = "Published in 2001";
pub const SUFFIX: &str = " (2001)";

/// A row of table 2, in microseconds: o_s, o_r, L, g, half a round trip.
pub struct Row {
    pub name: &'static str,
    pub values: [f64; 5],
}

/// The rows of table 2.
pub const TABLE_2: [Row; 3] = [
    Row { name: "AMVIAv1, LANai 4", values: [2.7, 5.3, 45.0, 48.0, 53.0] },
    Row { name: "AMVIAv1, LANai 7", values: [3.2, 2.8, 33.2, 34.7, 39.2] },
    Row { name: "AMVIAv3, LANai 7", values: [3.1, 2.9, 29.6, 30.0, 35.6] },
];
