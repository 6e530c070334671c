//! Tests that anything can be dropped at any time: nothing hangs, nothing leaks, and other traffic
//! goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use doorbell_kit::{abandoned, child, effort};
use doorbell_simulation::Luck;
use doorbell_transports::GrantError;
use doorbell_verbs::work::{Datagram, Send};
use doorbell_verbs::{
    Buf, Cause, Config, DATAGRAM_HEADER, DatagramsConfig, FailedWhy, Failure, Name, Nic, Qkey,
    QueuePairConfig, QueuesConfig, Region, Rights, ServiceId, SharedMemory,
};
use tokio::task::JoinSet;

use crate::common::{
    End, Over, Runs, address, bounded, brief, buf, bytes, connected, connected_as, connected_by,
    customary, dedicated, joined, nics, now, run, sleepy,
};
use crate::revoking::sum;

/// Runs traffic that must not be disturbed, until it is told to end, and for one round at least: a
/// machine that is busy may begin it late.
async fn goes_on(near: Arc<End>, ends: Arc<AtomicBool>) {
    for rounds in 0.. {
        let data = bytes(rounds, 3000);
        near.pair.write(Buf::from(data.clone()), near.peer).await.expect("it may");
        let read = near.pair.read(Buf::with_capacity(3000), near.peer).await.expect("it may");
        assert!(read[..] == data, "round {rounds}");
        if ends.load(Ordering::Relaxed) {
            return;
        }
    }
}

/// Waits until each NIC has as many objects as it had before.
async fn rested(nics: &[(&Nic, doorbell_verbs::Statistics)]) {
    for (nic, before) in nics {
        while nic.statistics().objects != before.objects {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Drops objects repeatedly beside traffic, over NICs of every kind: 1,000 times, or 10,000 in a
/// thorough run.
fn beside_traffic<F>(
    drops: impl Fn(Arc<Bench>, u64, Luck) -> F + std::marker::Send + Copy + 'static,
) where
    F: Future<Output = ()> + std::marker::Send + 'static,
{
    let times = effort(1_000, 10_000);
    for (seed, over, config) in
        [(1, Over::Shm, brief()), (2, Over::Udp, sleepy()), (3, Over::Shm, dedicated())]
    {
        let config = Config { time_wait: Duration::from_millis(1), ..config };
        run(Runs::MultiThread, move || async move {
            let (near, far) = nics(over, &config);
            let (one, other) = connected(&near, &far).await;
            let before = (near.statistics(), far.statistics());
            let ends = Arc::new(AtomicBool::new(false));
            let traffic = tokio::spawn(goes_on(Arc::new(one), ends.clone()));
            let bench = Bench { near: near.clone(), far: far.clone() };
            drops(Arc::new(bench), times / 3 + 1, Luck::new(seed * 0x9E37_79B9)).await;
            ends.store(true, Ordering::Relaxed);
            traffic.await.expect("it goes on");
            // The traffic's own end goes with its task.
            drop(other);
            let gone = |mut before: doorbell_verbs::Statistics| {
                before.objects.queue_pairs -= 1;
                before.objects.registrations -= 1;
                before.objects.hosts = 0;
                before
            };
            rested(&[(&near, gone(before.0)), (&far, gone(before.1))]).await;
        });
    }
}

struct Bench {
    near: Nic,
    far: Nic,
}

/// Requests and receives are dropped before, while, and after they are carried out.
#[test]
fn futures_of_requests_are_dropped_at_any_time() {
    beside_traffic(|bench, times, mut luck| async move {
        let (one, other) = connected(&bench.near, &bench.far).await;
        let word = one.peer.at(0, 8).expect("within");
        let (mut kept, mut counted) = (0_u64, 0);
        for number in 0..times as usize {
            let polls = luck.below(6);
            match luck.below(7) {
                0 => abandoned(polls, one.pair.write(buf(number, 5000), one.peer)).await,
                1 => abandoned(polls, one.pair.read(Buf::with_capacity(5000), one.peer)).await,
                2 => {
                    // Room for whatever of them is sent.
                    let _ = other.pair.post_receive(Buf::with_capacity(64));
                    abandoned(polls, one.pair.send(buf(number, 64))).await;
                }
                3 => abandoned(polls, one.pair.receive()).await,
                4 => abandoned(polls, other.pair.receive()).await,
                5 => abandoned(polls, bench.near.until(|| None::<()>)).await,
                _ => {
                    let added = one.pair.fetch_add(one.peer.at(8192, 8).expect("within"), 1);
                    counted += 1;
                    abandoned(polls, added).await;
                    kept += 1;
                }
            }
            if number % 50 == 0 {
                // Messages that were sent are there, each whole.
                while let Some(message) = now(other.pair.receive()).await {
                    assert_eq!(message.expect("it stands").len, 64);
                }
                one.pair.write(buf(number, 8), word).await.expect("it stands");
            }
        }
        // An addition is carried out once, or not at all.
        let sum = other.memory.load(8192).expect("within");
        assert!(sum <= counted && kept == counted, "{sum} of {counted}");
        drop((one, other));
    });
}

/// Queue pairs of both kinds are dropped with all their objects, in the middle of requests.
#[test]
fn queue_pairs_and_what_they_are_made_of_are_dropped_at_any_time() {
    beside_traffic(|bench, times, mut luck| async move {
        for number in 0..times as usize {
            if luck.below(2) == 0 {
                let (one, other) = connected(&bench.near, &bench.far).await;
                abandoned(luck.below(4), one.pair.write(buf(number, 20_000), one.peer)).await;
                abandoned(luck.below(4), other.pair.recv(Buf::with_capacity(8))).await;
                match luck.below(4) {
                    0 => drop(one.memory),
                    1 => drop(other.memory),
                    2 => drop(one.pair),
                    _ => drop(other.pair),
                }
                continue;
            }
            let (mut sent, received) = (
                bench.near.completion_queue(64).expect("a size"),
                bench.far.completion_queue(64).expect("a size"),
            );
            let configs = (QueuesConfig::new(&sent), QueuesConfig::new(&received));
            let domains = (bench.near.domain(), bench.far.domain());
            let (mut one, mut other) =
                joined((&domains.0, &configs.0), (&domains.1, &configs.1)).await;
            for id in 0..luck.below(20) {
                other.pair.receive.post(id, Buf::with_capacity(64)).expect("room");
                one.pair.send.post(Send::new(buf(number, 64)).id(id)).expect("room");
            }
            abandoned(luck.below(4), sent.completion()).await;
            match luck.below(5) {
                0 => drop(sent),
                1 => drop(received),
                2 => drop(one.pair.send),
                3 => drop(other.pair),
                _ => drop((one, sent)),
            }
        }
    });
}

/// Shared receive queues are dropped before and after their queue pairs, full or used up.
#[test]
fn shared_receive_queues_are_dropped_at_any_time() {
    beside_traffic(|bench, times, mut luck| async move {
        for number in 0..times as usize {
            let (asks, takes) = (bench.near.domain(), bench.far.domain());
            let shared = takes.shared_receive_queue(8).expect("room");
            for id in 0..luck.below(9) {
                shared.post(id, Buf::with_capacity(64)).expect("room");
            }
            let draws = QueuePairConfig::default().share(&shared);
            let plain = QueuePairConfig::default();
            let (one, other) = connected_as((&asks, &takes), [plain, draws]).await;
            for _ in 0..luck.below(12) {
                abandoned(luck.below(3), one.pair.send(buf(number, 64))).await;
            }
            abandoned(luck.below(4), other.pair.receive()).await;
            match luck.below(3) {
                0 => drop(shared),
                1 => drop((other, shared)),
                _ => drop((one, shared)),
            }
        }
    });
}

/// Listeners and connections are dropped while they are being made.
#[test]
fn connections_are_given_up_at_any_time_while_they_are_made() {
    beside_traffic(|bench, times, mut luck| async move {
        let (asks, takes) = (bench.near.domain(), bench.far.domain());
        let to = address(&bench.far);
        for number in 0..times {
            let service = ServiceId(100 + number);
            let mut listener = bench.far.listen(service).await.expect("nobody else listens");
            let asked = abandoned(luck.below(40), asks.connect(Name::at(&*to, service.0)));
            let (patience, decides) = (luck.below(40), luck.below(4));
            let taken = abandoned(patience, async {
                let incoming = listener.accept().await.expect("a request");
                match decides {
                    0 => drop(incoming),
                    1 => drop(incoming.reject(b"no")),
                    _ => drop(incoming.accept(&takes).await),
                }
            });
            tokio::join!(asked, taken);
            let pair = asks.queue_pair(&QueuePairConfig::default()).expect("room");
            drop((listener, pair));
        }
    });
}

/// Queue pairs for datagrams and their destinations are dropped in the middle of datagrams.
#[test]
fn datagrams_and_their_destinations_are_dropped_at_any_time() {
    const KEY: Qkey = Qkey(7);
    beside_traffic(|bench, times, mut luck| async move {
        let there = address(&bench.far);
        for number in 0..times as usize {
            let queues = [&bench.near, &bench.far].map(|nic| nic.completion_queue(64));
            let [mut sent, received] = queues.map(|queue| queue.expect("a size"));
            let one = bench.near.domain().datagrams(&DatagramsConfig::new(&sent, KEY));
            let other = bench.far.domain().datagrams(&DatagramsConfig::new(&received, KEY));
            let (mut one, mut other) = (one.expect("room"), other.expect("room"));
            let to = bench.near.destination(&there, other.qpn(), KEY).await.expect("it is there");
            for id in 0..luck.below(20) {
                let room = Buf::with_capacity(DATAGRAM_HEADER + 64);
                other.receive.post(id, room).expect("room");
                one.send.post(Datagram::new(buf(number, 64), &to).id(id)).expect("room");
            }
            abandoned(luck.below(4), sent.completion()).await;
            match luck.below(6) {
                0 => drop(to),
                1 => drop(one),
                2 => drop(other),
                3 => drop(sent),
                4 => drop(received),
                _ => drop((one.send, to)),
            }
        }
    });
}

/// Memory is revoked while a peer writes to it as fast as it can, several writes at a time. One of
/// the writes is refused, so each round takes a connection. A connection that is being made mostly
/// waits, so several are made at a time.
#[test]
fn registrations_are_dropped_while_they_are_written_at_full_speed() {
    const AT_A_TIME: u64 = 8;
    beside_traffic(|bench, times, mut luck| async move {
        let mut all = JoinSet::new();
        for number in 0..AT_A_TIME {
            let (service, luck) = (ServiceId(100 + number), Luck::new(luck.draw()));
            let times = times.div_ceil(AT_A_TIME);
            all.spawn(written_and_dropped(bench.clone(), service, times, luck));
        }
        all.join_all().await;
    });
}

async fn written_and_dropped(bench: Arc<Bench>, service: ServiceId, times: u64, mut luck: Luck) {
    let domains = (bench.near.domain(), bench.far.domain());
    for number in 0..times as usize {
        let both = (&domains.0, &domains.1);
        let (one, other) = connected_by(service, both, customary()).await;
        let lent = other.domain.register(Region::new(1 << 14), Rights::REMOTE).expect("room");
        let (remote, region) = (lent.remote(), lent.region().clone());
        let writes = async |mut number: usize| {
            loop {
                if let Err(failed) = one.pair.write(buf(number, 1 << 14), remote).await {
                    return (failed.why(), sum(&region));
                }
                // Of each write the bytes are others.
                number += 1;
            }
        };
        let (waits, is_revoked) = (luck.below(30), luck.below(2) == 0);
        let drops = async {
            for _ in 0..waits {
                tokio::task::yield_now().await;
            }
            if !is_revoked {
                drop(lent);
                return None;
            }
            lent.revoke().await.expect("it was not before");
            Some(sum(&region))
        };
        let ((first, then), (second, later), revoked) =
            tokio::join!(writes(number), writes(number + 128), drops);
        let refused = FailedWhy::Carried(Failure::Broke(Cause::PeerAccess));
        assert!(first == refused || second == refused, "{first:?}, {second:?}");
        // That one is refused, or that the memory was taken back, says that no byte changes any
        // more.
        assert!(then == later && revoked.is_none_or(|sum| sum == then), "a byte has changed");
        drop((one, other));
        assert_eq!(sum(&region), then, "a byte has changed");
    }
}

/// Returns how many mappings of shared memory this process has.
fn mappings() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("a process has them");
    maps.lines().filter(|line| line.contains("/memfd:")).count()
}

/// Granted and mapped memory is dropped before, while, and after it is written: in a process of its
/// own, where mappings can be counted.
#[test]
fn grants_and_what_is_mapped_are_dropped_at_any_time_and_leave_nothing_behind() {
    child::alone(|| {
        // The first leaves what the process keeps.
        bounded(|| mapped_and_dropped(30, Luck::new(1)));
        let (before, mapped) = (held(), mappings());
        bounded(|| mapped_and_dropped(effort(2_000, 10_000), Luck::new(2)));
        while is_more(held(), before) || mappings() > mapped {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
}

fn mapped_and_dropped(times: u64, mut luck: Luck) {
    for config in [brief(), sleepy(), dedicated()] {
        let luck = Luck::new(luck.draw());
        let config = Config { time_wait: Duration::from_millis(1), ..config };
        run(Runs::MultiThread, move || async move {
            let (near, far) = nics(Over::Shm, &config);
            let (one, other) = connected(&near, &far).await;
            let before = (near.statistics(), far.statistics());
            grants(&one, &other, times / 3, luck).await;
            rested(&[(&near, before.0), (&far, before.1)]).await;
        });
    }
}

async fn grants(one: &End, other: &End, times: u64, mut luck: Luck) {
    let (before, mut left) = (mappings(), Vec::new());
    for number in 0..times as usize {
        let memory = SharedMemory::new(8192).expect("memory");
        let memory = other.domain.register_shared(memory, Rights::REMOTE).expect("room");
        let remote = memory.remote();
        // Which are kept for who asks for them later, and some never do. They are taken in while
        // somebody does.
        while let Err(why) = other.pair.connection().grant(&memory) {
            assert!(matches!(why, GrantError::Waiting { .. }), "{why}");
            abandoned(8, one.pair.connection().map(remote)).await;
        }
        abandoned(luck.below(4), one.pair.connection().map(remote)).await;
        left.push(remote);
        if luck.below(3) == 0 {
            continue;
        }
        // Whoever has given up may have taken it along.
        let Some(Ok(mapped)) = now(one.pair.connection().map(remote)).await else { continue };
        for _ in 0..luck.below(3) {
            abandoned(luck.below(3), one.pair.write(buf(number, 8192), remote)).await;
        }
        match luck.below(3) {
            0 => drop(mapped),
            // What is still written goes by packets.
            1 => {
                one.pair.write(buf(number, 8192), remote).await.expect("it may");
                drop(mapped);
                one.pair.write(buf(number, 8192), remote).await.expect("it may");
            }
            _ => {
                let region = mapped.region().clone();
                drop(mapped);
                region.store(0, number as u64).expect("it is mapped still");
            }
        }
        // Behind all that was begun: what is under way when its memory goes would be refused.
        one.pair.write(buf(number, 8), one.peer).await.expect("it may");
    }
    // What nobody has asked for yet is kept until somebody does.
    while mappings() > before {
        for remote in &left {
            drop(now(one.pair.connection().map(*remote)).await);
        }
        // And what has yet to be taken in is, while somebody waits.
        abandoned(8, one.pair.connection().map(left[0])).await;
    }
}

/// Returns the numbers of descriptors and threads of this process.
fn held() -> (usize, usize) {
    let count = |what| std::fs::read_dir(what).expect("a process has them").count();
    (count("/proc/self/fd"), count("/proc/self/task"))
}

/// Returns whether the process has more descriptors or threads than before.
fn is_more(held: (usize, usize), than: (usize, usize)) -> bool {
    held.0 > than.0 || held.1 > than.1
}

/// NICs are dropped in the middle of traffic: in a process of its own, where descriptors can be
/// counted.
#[test]
fn nics_are_dropped_at_any_time_and_leave_nothing_behind() {
    child::alone(|| {
        let kinds = [
            (Over::Shm, brief()),
            (Over::Udp, sleepy()),
            (Over::Shm, dedicated()),
            (Over::Udp, dedicated()),
        ];
        // By parts, each of which is seen to end.
        for (part, (over, config)) in
            (0..effort(1, 5)).flat_map(|part| kinds.clone().map(|kind| (part, kind)))
        {
            run(Runs::MultiThread, move || async move {
                let mut luck = Luck::new(77 + part);
                let mut before = None;
                for number in 0..effort(300, 500) {
                    let (near, far) = nics(over, &config);
                    let (one, other) = connected(&near, &far).await;
                    let (polls, first) = (luck.below(200), luck.below(2));
                    let near_goes = tokio::spawn(async move {
                        abandoned(polls, async {
                            loop {
                                if one.pair.write(buf(number, 9000), one.peer).await.is_err() {
                                    break;
                                }
                            }
                        })
                        .await;
                        drop((one, near));
                    });
                    let polls = luck.below(200) * first;
                    let far_goes = tokio::spawn(async move {
                        abandoned(polls, other.pair.recv(Buf::with_capacity(8))).await;
                        drop((other, far));
                    });
                    tokio::try_join!(near_goes, far_goes).expect("neither fails");
                    // The first leaves what the runtime keeps.
                    if number == 10 {
                        settled(&mut before).await;
                    }
                }
                let expected = before.expect("more were opened than settled it");
                while is_more(held(), expected) {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            });
        }
    });
}

/// Waits until ending threads have ended, and returns how many descriptors and threads are left.
async fn settled(held_then: &mut Option<(usize, usize)>) {
    let mut least = held();
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let now = held();
        least = (least.0.min(now.0), least.1.min(now.1));
    }
    *held_then = Some(least);
}

/// The name of a dropped NIC is free again.
#[test]
fn a_nic_that_was_dropped_leaves_its_address_to_the_next() {
    child::alone(|| {
        for config in [brief(), sleepy(), dedicated()] {
            for runs in [Runs::MultiThread, Runs::CurrentThread, Runs::Nowhere] {
                let config = config.clone();
                run(runs, move || async move {
                    for over in [Over::Shm, Over::Udp] {
                        let first = nics(over, &config).0;
                        let name = address(&first);
                        drop(first);
                        for _ in 0..200 {
                            let nic = Nic::builder()
                                .config(config.clone())
                                .open(&name)
                                .await
                                .expect("it is free again");
                            let domain = nic.domain();
                            let memory = domain.register(Region::new(64), Rights::REMOTE);
                            drop((nic, domain, memory));
                        }
                    }
                });
            }
        }
    });
}
