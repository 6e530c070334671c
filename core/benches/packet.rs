//! What a packet costs to encode and to open, ICRC included: alone, and in runs as segmentation
//! offload takes them.
//!
//! `cargo bench -p doorbell-core --bench packet`

use std::hint::black_box;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use doorbell_core::encap::{Opener, Outer, Path, PathId, Run};
use doorbell_core::payload::Payload;
use doorbell_core::wire::{
    Bth, DmaLength, Extensions, Gid, Headers, IpId, Mac, Opcode, Psn, Qpn, RemoteAddr, Reth, Rkey,
};

const RUN: u32 = 128;

fn outers() -> [(&'static str, Outer); 3] {
    let (here, there) = (Mac([2, 0xDB, 0, 0, 0, 1]), Mac([2, 0xDB, 0, 0, 0, 2]));
    let v2 = |from: [IpAddr; 2]| {
        let [source, destination] = from;
        let (source, destination) = ((source, 0xC000).into(), (destination, 4791).into());
        Outer::v2((here, there), source, destination).expect("one family")
    };
    let ipv6 = [here, there].map(|mac| Ipv6Addr::from(Gid::from_mac(mac)).into());
    let ipv4 = [1, 2].map(|host| [10, 0, 0, host].into());
    [("v1", Outer::v1((here, there))), ("v2 IPv4", v2(ipv4)), ("v2 IPv6", v2(ipv6))]
}

#[inline]
fn write(psn: u32, len: usize) -> Headers {
    let reth = Reth {
        address: RemoteAddr(0x1000_0000 + u64::from(psn) * 8),
        rkey: Rkey(0x5A),
        length: DmaLength(len as u32),
    };
    Headers {
        bth: Bth::new(Opcode::RcWriteOnly, Qpn::new(0x2A), Psn::new(psn)),
        extensions: Extensions::Reth(reth),
    }
}

fn fill(path: &Path, frame: &mut [u8], count: u32, data: &[u8]) -> usize {
    let mut run = Run::begin(path, frame, IpId(7), count);
    for psn in 0..count {
        run.push(path, frame, black_box(write(psn, data.len())), black_box(data)).expect("room");
    }
    run.seal(frame).len
}

fn packets(c: &mut Criterion) {
    for (name, outer) in outers() {
        let path = Path::new(PathId(0), outer);
        let mut frame = vec![0; 1 << 17];
        for (count, size) in [(1, 16), (RUN, 8), (15, 4096)] {
            if outer.len() == 54 && count > 1 {
                continue; // RoCE v1 has nothing to offload
            }
            let data = vec![0x5A; size];
            let mut group = c.benchmark_group(format!("{name}, {count} × {size} B"));
            group.throughput(Throughput::Elements(count.into()));
            group.bench_function("encode", |b| b.iter(|| fill(&path, &mut frame, count, &data)));
            let len = fill(&path, &mut frame, count, &data);
            let segment = (count > 1).then_some(((len - outer.len()) as u32 / count) as u16);
            let mut opener = Opener::default();
            let mut place = vec![0; 4096];
            group.bench_function("open", |b| {
                b.iter(|| {
                    for packet in opener.open(black_box(&frame[..len]), segment).expect("headers") {
                        packet.expect("a whole packet").payload.copy_to(black_box(&mut place));
                    }
                });
            });
            group.finish();
        }
    }
}

fn short() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(700))
}

criterion_group! { name = benches; config = short(); targets = packets }
criterion_main!(benches);
