//! What the NIC itself costs: two of them joined in memory, both on this one thread.
//!
//! `cargo bench -p doorbell-core --bench nic`

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use doorbell_core::nic::{Memory, WorkRequest};
use doorbell_core::wire::{Crc, PathMtu, RemoteAddr};

#[allow(dead_code, reason = "each benchmark uses a part of it")]
mod joined;

use joined::{Carry, End, advance, ask, by_cable, by_ring, send, send_burst};

fn one_send(c: &mut Criterion) {
    let mut group = c.benchmark_group("one 16-byte send, both sides");
    let (mut a, mut b) = by_cable(1, PathMtu::Mtu4096, 1);
    group.bench_function("RoCE v2", |bench| bench.iter(|| send(&mut a, &mut b, 0)));
    let (mut a, mut b) = by_ring(1, PathMtu::Mtu4096);
    group.bench_function("lossless", |bench| bench.iter(|| send(&mut a, &mut b, 0)));
    group.finish();

    let mut group = c.benchmark_group("16 sends of 16 bytes, both sides");
    group.throughput(Throughput::Elements(16));
    let (mut a, mut b) = by_cable(1, PathMtu::Mtu4096, 16);
    group.bench_function("RoCE v2", |bench| bench.iter(|| send_burst(&mut a, &mut b, 0, 16)));
    let (mut a, mut b) = by_ring(1, PathMtu::Mtu4096);
    group.bench_function("lossless", |bench| bench.iter(|| send_burst(&mut a, &mut b, 0, 16)));
    group.finish();
}

/// What asks for something goes there and comes back, as two sends would.
fn one_sided(c: &mut Criterion) {
    fn each<O: Carry>(c: &mut Criterion, name: &str, (mut a, mut b): (End<O>, End<O>)) {
        let mut group = c.benchmark_group(format!("8 bytes, both sides, {name}"));
        let (address, rkey) = (b.memory.address, b.memory.rkey);
        let into = a.memory.segment(0, 8);
        group.bench_function("read", |bench| {
            bench.iter(|| {
                let request = WorkRequest::read(2, address, rkey, into);
                ask(&mut a, &mut b, request);
            });
        });
        group.bench_function("fetch and add", |bench| {
            bench.iter(|| ask(&mut a, &mut b, WorkRequest::fetch_add(2, address, rkey, 1)));
        });
        group.bench_function("two sends", |bench| {
            bench.iter(|| {
                send(&mut a, &mut b, 0);
                send(&mut a, &mut b, 0);
            });
        });
        group.finish();
    }
    each(c, "RoCE v2", by_cable(1, PathMtu::Mtu4096, 1));
    each(c, "lossless", by_ring(1, PathMtu::Mtu4096));
}

/// Ten thousand queue pairs, each of which has carried traffic, and its timers armed.
fn many_pairs(c: &mut Criterion) {
    const MANY: usize = 10_000;
    let mut group = c.benchmark_group("one 16-byte send, both sides, among");
    for pairs in [1, MANY] {
        let (mut a, mut b) = by_cable(pairs, PathMtu::Mtu4096, 1);
        let mut now = 0;
        for index in 0..pairs {
            now += 1000;
            advance(&mut a, &mut b, now);
            send(&mut a, &mut b, index);
        }
        group.bench_function(BenchmarkId::from_parameter(pairs), |bench| {
            bench.iter(|| {
                now += 200;
                advance(&mut a, &mut b, now);
                send(&mut a, &mut b, 0);
            });
        });
        let mut index = 0;
        group.bench_function(BenchmarkId::new("in turn", pairs), |bench| {
            bench.iter(|| {
                now += 200;
                index = if index + 1 == pairs { 0 } else { index + 1 };
                advance(&mut a, &mut b, now);
                send(&mut a, &mut b, index);
            });
        });
    }
    group.finish();
}

const MEBIBYTE: usize = 1 << 20;

fn write_mebibyte<O: Carry>(a: &mut End<O>, b: &mut End<O>) {
    let (from, to) = (a.memory.segment(0, MEBIBYTE as u32), b.memory);
    let address = RemoteAddr(to.address.0);
    let write = WorkRequest::write(3, address, to.rkey, Memory::Segment(from));
    a.pairs[0].1.post(write).expect("room");
    a.pairs[0].1.ring();
    loop {
        O::turn(a, b);
        if let Some(completion) = a.queue.poll() {
            assert!(completion.outcome.is_ok(), "{completion:?}");
            break;
        }
    }
}

fn bulk(c: &mut Criterion) {
    let mut group = c.benchmark_group("write of 1 MiB in packets of 4 KiB");
    group.throughput(Throughput::Bytes(MEBIBYTE as u64));
    let (mut a, mut b) = by_cable(1, PathMtu::Mtu4096, 15);
    group.bench_function("RoCE v2", |bench| bench.iter(|| write_mebibyte(&mut a, &mut b)));
    // What it can't do without: out of the region and into the other, and a CRC on either side.
    let (region, other) = (a.region.clone(), b.region.clone());
    let mut frames = vec![0; MEBIBYTE];
    group.bench_function("two copies and two CRCs alone", |bench| {
        bench.iter(|| {
            let mut crcs = 0;
            for (index, packet) in frames.chunks_exact_mut(4096).enumerate() {
                region.read_at(index * 4096, packet).expect("within");
                crcs ^= Crc::NEW.update(packet).finish();
            }
            for (index, packet) in frames.chunks_exact(4096).enumerate() {
                crcs ^= Crc::NEW.update(packet).finish();
                other.write_at(index * 4096, packet).expect("within");
            }
            black_box(crcs)
        });
    });
    let (mut a, mut b) = by_ring(1, PathMtu::Mtu4096);
    group.bench_function("lossless", |bench| bench.iter(|| write_mebibyte(&mut a, &mut b)));
    group.finish();
}

fn short() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
}

criterion_group! { name = benches; config = short(); targets = one_send, one_sided, many_pairs, bulk }
criterion_main!(benches);
