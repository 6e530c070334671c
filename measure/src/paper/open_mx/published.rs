//! The numbers that the paper published, each with the table or figure that has it.

/// How the paper is cited, before the number of a table.
const PAPER: &str = "B. Goglin, High-Performance Message Passing over generic Ethernet Hardware \
    with Open-MX, Parallel Computing 37 (2), 2011";

/// The paper, and where in it.
pub fn cited(place: &str) -> String {
    format!("{PAPER}, {place}")
}

/// Half a round trip on the tuned 10G network in microseconds, by section 5.2.
pub const LATENCY_TCP: f64 = 13.2;
pub const LATENCY: f64 = 7.3;
/// The rate of the 10G wire in mebibytes a second, which large messages reach, by section 5.3.
pub const WIRE: f64 = 1186.0;

/// The share of the processor that receiving takes in per cent, by section 5.3: for messages of 32
/// kB and of several megabytes, without the copy engine, and with it.
pub const RECEIVING: [(&str, f64, f64); 2] =
    [("copied by the processor", 50.0, 95.0), ("copied by the copy engine", 42.0, 60.0)];

/// The per cent by which collectives are faster than with TCP, by table 1: at 16 bytes, 4 kB, 64 kB
/// and 4 MB.
pub const COLLECTIVES: [(&str, [f64; 4]); 9] = [
    ("SendRecv", [107.0, 4.66, 8.88, 32.7]),
    ("Exchange", [143.0, 8.38, 24.2, 29.0]),
    ("Allreduce", [87.9, 2.51, 11.6, 4.77]),
    ("Reduce", [64.7, 23.1, 26.5, -23.6]),
    ("Allgather", [79.2, -7.1, 21.5, 56.0]),
    ("Gather", [72.5, 52.6, 4.57, 76.4]),
    ("Scatter", [86.3, 51.6, 18.4, 80.9]),
    ("Alltoall", [47.0, 15.2, 47.2, 54.7]),
    ("Bcast", [44.6, 20.1, -26.9, -39.6]),
];
/// The per cent by which barriers are faster than with TCP, by table 1.
pub const BARRIER: f64 = 73.7;

/// Seconds over TCP and over Open-MX, by table 3: in class C with 16 processes on two nodes.
pub const KERNELS: [(&str, f64, f64); 2] = [("is", 5.84, 5.62), ("ep", 30.40, 30.66)];
