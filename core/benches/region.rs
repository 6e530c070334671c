//! Bytes into and out of a region, aligned and not, beside plain memory of the same size.

use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use criterion::{BenchmarkId, measurement::WallTime};
use doorbell_core::memory::Region;
use std::hint::black_box;
use std::time::Duration;

/// The sizes: a word, a packet, more than the nearer caches hold.
const SIZES: [usize; 3] = [8, 4 << 10, 1 << 20];
/// Where a range begins, beside its name.
const PLACES: [(&str, usize); 2] = [("aligned", 0), ("unaligned", 3)];

fn write(c: &mut Criterion) {
    each_size(c, "write", |group, size| {
        let from = vec![7; size];
        let region = Region::new(size + 8);
        for (place, at) in PLACES {
            group.bench_function(BenchmarkId::new(place, size), |b| {
                b.iter(|| region.write_at(black_box(at), black_box(&from)));
            });
        }
    });
}

fn read(c: &mut Criterion) {
    each_size(c, "read", |group, size| {
        let mut to = vec![0; size];
        let region = Region::new(size + 8);
        for (place, at) in PLACES {
            group.bench_function(BenchmarkId::new(place, size), |b| {
                b.iter(|| region.read_at(black_box(at), black_box(&mut to)));
            });
        }
    });
}

fn copy(c: &mut Criterion) {
    each_size(c, "copy", |group, size| {
        let (from, to) = (Region::new(size + 8), Region::new(size + 8));
        for (place, at) in PLACES {
            group.bench_function(BenchmarkId::new(place, size), |b| {
                b.iter(|| from.copy_to(black_box(at), &to, 0, black_box(size)));
            });
        }
    });
}

/// Runs one kind of access at every size, and plain memory beside it.
fn each_size(
    c: &mut Criterion,
    kind: &str,
    run: impl Fn(&mut BenchmarkGroup<'_, WallTime>, usize),
) {
    let mut group = c.benchmark_group(kind);
    group.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(400));
    for size in SIZES {
        group.throughput(Throughput::Bytes(size as u64));
        let (from, mut to) = (vec![7u8; size], vec![0u8; size]);
        group.bench_function(BenchmarkId::new("memcpy", size), |b| {
            b.iter(|| black_box(&mut to).copy_from_slice(black_box(&from)));
        });
        run(&mut group, size);
    }
    group.finish();
}

criterion_group!(benches, write, read, copy);
criterion_main!(benches);
