//! Asynchronous events: each comes once, with the queue pair or queue that it is about.

use std::time::Duration;

use doorbell_core::nic::KeyError;
use doorbell_verbs::{
    AsyncEvent, Buf, Cause, Domain, Nic, QueuePairConfig, RemoteMemory, SharedReceiveQueue,
};
use tokio::sync::broadcast::Receiver;

use crate::common::{
    End, Over, Runs, brief, buf, connected, connected_as, dedicated, nics, run, sleepy,
};

type Events = Receiver<AsyncEvent>;

/// A key that was never given.
const NO_KEY: u32 = 0xdead_beef;

/// Runs a program over two NICs that no task runs while the program waits for events alone.
fn with<F: Future<Output = ()>>(program: impl Fn(Nic, Nic) -> F + Send + Copy + 'static) {
    for (over, config) in [(Over::Shm, brief()), (Over::Udp, sleepy()), (Over::Shm, dedicated())] {
        run(Runs::CurrentThread, move || async move {
            let (near, far) = nics(over, &config);
            program(near, far).await;
        });
    }
}

/// Returns the next events, as many as are expected.
async fn hears<const N: usize>(events: &mut Events) -> [AsyncEvent; N] {
    let mut heard = Vec::new();
    while heard.len() < N {
        heard.push(events.recv().await.expect("the NIC is there, and is heard in time"));
    }
    heard.try_into().expect("as many")
}

/// Returns the further events until nothing is left of the NIC's queue pairs, which were dropped.
async fn rest(nic: &Nic, events: &mut Events) -> Vec<AsyncEvent> {
    while nic.statistics().objects.queue_pairs > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    std::iter::from_fn(|| events.try_recv().ok()).collect()
}

/// Breaks both ends by a write with a key that the far end has not given.
async fn breaks(near: &End) {
    let mut bytes = near.peer.to_bytes();
    bytes[16..].copy_from_slice(&NO_KEY.to_be_bytes());
    let unknown = RemoteMemory::from_bytes(bytes);
    near.pair.write(buf(1, 8), unknown).await.expect_err("it may not");
}

/// The causes with which both ends are broken then.
const BROKEN: [Cause; 2] = [Cause::PeerAccess, Cause::Access(KeyError::Unknown(NO_KEY))];

#[test]
fn a_broken_queue_pair_is_announced_once_on_each_side_with_its_cause() {
    with(|here, there| async move {
        // Of others, which stand, nothing is told.
        let others = connected(&here, &there).await;
        let (near, far) = connected(&here, &there).await;
        let mut events = [here.events(), there.events()];
        let numbers = [near.pair.qpn(), far.pair.qpn()];
        breaks(&near).await;
        for ((events, qpn), cause) in events.iter_mut().zip(numbers).zip(BROKEN) {
            let expected = [AsyncEvent::Broken(qpn, cause), AsyncEvent::Ended(qpn)];
            assert_eq!(hears(events).await, expected);
        }
        drop((near, far));
        let numbers = [others.0.pair.qpn(), others.1.pair.qpn()];
        drop(others);
        for ((events, qpn), nic) in events.iter_mut().zip(numbers).zip([&here, &there]) {
            assert_eq!(rest(nic, events).await, [AsyncEvent::Ended(qpn)]);
        }
    });
}

/// Regression test for a bug: the event came again when the peer had answered, and when the queue
/// pair was dropped.
#[test]
fn the_end_of_a_connection_is_announced_once_on_each_side() {
    with(|here, there| async move {
        for disconnects in [true, false] {
            let (near, far) = connected(&here, &there).await;
            let mut events = [here.events(), there.events()];
            let numbers = [near.pair.qpn(), far.pair.qpn()];
            let mut near = Some(near);
            match near.as_ref().filter(|_| disconnects) {
                Some(near) => {
                    near.pair.connection().disconnect(&[]).await.expect("it stands");
                }
                None => near = None,
            }
            for (events, qpn) in events.iter_mut().zip(numbers) {
                assert_eq!(hears(events).await, [AsyncEvent::Ended(qpn)]);
            }
            drop((near, far));
            let nothing: [AsyncEvent; 0] = [];
            for (events, nic) in events.iter_mut().zip([&here, &there]) {
                assert_eq!(rest(nic, events).await, nothing, "{disconnects}");
            }
        }
    });
}

/// Makes a connection whose far end draws its receives from a shared queue.
async fn shared(near: &Domain, far: &Domain) -> (SharedReceiveQueue, End, End) {
    let queue = far.shared_receive_queue(8).expect("room");
    let configs = [QueuePairConfig::default(), QueuePairConfig::default().share(&queue)];
    let (near, far) = connected_as((near, far), configs).await;
    (queue, near, far)
}

/// The event comes neither before nor again, until it is asked for again.
#[test]
fn a_shared_queue_that_runs_low_is_announced_once() {
    with(|here, there| async move {
        let (queue, near, far) = shared(&here.domain(), &there.domain()).await;
        let mut events = there.events();
        (0..6).for_each(|id| queue.post(id, Buf::with_capacity(8)).expect("room"));
        let takes = async |count| {
            for _ in 0..count {
                near.pair.send_inline(b"one").await.expect("there is a receive");
                far.pair.receive().await.expect("one comes");
            }
            // The NIC over there has done by now what it had to when that came.
            near.pair.write(buf(1, 8), near.peer).await.expect("it may");
            far.pair.write(buf(1, 8), far.peer).await.expect("it may");
        };
        let low = AsyncEvent::ReceivesLow(queue.id());
        queue.tell_low(4).expect("the queue is there");
        takes(2).await;
        assert!(events.try_recv().is_err(), "four are left");
        takes(1).await;
        assert_eq!(hears(&mut events).await, [low]);
        takes(1).await;
        assert!(events.try_recv().is_err(), "it was told");
        queue.tell_low(2).expect("the queue is there");
        takes(1).await;
        assert_eq!(hears(&mut events).await, [low]);
        let ended = AsyncEvent::Ended(far.pair.qpn());
        drop((near, far));
        assert_eq!(rest(&there, &mut events).await.first(), Some(&ended));
    });
}

/// From then on, receives that are posted there belong to other queue pairs.
#[test]
fn a_broken_queue_pair_announces_its_last_receive_once() {
    with(|here, there| async move {
        let (queue, near, far) = shared(&here.domain(), &there.domain()).await;
        let mut events = [here.events(), there.events()];
        let numbers = [near.pair.qpn(), far.pair.qpn()];
        let connection = far.pair.connection().clone();
        assert!(!connection.had_last_receive());
        breaks(&near).await;
        let expected = [AsyncEvent::Broken(numbers[0], BROKEN[0]), AsyncEvent::Ended(numbers[0])];
        assert_eq!(hears(&mut events[0]).await, expected);
        let [broken, ended, last] = hears(&mut events[1]).await;
        assert_eq!(
            [broken, ended],
            [AsyncEvent::Broken(numbers[1], BROKEN[1]), AsyncEvent::Ended(numbers[1])]
        );
        assert_eq!(last, AsyncEvent::LastReceive(numbers[1]));
        assert!(connection.had_last_receive());
        drop((near, far, queue));
        let nothing: [AsyncEvent; 0] = [];
        assert_eq!(rest(&here, &mut events[0]).await, nothing, "it shares none");
        assert_eq!(rest(&there, &mut events[1]).await, nothing);
    });
}

/// No receive was ever posted there, and nothing broke.
#[test]
fn a_queue_pair_that_was_never_connected_announces_its_last_receive_when_it_is_dropped() {
    with(|here, _| async move {
        let mut events = here.events();
        let domain = here.domain();
        let queue = domain.shared_receive_queue(8).expect("room");
        let config = QueuePairConfig::default().share(&queue);
        let unconnected = domain.queue_pair(&config).expect("room");
        let connection = unconnected.connection().clone();
        assert!(!connection.had_last_receive());
        drop(unconnected);
        let last = AsyncEvent::LastReceive(connection.qpn());
        let told = rest(&here, &mut events).await;
        assert_eq!(told.iter().filter(|&&told| told == last).count(), 1);
        assert!(connection.had_last_receive());
    });
}
