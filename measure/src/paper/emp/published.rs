//! The numbers that the paper published, each with the table or figure that has it.

/// The paper, and where in it.
pub fn cited(place: &str) -> String {
    format!(
        "P. Shivam, P. Wyckoff, D. Panda, EMP: Zero-copy OS-bypass NIC-driven Gigabit Ethernet \
         Message Passing, 2001, {place}"
    )
}

/// Half a round trip, in microseconds, by the length in bytes.
pub const LATENCY: [(f64, f64); 2] = [(4.0, 23.0), (1500.0, 36.0)];

/// The throughput of messages of 4 kB, and the most that TCP has, in megabytes a second: 880 and
/// 600 Mb/s.
pub const RATE: (f64, f64) = (4096.0, 110.0);
pub const TCP_RATE: f64 = 75.0;

/// Table 2, in microseconds: posting a send, posting a receive, waiting.
pub const CALLS: [(&str, [f64; 3]); 3] = [
    ("TCP (2001)", [137.0, 4.0, 126.0]),
    ("GM (2001)", [66.0, 1.0, 123.0]),
    ("EMP (2001)", [53.0, 9.0, 3.0]),
];
