//! What was published, to compare with.

/// Table 2 of the paper that Doorbell follows.
pub const TABLE: &str = "\
For comparison, in µs, Active Messages over VIA on Myrinet, 550 MHz Pentium III (LANai 7) and 400 MHz
Pentium II (LANai 4): A. Begel, P. Buonadonna, D. E. Culler, D. Gay, \"An Analysis of VI Architecture
Primitives in Support of Parallel and Distributed Communication\" (2001), table 2.
                         o_s     o_r       L       g   RTT/2
AMVIAv1 (LANai 4)        2.7     5.3    45      48.0    53
AMVIAv1 (LANai 7)        3.2     2.8    33.2    34.7    39.2
AMVIAv3 (LANai 7)        3.1     2.9    29.6    30.0    35.6";
