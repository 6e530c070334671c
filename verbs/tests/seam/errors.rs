//! Error texts as programs get them: what was tried, what was found, and what to do.

use doorbell_verbs::work::Send;
use doorbell_verbs::{
    Buf, ConnectError, Connection, ConnectionState, Domain, Ending, Failed, ListenRefused, Name,
    QueuePair, QueuePairConfig, QueuesConfig, Region, RemoteMemory, Rights, Unconnected,
};

use crate::common::{
    End, Over, Runs, SERVICE, address, brief, buf, connected, connected_as, customary, joined,
    nics, run, sleepy,
};

/// Runs a program over two connected ends, on one thread. An error is the same whether a task
/// sleeps or spins.
pub fn with<F: Future<Output = ()>>(
    program: impl Fn(End, End) -> F + std::marker::Send + Copy + 'static,
) {
    for (over, config) in
        [(Over::Shm, brief()), (Over::Udp, sleepy()), (Over::Shm, crate::common::dedicated())]
    {
        run(Runs::CurrentThread, move || async move {
            let (near, far) = nics(over, &config);
            let (near, far) = connected(&near, &far).await;
            program(near, far).await;
        });
    }
}

#[track_caller]
pub fn says(said: &impl ToString, words: &[&str]) {
    let said = said.to_string();
    for word in words {
        assert!(said.contains(word), "`{said}` should say `{word}`");
    }
}

/// Tries a write that the peer refuses, and checks what each side is told. The error did not say
/// which of a program's many accesses it was that was refused.
async fn refused(near: End, far: End, memory: RemoteMemory, why: &str) {
    let failed = near.pair.write(buf(1, 8), memory).await.expect_err("it may not");
    let (key, address) = (memory.rkey().0, memory.address().0);
    let asked = format!("it was asked for 8 bytes at {address:#x} by key {key:#010x}");
    says(&failed, &[&asked]);
    says(&failed, &["the peer refused access", "its key", "reach beyond", "lack the right"]);
    assert_eq!(failed.into_buf()[..], *buf(1, 8), "the buffer comes back");
    let ending = far.pair.connection().ended().await;
    says(&ending, &["a request of the peer's was refused access", why]);
    assert!(matches!(ending, Ending::Broken(_)), "{ending:?}");
    // From then on, whatever is asked for fails, and says so.
    let failed = near.pair.write(buf(1, 8), near.peer).await.expect_err("it is over");
    assert!(matches!(near.pair.connection().state(), ConnectionState::Ended(Ending::Broken(_))));
    says(&failed, &["not known to have been carried out", "the peer refused access"]);
}

#[test]
fn a_key_that_was_never_given_is_refused() {
    with(|near, far| async move {
        let other = RemoteMemory::from_bytes({
            let mut bytes = near.peer.to_bytes();
            bytes[16..].copy_from_slice(&0xdead_beef_u32.to_be_bytes());
            bytes
        });
        refused(near, far, other, "key 0xdeadbeef is unknown: never given, or revoked").await;
    });
}

#[test]
fn access_beyond_registered_memory_is_refused() {
    with(|near, far| async move {
        let mut bytes = near.peer.to_bytes();
        bytes[8..16].copy_from_slice(&u64::MAX.to_be_bytes());
        let end = near.peer.len() - 4;
        let beyond = RemoteMemory::from_bytes(bytes).at(end, 8).expect("of what is pretended");
        let why = "not all of the bytes lie within what key";
        refused(near, far, beyond, why).await;
    });
}

#[test]
fn an_operation_that_the_key_does_not_allow_is_refused() {
    with(|near, far| async move {
        let reads = far.domain.register(Region::new(64), Rights::REMOTE_READ).expect("room");
        let remote = reads.remote();
        refused(near, far, remote, "was registered without the right for this").await;
    });
}

#[test]
fn a_key_that_was_revoked_is_refused() {
    with(|near, far| async move {
        let remote = far.memory.remote();
        let region = far.memory.clone().revoke().await.expect("it was not before");
        let again = far.memory.clone().revoke().await.expect_err("once only");
        says(&again, &["was revoked already, by another handle"]);
        refused(near, far, remote, "is unknown: never given, or revoked").await;
        assert_eq!(region.load(0), Ok(0), "nothing was written");
    });
}

#[test]
fn a_key_that_was_renewed_is_refused_and_the_new_one_is_not() {
    with(|near, far| async move {
        let new = far.memory.renew().expect("it was not revoked");
        assert_eq!(far.memory.clone().remote(), new);
        near.pair.write(buf(1, 8), new).await.expect("it may");
        let old = near.peer;
        refused(near, far, old, "is unknown: never given, or revoked").await;
    });
}

#[test]
fn a_key_of_another_domain_is_refused() {
    with(|near, far| async move {
        let other = far.domain.nic().domain();
        let memory = other.register(Region::new(64), Rights::REMOTE).expect("room");
        let remote = memory.remote();
        refused(near, far, remote, "belongs to another protection domain than").await;
    });
}

#[test]
fn an_operation_that_the_queue_pair_does_not_allow_is_refused() {
    run(Runs::CurrentThread, || async {
        let (near, far) = nics(Over::Shm, &brief());
        let [mut reads, _] = customary();
        reads.rights = Rights::REMOTE_READ;
        let configs = [QueuePairConfig::default(), reads];
        let (near, far) = connected_as((&near.domain(), &far.domain()), configs).await;
        let failed = near.pair.write(buf(1, 8), near.peer).await.expect_err("it may not");
        says(&failed, &["the peer"]);
        says(&far.pair.connection().ended().await, &["this queue pair's rights lack that"]);
    });
}

#[test]
fn invalid_requests_are_not_posted() {
    with(|near, far| async move {
        let part = near.peer.at(0, 8).expect("within");
        let failed = near.pair.write(buf(1, 9), part).await.expect_err("too long");
        says(
            &failed,
            &["9 bytes are more than the 8 bytes of remote memory that the request names"],
        );
        let failed = near.pair.read(Buf::with_capacity(10), part).await.expect_err("too long");
        says(&failed, &["10 bytes are more than the 8"]);
        let odd = near.peer.at(4, 8).expect("within");
        let failed = near.pair.fetch_add(odd, 1).await.expect_err("no word");
        says(&failed, &["hold no aligned word of 8 bytes"]);
        let failed = near.pair.send_inline(&[0; 65]).await.expect_err("too long");
        says(&failed, &["65 bytes are more than the 64 that a request carries inline: send a Buf"]);
        // None of them has broken anything.
        near.pair.write(buf(1, 8), part).await.expect("it may");
        drop(far);
    });
}

#[test]
fn a_message_longer_than_its_receive_ends_the_connection_on_both_sides() {
    with(|near, far| async move {
        let (sent, received) =
            tokio::join!(near.pair.send(buf(1, 9)), far.pair.recv(Buf::with_capacity(4)));
        let (sent, received) = (sent.expect_err("no room"), received.expect_err("no room"));
        says(&sent, &["invalid request; is it longer than the peer's receive?"]);
        says(&received, &["a message of more than 4 bytes came for a receive of 4"]);
    });
}

/// Regression test for a bug: queues of one NIC passed for another's with the same number, and
/// queues for futures for those that a program reads, so that messages were lost.
#[test]
fn queues_of_other_nics_are_refused() {
    let (near, far) = nics(Over::Shm, &brief());
    let (own, others) = (near.completion_queue(64), far.completion_queue(64));
    let (own, others) = (own.expect("room"), others.expect("room"));
    let (domain, foreign) = (near.domain(), far.domain());
    let refused = |config: &QueuesConfig| domain.queues(config).map(drop).expect_err("refused");
    says(&refused(&QueuesConfig::new(&others)), &["not a completion queue of this NIC"]);
    says(&refused(&QueuesConfig::new(&own).receives_to(&others)), &["not a completion queue"]);
    let shared = foreign.shared_receives_to(&others, 8).expect("room");
    says(&refused(&QueuesConfig::new(&own).share(&shared)), &["not a shared receive queue"]);
    let for_futures = domain.shared_receive_queue(8).expect("room");
    says(&refused(&QueuesConfig::new(&own).share(&for_futures)), &["another queue"]);
    let to_read = domain.shared_receives_to(&own, 8).expect("room");
    let pair = domain.queue_pair(&QueuePairConfig::default().share(&to_read));
    says(&pair.map(drop).expect_err("refused"), &["another queue"]);
    assert!(domain.shared_receives_to(&others, 8).is_err());
}

#[test]
fn a_full_receive_queue_is_an_error() {
    with(|near, far| async move {
        for _ in 0..64 {
            far.pair.post_receive(Buf::with_capacity(8)).expect("room");
        }
        let full = far.pair.post_receive(Buf::with_capacity(8)).expect_err("all are posted");
        says(&full, &["holds 64", "all are outstanding", &far.pair.qpn().to_string()]);
        near.pair.send_inline(b"hello").await.expect("there is a receive");
        assert_eq!(&far.pair.receive().await.expect("one comes").data[..], b"hello");
    });
}

/// Regression test for a bug: each future that was given up had left its buffer, and the next found
/// the queue full.
#[test]
fn a_wait_for_a_message_may_be_dropped_any_number_of_times() {
    with(|near, far| async move {
        for _ in 0..200 {
            let mut waits = std::pin::pin!(far.pair.recv(Buf::with_capacity(8)));
            let polled = std::future::poll_fn(|context| {
                std::task::Poll::Ready(waits.as_mut().poll(context).is_pending())
            });
            assert!(polled.await, "nothing comes");
        }
        for round in 0..100 {
            near.pair.send_inline(&[round]).await.expect("there is a receive");
            let message = far.pair.recv(Buf::with_capacity(8)).await.expect("one comes");
            assert_eq!(message.data[..], [round]);
        }
    });
}

/// A full queue is an error for queues; futures wait.
#[test]
fn a_full_send_queue_is_an_error_of_posting_and_futures_wait() {
    run(Runs::CurrentThread, || async {
        let (near, far) = nics(Over::Shm, &brief());
        let (mut sent, received) =
            (near.completion_queue(64).expect("a size"), far.completion_queue(64).expect("a size"));
        let mut configs = (QueuesConfig::new(&sent), QueuesConfig::new(&received));
        configs.0.send_depth = 4;
        let (mut one, other) =
            joined((&near.domain(), &configs.0), (&far.domain(), &configs.1)).await;
        // The peer has no receive for them.
        for id in 0..4 {
            one.pair.send.post(Send::inline(b"wait").expect("short").id(id)).expect("room");
        }
        let refused = one.pair.send.post(Send::inline(b"full").expect("short").id(4));
        let refused = refused.expect_err("all are outstanding");
        says(&refused, &["holds 4 requests, and all are outstanding: await some of them"]);
        assert_eq!((refused.request.id, one.pair.send.room()), (4, 0));
        let mut other = other;
        for id in 0..4 {
            other.pair.receive.post(id, Buf::with_capacity(8)).expect("room");
        }
        for id in 0..4 {
            assert_eq!(sent.completion().await.id, id);
        }

        let few = customary().map(|mut config| {
            config.send_depth = 2;
            config
        });
        let (near, far) = connected_as((&near.domain(), &far.domain()), few).await;
        let sends = async {
            let sends = (0..8).map(|number| near.pair.send(buf(number, 8)));
            let mut sends: Vec<_> = sends.map(Box::pin).collect();
            // All are begun at once, in their order.
            std::future::poll_fn(|context| {
                sends.retain_mut(|send| {
                    let polled = send.as_mut().poll(context);
                    polled.map(|sent| sent.expect("it is received")).is_pending()
                });
                match sends.is_empty() {
                    true => std::task::Poll::Ready(()),
                    false => std::task::Poll::Pending,
                }
            })
            .await;
        };
        let receives = async {
            for number in 0..8 {
                let message = far.pair.recv(Buf::with_capacity(8)).await.expect("one comes");
                assert_eq!(message.data[..], *buf(number, 8));
            }
        };
        tokio::join!(sends, receives);
    });
}

async fn asked(domain: &Domain, to: &str) -> ConnectError {
    domain.connect(Name::at(to, SERVICE.0)).await.expect_err("nobody accepts")
}

#[test]
fn a_connection_that_fails_says_why() {
    for over in [Over::Shm, Over::Udp] {
        run(Runs::CurrentThread, move || async move {
            let (near, far) = nics(over, &brief());
            let (domain, to) = (near.domain(), address(&far));
            let why = asked(&domain, &to).await;
            says(&why, &[" refused a connection to service ", "listen to that service?"]);

            let mut listener = far.listen(SERVICE).await.expect("nobody else does");
            let taken = far.listen(SERVICE).await.expect_err("it is listened to");
            assert!(matches!(taken, ListenRefused::Manager(_)));
            says(&taken, &["7"]);

            let pair = domain.queue_pair(&QueuePairConfig::default()).expect("room");
            let rejects = async {
                let incoming = listener.accept().await.expect("a request");
                assert_eq!(&incoming.private()[..8], b"please  ");
                incoming.reject(b"not today").expect("the peer waits");
            };
            let (answer, ()) =
                tokio::join!(pair.connect(Name::at(&*to, SERVICE.0), b"please  "), rejects);
            let why = answer.expect_err("it is rejected");
            says(&why, &[&to, " refused a connection to service "]);
            let ConnectError::Refused { private, .. } = why else { panic!("{why:?}") };
            assert_eq!(&private[..9], b"not today");

            // An incoming one that is dropped is refused, and so are those that a listener had.
            let drops = async { drop(listener.accept().await.expect("a request")) };
            let (why, ()) = tokio::join!(asked(&domain, &to), drops);
            says(&why, &[&to, " refused a connection to service "]);
            let waits = async {
                while far.statistics().connections.received < 4 {
                    tokio::task::yield_now().await;
                }
                drop(listener);
            };
            let (why, ()) = tokio::join!(asked(&domain, &to), waits);
            says(&why, &[&to, " refused a connection to service "]);
        });
    }
}

#[test]
fn the_error_for_text_that_is_no_address_or_of_another_kind_says_so() {
    run(Runs::CurrentThread, || async {
        let (near, _) = nics(Over::Shm, &brief());
        let domain = near.domain();
        says(&asked(&domain, "elsewhere").await, &["`elsewhere` names no device"]);
        says(&asked(&domain, "udp:127.0.0.1:4791").await, &["127.0.0.1:4791", "shm"]);
        let nobody = format!("{}-nobody", near.address());
        says(&asked(&domain, &nobody).await, &["nobody"]);
    });
}

#[test]
fn a_request_after_the_end_fails_and_says_who_ended_the_connection() {
    with(|near, far| async move {
        let leaves = async {
            let ending = near.pair.connection().disconnect(b"goodbye").await.expect("it stands");
            assert!(matches!(ending, Ending::Left { .. }), "{ending:?}");
        };
        let ((), ending) = tokio::join!(leaves, far.pair.connection().ended());
        says(&ending, &["the peer ended the connection"]);
        let Ending::PeerLeft { private } = ending else { panic!("{ending:?}") };
        assert_eq!(&private[..7], b"goodbye");
        for (end, who) in [(&near, "this side ended"), (&far, "the peer ended the connection")] {
            let failed = end.pair.send(buf(1, 8)).await.expect_err("it is over");
            says(&failed, &[who]);
            let failed = end.pair.receive().await.expect_err("it is over");
            says(&failed, &["no more messages come", who]);
            let failed = end.pair.recv(Buf::with_capacity(8)).await.expect_err("it is over");
            says(&failed, &[who]);
            let again = end.pair.connection().disconnect(&[]).await;
            says(&again.expect("it is over"), &[who]);
        }
    });
}

/// Requests that were under way are flushed, and say that the peer left.
#[test]
fn a_request_under_way_when_the_peer_leaves_fails_and_says_so() {
    with(|near, far| async move {
        let leaves = async {
            // The peer has no receive for it: it is under way until then.
            while far.domain.nic().statistics().nic.rnr_naks_sent == 0 {
                tokio::task::yield_now().await;
            }
            drop(far.pair);
        };
        let (sent, received, ()) =
            tokio::join!(near.pair.send(buf(1, 8)), near.pair.recv(Buf::with_capacity(8)), leaves);
        for failed in [sent.expect_err("it left"), received.map(drop).expect_err("it left")] {
            says(&failed, &["the peer ended the connection"]);
            assert!(!failed.to_string().contains("told"), "nobody told it anything: {failed}");
        }
    });
}

/// Handles to a connection may outlive its queue pair.
#[test]
fn a_connection_that_is_dropped_here_is_ended_by_this_side() {
    with(|near, far| async move {
        let connection: Connection = near.pair.connection().clone();
        drop(near.pair);
        says(&connection.ended().await, &["this side ended"]);
        says(&far.pair.connection().ended().await, &["the peer ended the connection"]);
        let unconnected: Unconnected<QueuePair> =
            far.domain.queue_pair(&QueuePairConfig::default()).expect("room");
        drop(unconnected);
    });
}

/// Passes an error on as a program would.
#[test]
fn every_error_is_an_error_that_threads_may_pass_on() {
    fn is<E: std::error::Error + std::marker::Send + Sync + 'static>() {}
    is::<Failed>();
    is::<ConnectError>();
    is::<ListenRefused>();
}

/// A handle to the connection can't end it yet, and says so; nor with too long private data.
#[test]
fn a_handle_does_not_end_a_connection_that_is_being_made() {
    for (over, config) in [(Over::Shm, brief()), (Over::Udp, sleepy())] {
        run(Runs::CurrentThread, move || async move {
            let (here, there) = nics(over, &config);
            let mut listener = there.listen(SERVICE).await.expect("nobody else listens");
            let pair = here.domain().queue_pair(&QueuePairConfig::default()).expect("room");
            let handle = pair.connection().clone();
            let why = handle.disconnect(&[]).await.expect_err("it was not asked for");
            says(&why, &["is not connected", "drop the future that makes it"]);
            let to = address(&there);
            let mut connects = std::pin::pin!(pair.connect(Name::at(&*to, SERVICE.0), &[]));
            tokio::select! {
                biased;
                _ = &mut connects => panic!("nobody has accepted"),
                incoming = listener.accept() => {
                    let incoming = incoming.expect("a request");
                    let why = handle.disconnect(&[]).await.expect_err("it is just being made");
                    says(&why, &["is not connected", "drop the future that makes it"]);
                    let taken = there.domain().queue_pair(&QueuePairConfig::default());
                    let accepts = taken.expect("room").accept(incoming, &[]);
                    let (near, far) = tokio::join!(connects, accepts);
                    let (near, far) = (near.expect("it goes on").0, far.expect("it goes on").0);
                    far.post_receive(Buf::with_capacity(8)).expect("room");
                    handle.disconnect(&[0; 225]).await.expect_err("it is too much to say");
                    near.send_inline(b"one").await.expect("it stands, and there is a receive");
                    far.receive().await.expect("one comes");
                }
            }
        });
    }
}
