//! Grants of one peer, while another peer grants more than anybody wants.

use std::time::Duration;

use doorbell_transports::GrantError;
use doorbell_verbs::{MapError, Nic, Registered, RemoteMemory, Rights, Rkey, SharedMemory};

use crate::common::{End, Over, Runs, brief, connected, names, now, run};

/// More than a program keeps of one peer's grants, and of all peers' together once.
const FLOOD: usize = 1100;

/// How many mappings of shared memory this process has.
fn mappings() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("a process has them");
    maps.lines().filter(|line| line.contains("memfd:")).count()
}

fn shared(end: &End) -> Registered {
    let memory = SharedMemory::new(64).expect("memory");
    end.domain.register_shared(memory, Rights::REMOTE).expect("room")
}

/// Has the peer's program take in what `from` has granted, while it waits for something else.
async fn take_in(to: &End, other: RemoteMemory) {
    for _ in 0..100 {
        assert!(now(to.pair.connection().map(other)).await.is_none(), "it was not granted");
    }
}

/// Grants memory again and again, which the peer's program takes in as long as it waits for `other`
/// grant, and never maps.
async fn flood(from: &End, to: &End, other: RemoteMemory, memory: &Registered) {
    for _ in 0..FLOOD {
        while let Err(why) = from.pair.connection().grant(memory) {
            assert!(matches!(why, GrantError::Waiting { .. }), "{why}");
            assert!(now(to.pair.connection().map(other)).await.is_none(), "it was not granted");
        }
    }
}

/// A program's ends of connections to two peers, and the peers'.
async fn three(here: &Nic, honest: &Nic, flooder: &Nic) -> [(End, End); 2] {
    [connected(here, honest).await, connected(here, flooder).await]
}

fn another() -> Nic {
    let [name, _] = names(Over::Shm);
    Nic::builder().config(brief()).open_blocking(&name).expect("nobody else has that name")
}

/// Regression test for a bug: 1,024 grants of one peer pushed out what another had granted, and the
/// task that mapped that waited for ever.
#[test]
fn a_peer_that_floods_grants_pushes_out_no_grant_of_another_peer() {
    run(Runs::CurrentThread, || async {
        let (here, honest, flooder) = nics();
        let [(near, far), (to, from)] = three(&here, &honest, &flooder).await;
        let (early, late, never) = (shared(&far), shared(&far), shared(&from));
        // The first comes before the flood, and is mapped behind it.
        far.pair.connection().grant(&early).expect("it may");
        let mut waits = std::pin::pin!(near.pair.connection().map(late.remote()));
        assert!(now(waits.as_mut()).await.is_none(), "it was not granted");
        flood(&from, &to, never.remote(), &shared(&from)).await;
        let mapped = near.pair.connection().map(early.remote()).await.expect("it was granted");
        assert_eq!(mapped.len(), 64);
        far.pair.connection().grant(&late).expect("it may");
        drop(waits.await.expect("it was granted"));
    });
}

fn nics() -> (Nic, Nic, Nic) {
    (another(), another(), another())
}

/// Regression test for the same bug: who asked for a grant that had been pushed out waited for ever.
#[test]
fn a_map_whose_grant_was_pushed_out_by_the_same_peer_fails_until_the_peer_grants_it_again() {
    run(Runs::CurrentThread, || async {
        let (here, honest, flooder) = nics();
        let [(near, far), (to, from)] = three(&here, &honest, &flooder).await;
        let (first, other, never) = (shared(&from), shared(&from), shared(&from));
        let other_peers = shared(&far);
        far.pair.connection().grant(&other_peers).expect("it may");
        from.pair.connection().grant(&first).expect("it may");
        // What is waited for is kept, whatever comes behind it.
        let mut waits = std::pin::pin!(to.pair.connection().map(other.remote()));
        assert!(now(waits.as_mut()).await.is_none(), "it was not granted");
        from.pair.connection().grant(&other).expect("it may");
        flood(&from, &to, never.remote(), &shared(&from)).await;
        drop(waits.await.expect("it was granted"));

        let again = to.pair.connection().map(first.remote());
        let pushed_out = again.await.map(drop).expect_err("it was pushed out");
        assert_eq!(pushed_out, MapError::PushedOut { most: 64 });
        assert!(pushed_out.to_string().contains("have it grant this one again"), "{pushed_out}");
        while from.pair.connection().grant(&first).is_err() {
            take_in(&to, never.remote()).await;
        }
        drop(to.pair.connection().map(first.remote()).await.expect("it was granted again"));
        drop(near.pair.connection().map(other_peers.remote()).await.expect("another peer"));
    });
}

/// Regression test for a bug: once a peer had granted hundreds of memories that nobody mapped, each
/// map that came before its grant failed as if the grant had been dropped.
#[test]
fn a_map_waits_for_a_grant_that_comes_later_however_many_grants_of_the_peer_were_dropped() {
    run(Runs::CurrentThread, || async {
        let (here, flooder) = (another(), another());
        let (to, from) = connected(&here, &flooder).await;
        let (late, never) = (shared(&from), shared(&from));
        flood(&from, &to, never.remote(), &shared(&from)).await;
        for _ in 0..400 {
            let dropped = shared(&from);
            while from.pair.connection().grant(&dropped).is_err() {
                take_in(&to, never.remote()).await;
            }
        }
        take_in(&to, never.remote()).await;
        let mut waits = std::pin::pin!(to.pair.connection().map(late.remote()));
        let sleeps = tokio::time::timeout(Duration::from_millis(500), waits.as_mut());
        assert!(sleeps.await.is_err(), "it was not granted");
        from.pair.connection().grant(&late).expect("it may");
        assert_eq!(waits.await.expect("it was granted").len(), 64);
    });
}

#[test]
fn what_a_peer_has_granted_goes_when_its_link_ends_and_a_map_that_waits_fails() {
    run(Runs::CurrentThread, || async {
        let (here, honest, flooder) = nics();
        let before = mappings();
        let [(near, far), (to, from)] = three(&here, &honest, &flooder).await;
        let rings = mappings() - before;
        let never = shared(&far);
        let held = shared(&from);
        for _ in 0..60 {
            from.pair.connection().grant(&held).expect("there is room");
        }
        take_in(&near, never.remote()).await;
        assert!(mappings() >= before + rings + 60, "{} of {before} and {rings}", mappings());
        let nothing = RemoteMemory::new(held.remote().address(), Rkey(7), 64);
        let waits = to.pair.connection().map(nothing);
        let ended = async {
            drop((from, held));
            flooder.close().await;
        };
        let (failed, ()) = tokio::join!(waits, ended);
        assert!(matches!(failed, Err(MapError::Ended(_))), "{failed:?}");
        // The link ends behind the connection, and what it has granted goes with the link.
        while mappings() >= before + rings {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
}
