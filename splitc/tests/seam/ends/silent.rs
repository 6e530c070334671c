//! Processes that are silent over a network: one that computes is not taken for dead, and one that
//! does nothing at all any more is.

use std::time::{Duration, Instant};

use doorbell_kit::child::{self, Child};
use doorbell_splitc::{Carrier, Config, World};

use crate::common::{by, carriers, in_time, run};
use crate::ends::killed;

/// How long a process may be silent: longer than a busy machine keeps a thread waiting.
const PATIENCE: Duration = Duration::from_millis(1200);

/// Computes, calls nothing of the world, and leaves the processor to others: for so long that they
/// would take a silent process for dead several times.
fn compute() {
    let begun = Instant::now();
    while begun.elapsed() < 4 * PATIENCE {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Has one of three processes compute while the others wait for it in several ways.
fn waits_for_a_computation(carrier: Carrier) {
    let config = Config { patience: PATIENCE, ..by(carrier) };
    run(3, "udp", config, async |world| {
        let array = world.blocked::<u64>(3000).await?;
        world.barrier().await?;
        let one_each = || world.all_reduce(1_u64, |one, other| one + other);
        let own = 1000 * world.rank();
        if world.rank() == 1 {
            // A NIC that finds nothing for a while looks at one of its sockets most of the time.
            (0..1000).for_each(|_| world.poll());
            compute();
            array.at(0).write(3).await?;
            array.at(2000).write(3).await?;
            assert_eq!(one_each().await?, 3);
        } else {
            // Under way while the other process computes: operations, stores, a collective, and a
            // wait for a word.
            let begun = one_each().begin()?;
            let theirs = world.span(array.pointer(1000)?, 1000);
            theirs.put(&[5; 1000])?;
            array.at(1001).store(6)?;
            let got = array.at(1002).get_add(1)?;
            array.at(own).wait_until(|value| value == 3).await?;
            world.sync().await?;
            got.value()?;
            assert_eq!(begun.done().await?, 3);
        }
        Ok(world.all_store_sync().await?)
    });
}

/// In an earlier version, nothing answered for a process that computed. In a later one its NIC took
/// too few turns for that: once in a few runs no turn looked at the socket where the probes of a
/// peer came.
#[test]
fn by_udp_a_process_that_computes_for_longer_than_patience_is_not_taken_for_dead() {
    std::thread::scope(|scope| {
        for &carrier in carriers("udp") {
            scope.spawn(move || waits_for_a_computation(carrier));
        }
    });
}

/// Stops another process, and waits for all kinds of things that only that process could do.
fn notices(carrier: Carrier, test: &str) {
    let mut other = Child::start(test, &format!("udp {carrier}"), None);
    let address = other.hear();
    let nic = killed::open("udp", "");
    other.say(nic.address());
    killed::run(async {
        let addresses = [nic.address().to_string(), address];
        let config = killed::config(carrier);
        let world = World::join_on(&nic, 0, &addresses, &config).await.expect("a world");
        let array = world.blocked::<u64>(4000).await.expect("room");
        world.barrier().await.expect("it is there");
        assert_eq!(other.hear(), "ready");
        other.stop();
        let whole = || world.span(array.pointer(2000).expect("it is there"), 1000);
        let all = tokio::join!(
            async { array.at(2001).read().await.map(drop) },
            async { array.at(2002).write(1).await },
            async { array.at(2003).fetch_add(1).await.map(drop) },
            async { whole().read().await.map(drop) },
            async { world.store_sync(8).await },
            async { array.at(1).wait_until(|value| value == 1).await.map(drop) },
            async { world.barrier().await },
        );
        let (a, b, c, d, e, f, g) = all;
        for (number, ended) in [a, b, c, d, e, f, g].into_iter().enumerate() {
            let why = ended.expect_err("the process does nothing any more");
            assert_eq!(why.gone(), Some(1), "{carrier}, {number}: {why}");
        }
        // Later operations fail at once.
        assert_eq!(array.at(2001).store(1).expect_err("it has gone").gone(), Some(1));
    });
}

#[test]
fn by_udp_a_process_that_is_stopped_is_taken_for_dead_by_whatever_waits_for_it() {
    if let Some(part) = child::part() {
        return killed::dies(&part);
    }
    let test =
        "ends::silent::by_udp_a_process_that_is_stopped_is_taken_for_dead_by_whatever_waits_for_it";
    in_time(move || carriers("udp").iter().for_each(|carrier| notices(*carrier, test)));
}
