//! A process that is killed.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use doorbell_kit::child::{self, Child};
use doorbell_splitc::{Carrier, Config, Error, World};
use doorbell_verbs::Nic;
use tokio::task::LocalSet;

use crate::common::{by, carriers};

/// Opens a NIC, as a member of a world does.
pub fn open(device: &str, name: &str) -> Nic {
    let device = match device {
        "shm" => {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            format!("shm:killed-{name}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
        }
        _ => "udp:127.0.0.1:0".to_owned(),
    };
    let keep_alive = doorbell_verbs::KeepAlive {
        idle: Duration::from_millis(500),
        busy: Duration::from_millis(500),
    };
    let config = doorbell_verbs::Config { keep_alive, ..doorbell_verbs::Config::default() };
    Nic::builder().config(config).open_blocking(&device).expect("a name that nobody has")
}

/// Runs a program in a runtime of its own, and fails if that takes for ever.
pub fn run(program: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let bounded = async {
        let tasks = LocalSet::new();
        let bounded = tokio::time::timeout(doorbell_kit::PATIENCE, tasks.run_until(program)).await;
        bounded.expect("it hangs");
    };
    runtime.expect("a runtime").block_on(bounded);
}

/// The configuration of a world whose processes die soon if they are silent.
pub fn config(carrier: Carrier) -> Config {
    Config { patience: Duration::from_millis(500), ..by(carrier) }
}

/// The process that is killed: it has joined, and serves its peer.
pub fn dies(part: &str) {
    let mut words = part.split(' ');
    let (device, carrier) = (words.next().expect("a device"), words.next().expect("a carrier"));
    let carrier = carrier.parse().expect("the name of a carrier");
    let nic = open(device, &std::process::id().to_string());
    child::tell(nic.address());
    let peer = child::listen().expect("an address");
    run(async {
        let addresses = [peer, nic.address().to_string()];
        let world = World::join_on(&nic, 1, &addresses, &config(carrier)).await.expect("a world");
        let array = world.blocked::<u64>(4000).await.expect("room");
        world.barrier().await.expect("it is there");
        child::tell("ready");
        let _ = array.at(2000).wait_until(|value| value == u64::MAX).await;
    });
}

/// Does something again and again until that fails, and returns why.
async fn again(mut does: impl AsyncFnMut() -> Result<(), Error>) -> Error {
    loop {
        match does().await {
            Ok(()) => tokio::task::yield_now().await,
            Err(why) => return why,
        }
    }
}

fn lives(device: &str, carrier: Carrier, test: &str) {
    let mut other = Child::start(test, &format!("{device} {carrier}"), None);
    let address = other.hear();
    let nic = open(device, &std::process::id().to_string());
    other.say(nic.address());
    run(async {
        let addresses = [nic.address().to_string(), address];
        let world = World::join_on(&nic, 0, &addresses, &config(carrier)).await.expect("a world");
        let array = world.blocked::<u64>(4000).await.expect("room");
        world.barrier().await.expect("it is there");
        // Killed while whatever there is is under way.
        let killer = std::thread::spawn(move || {
            assert_eq!(other.hear(), "ready");
            other.kill();
        });
        let (world, array) = (&world, &array);
        let span = || world.span(array.pointer(2000).expect("it is there"), 1000);
        let begun = world.all_reduce(1_u64, |one, other| one + other).begin().expect("a start");
        let all = tokio::join!(
            again(async || array.at(2001).read().await.map(drop)),
            again(async || {
                array.at(2002).put(1)?;
                world.sync().await
            }),
            again(async || array.at(2003).fetch_add(1).await.map(drop)),
            again(async || span().read().await.map(drop)),
            again(async || span().write(&[4; 1000]).await),
            again(async || array.at(2004).put_add(1)?.done().await),
            again(async || array.at(2005).store_async(1).await),
            again(async || world.store_sync(8).await),
            again(async || array.at(1).wait_until(|value| value == 1).await.map(drop)),
            again(async || world.barrier().await),
            async { begun.done().await.expect_err("nobody else reduces") },
        );
        let (a, b, c, d, e, f, g, h, i, j, k) = all;
        for (number, why) in [a, b, c, d, e, f, g, h, i, j, k].into_iter().enumerate() {
            assert_eq!(why.gone(), Some(1), "{device}, {carrier}, {number}: {why}");
        }
        killer.join().expect("it was killed");
        assert_eq!(world.leave().await.expect_err("one has gone").gone(), Some(1));
    });
}

#[test]
fn in_shared_memory_a_process_that_is_killed_ends_all_that_others_have_to_do_with_it() {
    if let Some(part) = child::part() {
        return dies(&part);
    }
    for &carrier in carriers("shm") {
        lives(
            "shm",
            carrier,
            "ends::killed::in_shared_memory_a_process_that_is_killed_ends_all_that_others_have_to_do_with_it",
        );
    }
}

#[test]
fn by_udp_a_process_that_is_killed_ends_all_that_others_have_to_do_with_it() {
    if let Some(part) = child::part() {
        return dies(&part);
    }
    for &carrier in carriers("udp") {
        lives(
            "udp",
            carrier,
            "ends::killed::by_udp_a_process_that_is_killed_ends_all_that_others_have_to_do_with_it",
        );
    }
}

/// Begins an operation to a process that is stopped, and so has it under way when that process is
/// killed.
fn tells(device: &str, carrier: Carrier, kind: usize, test: &str) {
    let mut other = Child::start(test, &format!("{device} {carrier}"), None);
    let address = other.hear();
    let nic = open(device, &std::process::id().to_string());
    other.say(nic.address());
    run(async {
        let addresses = [nic.address().to_string(), address];
        let world = World::join_on(&nic, 0, &addresses, &config(carrier)).await.expect("a world");
        let array = world.blocked::<u64>(4000).await.expect("room");
        let own = world.allocate::<u64>(100).expect("room");
        world.barrier().await.expect("it is there");
        assert_eq!(other.hear(), "ready");
        // It answers nothing any more.
        other.stop();
        let theirs = world.span(array.pointer(2000).expect("it is there"), 100);
        // The handles are dropped: it is for the sync to tell.
        let begun = match kind {
            0 => theirs.get().map(drop),
            1 => array.gather(&[2000, 2001, 2]).map(drop),
            2 => array.at(2000).get().map(drop),
            3 => world.copy(theirs.first(), own, 100).map(drop),
            _ => array.at(2000).get_add(1).map(drop),
        };
        begun.expect("the process lives");
        world.flush().await.expect("the process lives");
        other.kill();
        let Err(why) = world.sync().await else {
            panic!("{device}, {carrier}, {kind}: the process has died, and the sync says nothing");
        };
        assert_eq!(why.gone(), Some(1), "{device}, {carrier}, {kind}: {why}");
        world.sync().await.expect("a failure is told once");
    });
}

#[test]
fn a_sync_tells_of_each_kind_of_operation_that_failed() {
    if let Some(part) = child::part() {
        return dies(&part);
    }
    let test = "ends::killed::a_sync_tells_of_each_kind_of_operation_that_failed";
    for carrier in [Carrier::OneSided, Carrier::Messages, Carrier::Mixed] {
        (0..5).for_each(|kind| tells("shm", carrier, kind, test));
        tells("udp", carrier, 0, test);
    }
}
