//! What a job of many threads takes of its process: descriptors, addresses and memory.

use doorbell_kit::child;
use doorbell_splitc::{Carrier, Config, Job, World};

/// A number of bytes that the kernel tells of this process, by its name in `/proc/self/status`.
fn bytes(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("proc");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("the kernel says it");
    let kib = line.trim_start_matches(':').split_whitespace().next().expect("a number");
    1024 * kib.parse::<u64>().expect("a number")
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("proc").count()
}

/// Each thread writes to all others, and finds what they have written.
async fn everybody_reaches_everybody(world: &World) -> Result<(), doorbell_splitc::Error> {
    let (rank, size) = (world.rank(), world.size());
    let array = world.blocked::<u64>(size * size).await?;
    for other in 0..size {
        array.at(other * size + rank).put((100 * rank + other) as u64)?;
    }
    world.sync().await?;
    world.barrier().await?;
    for other in 0..size {
        let found = array.at(rank * size + other).read().await?;
        assert_eq!(found, (100 * other + rank) as u64, "{rank} of {size}, from {other}");
    }
    world.barrier().await
}

/// Each pair of threads had sockets and rings of its own, and each thread mapped the heaps of all:
/// 64 took 5,002 descriptors, 4.3 TB of addresses and 2.9 GB of memory.
#[test]
fn a_job_of_64_threads_takes_300_descriptors_and_300_mb() {
    const THREADS: usize = 64;
    child::alone(|| {
        let heap = Config::default().heap as u64;
        Job::threads(THREADS)
            .run(async |world| {
                everybody_reaches_everybody(&world).await?;
                if world.rank() == 0 {
                    let (open, all, resident) = (descriptors(), bytes("VmSize"), bytes("VmRSS"));
                    println!("{open} descriptors, {all} bytes of addresses, {resident} resident");
                    assert!(open <= 300, "{open} descriptors");
                    // The heaps once, and 20 MB for each thread: stacks, and arenas of the allocator.
                    let most = THREADS as u64 * (heap + (84 << 20));
                    assert!(all <= most, "{all} bytes of addresses are more than {most}");
                    assert!(resident <= 300_000_000, "{resident} bytes are resident");
                }
                Ok(world.barrier().await?)
            })
            .expect("a job");
    });
}

#[test]
fn threads_that_share_a_nic_reach_each_other_by_every_carrier() {
    for carrier in [Carrier::Mapped, Carrier::OneSided, Carrier::Messages, Carrier::Mixed] {
        // Two NICs, one of which is for three threads.
        for size in [9, 35] {
            let config = Config { heap: 4 << 20, ..Config::default() };
            let job = Job::threads(size).config(config).carrier(carrier);
            job.run(async |world| {
                everybody_reaches_everybody(&world).await?;
                let sum = world.all_reduce(world.rank(), |a, b| a + b).await?;
                assert_eq!(sum, size * (size - 1) / 2, "{carrier}");
                Ok(())
            })
            .unwrap_or_else(|why| panic!("{carrier}, {size}: {why}"));
        }
    }
}

/// A thread that shares a NIC with others ends, and each of them is told.
#[test]
fn threads_that_share_a_nic_are_told_of_one_that_ends() {
    let ended = Job::threads(12).run(async |world| {
        world.barrier().await?;
        if world.rank() == 5 {
            return Err("as it should".into());
        }
        let why = world.barrier().await.expect_err("one has ended");
        // It may notice one first that has ended for the same reason.
        assert!(why.gone().is_some(), "{why}");
        Err::<(), _>(why.into())
    });
    let why = ended.expect_err("one has failed").to_string();
    assert_eq!(why, "process 5: as it should");
}
