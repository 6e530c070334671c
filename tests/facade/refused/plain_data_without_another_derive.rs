use doorbell::am::Plain;
use zerocopy::{FromBytes, IntoBytes};

#[derive(Plain, FromBytes, IntoBytes, Clone, Copy)]
#[repr(C)]
struct Point {
    x: f64,
    y: f64,
}

fn main() {}
