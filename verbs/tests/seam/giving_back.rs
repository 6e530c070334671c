//! Tests that everything that is dropped, at any time, gives its heap memory back.

use std::time::Duration;

use doorbell_kit::child;
use doorbell_kit::{abandoned, effort};
use doorbell_simulation::Luck;
use doorbell_verbs::{Buf, Config, Name, Nic, Progress, Region, Rights, ServiceId};
use tokio::runtime::Runtime;

use crate::HELD;

const SERVICE: ServiceId = ServiceId(7);

/// Returns how many rounds are run before the heap is as large as it gets, and then again.
fn count() -> u64 {
    effort(1_000, 2_500)
}

/// How much more the heap may hold after the second rounds than after the first: what a thread of
/// the runtime or of a NIC uses just then. Divided by the rounds it is five bytes at most, less
/// than anything that a round could leave behind.
const SLACK: isize = 4 << 10;

fn opened(end: &str, config: &Config) -> Nic {
    let name = format!("shm:giving-back/{}/{end}", std::process::id());
    Nic::builder()
        .config(config.clone())
        .open_blocking(&name)
        .expect("nobody has it, or nobody any more")
}

/// Makes a connection and memory that is written, and drops futures, registration and queue pairs
/// in any order.
async fn round(near: &Nic, far: &Nic, luck: &mut Luck) {
    let (asks, takes) = (near.domain(), far.domain());
    let mut listener = far.listen(SERVICE).await.expect("nobody else listens");
    let to = far.address().to_string();
    let accepts = async { listener.accept().await.expect("a request").accept(&takes).await };
    let (asked, taken) = tokio::join!(asks.connect(Name::at(&*to, SERVICE.0)), accepts);
    let (asked, taken) = (asked.expect("the peer listens"), taken.expect("the peer waits"));
    let lent = takes.register(Region::new(1 << 14), Rights::REMOTE).expect("room");
    let remote = lent.remote();
    let buf = |len| Buf::from(vec![7; len]);
    abandoned(luck.below(6), asked.write(buf(1 << 14), remote)).await;
    abandoned(luck.below(6), asked.read(Buf::with_capacity(1 << 14), remote)).await;
    abandoned(luck.below(4), taken.recv(Buf::with_capacity(64))).await;
    abandoned(luck.below(4), asked.send(buf(64))).await;
    abandoned(luck.below(4), asked.fetch_add(remote.at(0, 8).expect("within"), 1)).await;
    match luck.below(3) {
        0 => drop(asked),
        1 => drop(taken),
        _ => drop(lent),
    }
}

/// Runs rounds between two NICs, and others between NICs that are dropped in the middle of them.
async fn rounds(near: &Nic, far: &Nic, config: &Config, luck: &mut Luck) {
    for number in 0..count() {
        match number % 10 {
            0 => {
                let (near, far) = (opened("other near", config), opened("other far", config));
                let polls = luck.below(100);
                abandoned(polls, round(&near, &far, luck)).await;
            }
            _ => round(near, far, luck).await,
        }
    }
}

/// Waits until dropped objects have been taken down, and returns how much the heap holds then.
async fn settled() -> isize {
    let mut least = HELD.bytes();
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(1)).await;
        least = least.min(HELD.bytes());
    }
    least
}

#[test]
fn the_heap_does_not_grow_with_dropped_objects() {
    child::alone(|| {
        Runtime::new().expect("a runtime").block_on(async {
            let dedicated = Progress::Dedicated { core: None };
            for (seed, progress) in [(1, Progress::Inline), (2, dedicated)] {
                let config =
                    Config { progress, time_wait: Duration::from_millis(1), ..Config::default() };
                let mut luck = Luck::new(seed);
                let (near, far) = (opened("near", &config), opened("far", &config));
                rounds(&near, &far, &config, &mut luck).await;
                let before = settled().await;
                rounds(&near, &far, &config, &mut luck).await;
                let after = settled().await;
                let rounds = count();
                println!("{before} bytes after {rounds} rounds, {after} after as many again");
                assert!(
                    after <= before + SLACK,
                    "{before} bytes, and {after} after as many rounds again"
                );
            }
        });
    });
}
