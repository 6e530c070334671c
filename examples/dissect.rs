//! Prints what a capture of RoCE holds: `cargo run --example dissect -- FILE.pcap`

use std::env;
use std::error::Error;
use std::io::{self, BufWriter, Write};

use doorbell::protocol::encap::Opener;
use doorbell::protocol::pcap::Reader;

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("usage: dissect FILE.pcap")?;
    let file = std::fs::read(&path).map_err(|why| format!("{path}: {why}"))?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut opener = Opener::default();
    for (number, record) in (1..).zip(Reader::new(&file)?) {
        let arrival = match opener.open(record?.data, None) {
            Ok(arrival) => arrival,
            Err(why) => {
                writeln!(out, "{number:5}  {why}")?;
                continue;
            }
        };
        let (source, destination) = arrival.outer().gids();
        for packet in arrival {
            write!(out, "{number:5}  {source} → {destination}  ")?;
            match packet {
                Err(why) => writeln!(out, "{why}")?,
                Ok(packet) => {
                    let bth = packet.headers.bth;
                    let (to, psn, len) = (bth.destination(), bth.psn(), packet.payload.len());
                    writeln!(out, "{:?} to {to}, psn {psn}, {len} bytes", bth.opcode())?;
                }
            }
        }
    }
    Ok(out.flush()?)
}
