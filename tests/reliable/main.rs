//! Reliable connections between NICs on a simulated fabric.

mod smoke;
