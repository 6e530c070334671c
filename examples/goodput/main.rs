//! What a lossy path leaves of its bandwidth to one reliable connection, in virtual time:
//! `cargo run --release --example goodput`

mod measure;

use std::io::{self, Write};

use doorbell::protocol::wire::PathMtu;

use measure::{LOSSES, measure};

fn main() -> io::Result<()> {
    writeln!(
        io::stdout(),
        "Messages of 1 MiB over 10 Gbit/s, 20 µs each way, 128 KiB unacknowledged at most\n"
    )?;
    writeln!(
        io::stdout(),
        "{:>6}  {:>6}  {:>13}  {:>10}  {:>9}",
        "MTU",
        "loss",
        "goodput",
        "sent again",
        "time-outs"
    )?;
    for mtu in [PathMtu::Mtu4096, PathMtu::Mtu1024] {
        for loss in LOSSES {
            let found = measure(mtu, loss, 64);
            writeln!(
                io::stdout(),
                "{:>6}  {:>4.1} %  {:>6.2} Gbit/s  {:>8.2} %  {:>9}",
                mtu.bytes(),
                loss * 100.0,
                found.bits_per_second / 1e9,
                found.again * 100.0,
                found.timeouts,
            )?;
        }
    }
    Ok(())
}
