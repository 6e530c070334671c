//! The causes that break a queue pair, or end what is posted to it, as each side is told of them.

use doorbell_core::nic::KeyError;
use doorbell_verbs::{
    Buf, Cause, Data, Failed, FailedWhy, Failure, Memory, QueuePairConfig, Region, Rights,
    RnrRetryCount,
};

use crate::common::{Over, Runs, brief, buf, connected_as, customary, nics, run};
use crate::errors::{says, with};

/// Returns the cause by which a request broke its queue pair.
#[track_caller]
fn broke(failed: &Failed) -> Cause {
    match failed.why() {
        FailedWhy::Carried(Failure::Broke(cause)) => cause,
        other => panic!("{other:?} has broken nothing"),
    }
}

/// The memory that a request names on this side is checked when the request is sent, and the peer
/// is not asked.
#[test]
fn memory_of_another_domain_or_a_revoked_registration_is_not_sent() {
    for revoked in [false, true] {
        with(move |near, far| async move {
            let domain = match revoked {
                true => near.domain.clone(),
                false => near.domain.nic().domain(),
            };
            let memory = domain.register(Region::new(64), Rights::NONE).expect("room");
            let part = memory.slice(8..16).expect("within");
            if revoked {
                memory.clone().revoke().await.expect("it was not before");
            }
            far.pair.post_receive(Buf::with_capacity(8)).expect("room");
            let sent = near.pair.send(Data::Memory(Memory::from(part))).await;
            let failed = sent.expect_err("it may not");
            match (revoked, broke(&failed)) {
                (true, Cause::LocalProtection { segment: 0, why: KeyError::Unknown(_) }) => {
                    says(&failed, &["segment 0 of the request", "never given, or revoked"]);
                }
                (false, Cause::LocalProtection { segment: 0, why: KeyError::Domain(_) }) => {
                    says(&failed, &["segment 0 of the request", "another protection domain"]);
                }
                (_, other) => panic!("{other:?}"),
            }
            says(&far.pair.connection().ended().await, &["the peer ended the connection"]);
            drop((near, far));
        });
    }
}

/// The owner of the memory is told the cause, and the peer only that the request failed.
#[test]
fn a_receive_in_memory_that_may_not_be_written_fails_on_both_sides() {
    with(|near, far| async move {
        let memory = far.domain.register(Region::new(64), Rights::NONE).expect("room");
        far.pair.post_receive(memory.whole()).expect("room");
        let (sent, received) = tokio::join!(near.pair.send(buf(1, 8)), far.pair.receive());
        let sent = sent.expect_err("it is not received");
        assert_eq!(broke(&sent), Cause::PeerOperation);
        says(&sent, &["the peer could not carry it out"]);
        assert_eq!(sent.into_buf()[..], *buf(1, 8), "the buffer comes back");
        let received = received.expect_err("it may not be written");
        let cause = broke(&received);
        assert!(
            matches!(cause, Cause::LocalProtection { segment: 0, why: KeyError::Rights(_) }),
            "{cause:?}"
        );
        says(&received, &["segment 0 of the request", "was registered without the right for this"]);
        assert_eq!(memory.load(0), Ok(0), "nothing was written");
        drop((near, far));
    });
}

#[test]
fn a_read_into_memory_that_may_not_be_written_fails() {
    with(|near, far| async move {
        far.memory.store(0, 7).expect("within");
        let memory = near.domain.register(Region::new(8), Rights::NONE).expect("room");
        let read = near.pair.read(memory.whole(), near.peer.at(0, 8).expect("within")).await;
        let failed = read.expect_err("it may not be written");
        says(&failed, &["segment 0 of the request", "was registered without the right for this"]);
        assert_eq!(memory.load(0), Ok(0), "nothing was written");
        drop((near, far));
    });
}

/// Each of the two sides in turn has agreed to no reads; other requests go on until a read is
/// tried.
#[test]
fn a_connection_that_was_made_without_reads_takes_none_and_says_so() {
    for without in [0, 1] {
        for adds in [false, true] {
            run(Runs::CurrentThread, move || async move {
                let (near, far) = nics(Over::Shm, &brief());
                let mut configs = customary();
                configs[without].reads = 0;
                let (near, far) = connected_as((&near.domain(), &far.domain()), configs).await;
                near.pair.write(buf(1, 8), near.peer).await.expect("it is no read");
                let word = near.peer.at(0, 8).expect("within");
                let failed = match adds {
                    true => near.pair.fetch_add(word, 1).await.expect_err("there are none"),
                    false => {
                        let read = near.pair.read(Buf::with_capacity(8), word).await;
                        read.expect_err("there are none")
                    }
                };
                assert_eq!(broke(&failed), Cause::NoReads);
                says(&failed, &["takes no reads and atomic operations: connect with a depth"]);
                assert_eq!(far.memory.load(0), Ok(u64::from_ne_bytes(first(&buf(1, 8)))));
                drop((near, far));
            });
        }
    }
}

fn first(bytes: &[u8]) -> [u8; 8] {
    *bytes.first_chunk().expect("as many")
}

/// Writes without the right are tested elsewhere.
#[test]
fn reads_and_atomics_that_a_queue_pair_gives_no_right_to_are_refused() {
    for adds in [false, true] {
        run(Runs::CurrentThread, move || async move {
            let (near, far) = nics(Over::Udp, &brief());
            let [_, mut takes] = customary();
            takes.rights = match adds {
                true => Rights::REMOTE_WRITE | Rights::REMOTE_READ,
                false => Rights::REMOTE_WRITE | Rights::REMOTE_ATOMIC,
            };
            let configs = [QueuePairConfig::default(), takes];
            let (near, far) = connected_as((&near.domain(), &far.domain()), configs).await;
            let word = near.peer.at(0, 8).expect("within");
            near.pair.write(buf(1, 8), word).await.expect("that is allowed");
            let failed = match adds {
                true => near.pair.fetch_add(word, 1).await.expect_err("it may not"),
                false => near.pair.read(Buf::with_capacity(8), word).await.expect_err("it may not"),
            };
            assert_eq!(broke(&failed), Cause::PeerInvalidRequest);
            let ending = far.pair.connection().ended().await;
            says(&ending, &["wanted to write, read or do atomics", "rights lack that"]);
            assert_eq!(far.memory.load(0), Ok(u64::from_ne_bytes(first(&buf(1, 8)))));
            drop((near, far));
        });
    }
}

/// Sends a message that finds no receive, as often as the receive's owner has said.
fn finds_no_receive(over: Over, owner_asks: bool, retries: u8) {
    run(Runs::CurrentThread, move || async move {
        let (near, far) = nics(over, &brief());
        let [mut asks, mut takes] = customary();
        let owner = if owner_asks { &mut asks } else { &mut takes };
        owner.rnr_retries = RnrRetryCount::new(retries);
        let (near, far) = connected_as((&near.domain(), &far.domain()), [asks, takes]).await;
        let (sender, owner) = if owner_asks { (far, near) } else { (near, far) };
        let failed = sender.pair.send(buf(1, 8)).await.expect_err("no receive is posted");
        let cause = broke(&failed);
        let Cause::ReceiverNotReady { tries, wait } = cause else { panic!("{cause:?}") };
        assert_eq!(tries, retries + 1);
        let [heard, said] = [&sender, &owner].map(|end| end.domain.nic().statistics().nic);
        assert_eq!(heard.rnr_naks_received, u64::from(tries));
        // What is sent again for want of an answer is answered as often.
        assert!(said.rnr_naks_sent >= u64::from(tries), "{said:?}");
        let told = [format!("no receive for it, {tries} times"), format!("{:?}", wait.delay())];
        says(&failed, &told.each_ref().map(String::as_str));
        assert_eq!(failed.into_buf()[..], *buf(1, 8), "the buffer comes back");
        says(&owner.pair.connection().ended().await, &["the peer ended the connection"]);
        drop((sender, owner));
    });
}

#[test]
fn a_message_without_a_receive_is_repeated_as_often_as_the_receiver_said_and_fails() {
    for over in [Over::Udp, Over::Shm] {
        finds_no_receive(over, true, 2);
        finds_no_receive(over, false, 2);
        finds_no_receive(over, false, 0);
    }
}

/// The request is flushed through no fault of its own.
#[test]
fn a_request_under_way_when_this_side_ends_the_connection_is_flushed_and_says_so() {
    with(|near, far| async move {
        let ends = async {
            // The peer has no receive for it: it is under way until then.
            while far.domain.nic().statistics().nic.rnr_naks_sent == 0 {
                tokio::task::yield_now().await;
            }
            near.pair.connection().disconnect(&[]).await.expect("it stands");
        };
        let (sent, ()) = tokio::join!(near.pair.send(buf(1, 8)), ends);
        let failed = sent.expect_err("it was not received");
        assert_eq!(failed.why(), FailedWhy::Carried(Failure::Flushed(Cause::Told)));
        // The peer has agreed by now, or not.
        let ends = ["this side ended the connection", "this side is ending the connection"];
        let said = failed.to_string();
        let is_said =
            |end: &&str| said.ends_with(&format!("not known to have been carried out: {end}"));
        assert!(ends.iter().any(is_said), "{said}");
        assert_eq!(failed.into_buf()[..], *buf(1, 8), "the buffer comes back");
        drop((near, far));
    });
}

#[test]
fn a_queue_pair_that_shares_its_receives_takes_none_of_its_own_and_the_shared_queue_so_many() {
    run(Runs::CurrentThread, || async {
        let (near, far) = nics(Over::Shm, &brief());
        let (asks, takes) = (near.domain(), far.domain());
        let shared = takes.shared_receive_queue(2).expect("room");
        let configs = [QueuePairConfig::default(), QueuePairConfig::default().share(&shared)];
        let (near, far) = connected_as((&asks, &takes), configs).await;
        let refused = far.pair.post_receive(Buf::with_capacity(8)).expect_err("it shares");
        says(&refused, &[&far.pair.qpn().to_string(), "shared queue: post them there"]);
        (0..2).for_each(|id| shared.post(id, Buf::with_capacity(8)).expect("room"));
        let full = shared.post(2, Buf::with_capacity(8)).expect_err("all are posted");
        says(&full, &["holds 2 receives, and all are posted: post more when"]);
        drop((near, far));
    });
}
