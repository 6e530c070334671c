//! How much memory a process takes that sends more than its peer takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use doorbell_kit::child;
use doorbell_kit::{PATIENCE, effort};
use doorbell_splitc::{Carrier, Error, Spread, World};

use crate::common::{by, run};

/// More than all messages and requests under way take, and less than all that is sent would take.
/// The table of the 33,280 reads that are under way at most has 2 MiB, if it has just doubled.
use crate::HELD;

const BOUND: isize = 3 << 20;

/// What is sent in masses.
#[derive(Clone, Copy, Debug)]
enum Sends {
    Stores,
    StoredAdds,
    Puts,
    Gets,
    StoresSoon,
    AddsSoon,
    SpansSoon,
}

const ALL: [Sends; 7] = [
    Sends::Stores,
    Sends::StoredAdds,
    Sends::Puts,
    Sends::Gets,
    Sends::StoresSoon,
    Sends::AddsSoon,
    Sends::SpansSoon,
];

async fn send(world: &World, array: &Spread<u64>, sends: Sends, number: u64) -> Result<(), Error> {
    let place = array.at(1000 + number as usize % 1000);
    match sends {
        Sends::Stores => place.store(number),
        Sends::StoredAdds => place.store_add(1),
        Sends::Puts => place.put(number).map(drop),
        Sends::Gets => place.get().map(drop),
        Sends::StoresSoon => place.store_async(number).await,
        Sends::AddsSoon => place.store_add_async(1).await,
        Sends::SpansSoon => world.span(place.pointer(), 1).store_async(&[number]).await,
    }
}

/// Does nothing for the world until a count has not changed for a while, which it must have done
/// before.
fn deaf_until_held_up(count: &AtomicU64) -> u64 {
    let begun = Instant::now();
    let (mut last, mut since) = (0, Instant::now());
    loop {
        let now = count.load(Ordering::Acquire);
        if now != last {
            (last, since) = (now, Instant::now());
        }
        // Whoever sends more slowly than this is found out by too small a count, and not taken for
        // held up.
        if last > 0 && since.elapsed() > Duration::from_millis(200) {
            return last;
        }
        assert!(begun.elapsed() < PATIENCE * effort(1, 20), "it goes on and on: {last}");
        std::thread::yield_now();
    }
}

#[test]
fn whoever_sends_more_than_a_peer_takes_is_held_up_in_bounded_memory() {
    child::alone(|| {
        for device in ["shm", "udp"] {
            for carrier in [Carrier::OneSided, Carrier::Messages, Carrier::Mixed] {
                for sends in ALL {
                    if matches!(sends, Sends::AddsSoon | Sends::SpansSoon)
                        && (device, carrier) != ("shm", Carrier::Messages)
                    {
                        // They wait for room as other stores by messages do.
                        continue;
                    }
                    let what = format!("{device}, {carrier}, {sends:?}");
                    let total = match carrier {
                        Carrier::OneSided => effort(30_000, 300_000),
                        _ => effort(300_000, 2_000_000),
                    };
                    let (count, begins) =
                        (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
                    // A peer that is deaf for a while is not to be taken for dead.
                    let config = doorbell_splitc::Config { patience: PATIENCE, ..by(carrier) };
                    run(2, device, config, async move |world| {
                        let array = world.blocked::<u64>(2000).await?;
                        // All that is needed once is there before it is counted.
                        for number in 0..5000 {
                            if world.rank() == 0 {
                                send(&world, &array, sends, number).await?;
                            }
                        }
                        world.sync().await?;
                        world.all_store_sync().await?;
                        if world.rank() == 1 {
                            let before = HELD.bytes();
                            begins.store(true, Ordering::Release);
                            let held_up_at = deaf_until_held_up(&count);
                            let more = HELD.bytes() - before;
                            // What the peer's NIC does alone goes on: a thread of the peer's process
                            // runs it that is not the program's. Additions are messages.
                            let by_nic =
                                carrier == Carrier::OneSided && !matches!(sends, Sends::StoredAdds);
                            let is_held_up = !by_nic;
                            assert_eq!(held_up_at < total, is_held_up, "{what}: at {held_up_at}");
                            assert!(more < BOUND, "{what}: {more} bytes more at {held_up_at}");
                        } else {
                            while !begins.load(Ordering::Acquire) {
                                world.flush().await?;
                                tokio::task::yield_now().await;
                            }
                            for number in 0..total {
                                send(&world, &array, sends, number).await?;
                                count.fetch_add(1, Ordering::Release);
                            }
                        }
                        world.sync().await?;
                        world.all_store_sync().await?;
                        let last = array.at(1999).read().await?;
                        match sends {
                            Sends::Gets => {}
                            Sends::StoredAdds | Sends::AddsSoon => {
                                assert_eq!(last, (total + 5000) / 1000, "{what}");
                            }
                            _ => assert_eq!(last, total - 1, "{what}"),
                        }
                        Ok(world.barrier().await?)
                    });
                }
            }
        }
    });
}
