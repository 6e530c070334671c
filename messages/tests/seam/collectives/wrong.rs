//! Members that do not do the same, that go, or that are not there: errors that name them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use doorbell_am::Name;
use doorbell_messages::collectives::{Group, GroupError, Operation};
use tokio::sync::Barrier;

use crate::collectives::members::{endpoints, in_time, run};

const ADD: fn(u64, u64) -> u64 = |left, right| left + right;

#[tokio::test]
async fn members_in_different_collectives_are_told_so() {
    let outcomes = run("shm", 2, |group| async move {
        match group.rank() {
            0 => group.barrier().await.expect_err("the other is elsewhere"),
            _ => group.all_reduce(vec![1], ADD).await.expect_err("the other is elsewhere"),
        }
    })
    .await;
    let mismatch = |why: &GroupError, is: Operation| match why {
        GroupError::Mismatch { here, there, rank, .. } => {
            let both = [Operation::Barrier, Operation::AllReduce];
            assert!(*here == is && here != there && both.contains(there) && *rank < 2, "{why}");
            true
        }
        _ => false,
    };
    let found =
        [mismatch(&outcomes[0], Operation::Barrier), mismatch(&outcomes[1], Operation::AllReduce)];
    assert!(found.contains(&true), "{outcomes:?}");
}

#[tokio::test]
async fn reductions_of_different_lengths_fail_with_both_lengths() {
    let outcomes = run("shm", 2, |group| async move {
        group.all_reduce(vec![1; 3 + group.rank()], ADD).await.expect_err("they differ")
    })
    .await;
    let is = |why: &GroupError| matches!(why, GroupError::Lengths { found, expected, .. } if found + expected == 56);
    assert!(outcomes.iter().any(is), "{outcomes:?}");
}

#[tokio::test]
async fn wrong_arguments_are_errors_and_nothing_is_sent() {
    run("shm", 3, |group| async move {
        let wrong = group.broadcast(3, Bytes::new()).await.expect_err("there is no such root");
        assert!(matches!(wrong, GroupError::NoMember { rank: 3, size: 3, .. }), "{wrong}");
        let wrong = group.all_to_all(vec![Bytes::new(); 2]).await.expect_err("one is missing");
        assert!(matches!(wrong, GroupError::Parts { found: 2, size: 3, .. }), "{wrong}");
        let wrong = group.scatter(group.rank(), None).await.expect_err("all are missing");
        assert!(matches!(wrong, GroupError::Parts { found: 0, size: 3, .. }), "{wrong}");
        let own = group.rank();
        let wrong = group.send(own, 0, Bytes::new()).await.expect_err("it is the member itself");
        assert!(matches!(wrong, GroupError::Itself { rank } if rank == own), "{wrong}");
        group.barrier().await.expect("nothing has failed");
        group.leave().await;
    })
    .await;
}

// The members wait for each other in a chain: only the first waits for the one that has gone.
#[tokio::test]
async fn a_member_that_goes_has_the_collectives_of_all_others_fail() {
    for device in ["shm", "udp:127.0.0.1:0"] {
        let all = Arc::new(Barrier::new(5));
        let outcomes = run(device, 5, move |group| {
            let all = all.clone();
            async move {
                group.barrier().await.expect("all are there");
                all.wait().await;
                if group.rank() == 4 {
                    return None;
                }
                let why = match group.rank() {
                    0 => group.receive(4, 1).await.expect_err("it has gone"),
                    rank => group.receive(rank - 1, 1).await.expect_err("nobody sends"),
                };
                // What is begun later fails, too.
                let later = group.barrier().await.expect_err("a member has gone");
                assert_eq!(later.rank(), Some(4), "{later}");
                Some(why)
            }
        })
        .await;
        for why in outcomes.into_iter().flatten() {
            assert_eq!(why.rank(), Some(4), "{why}");
            assert!(why.to_string().contains("has left"), "{why}");
        }
    }
}

#[tokio::test]
async fn members_that_have_left_are_missed_by_later_collectives_alone() {
    let both = Arc::new(Barrier::new(2));
    let outcomes = run("shm", 3, move |group| {
        let both = both.clone();
        async move {
            let all = group.all_gather(Bytes::from(vec![7; 50_000])).await.expect("all are there");
            assert_eq!(all.len(), 3);
            if group.rank() == 1 {
                group.leave().await;
                return None;
            }
            // Those that are left go on by themselves.
            let with = 2 - group.rank();
            for _ in 0..100 {
                group.send_receive(with, with, 1, Bytes::new()).await.expect("both are there");
            }
            both.wait().await;
            Some(group.barrier().await.expect_err("one has left"))
        }
    })
    .await;
    for why in outcomes.into_iter().flatten() {
        assert_eq!(why.rank(), Some(1), "{why}");
    }
}

#[tokio::test]
async fn a_collective_that_is_given_up_fails_for_all() {
    let outcomes = run("shm", 3, |group| async move {
        if group.rank() == 2 {
            let mut barrier = Box::pin(group.barrier());
            let polled = std::future::poll_fn(|context| {
                std::task::Poll::Ready(barrier.as_mut().poll(context).is_pending())
            });
            let _ = polled.await;
            drop(barrier);
            tokio::task::yield_now().await;
            // The others are told before this member goes.
            let why = group.receive(0, 1).await.expect_err("the group has failed");
            return (why, Some(group));
        }
        // The barrier may be done for those that have heard of all before.
        let why = match group.barrier().await {
            Ok(()) => group.receive(2, 1).await.expect_err("the group has failed"),
            Err(why) => why,
        };
        (why, Some(group))
    })
    .await;
    for (why, _) in &outcomes {
        let text = why.to_string();
        assert!(why.rank() == Some(2) && text.contains("given up"), "{text}");
    }
}

#[tokio::test]
async fn a_member_that_does_not_come_is_named() {
    let (endpoints, mut names) = endpoints("shm", 2).await;
    names.insert(1, Name::at("shm:nobody-is-here", 7));
    let patience = Duration::from_millis(300);
    let [first, third] = endpoints.try_into().expect("there are two");
    let (first, second) = tokio::join!(
        in_time(Group::join_within(patience, first, 0, &names)),
        in_time(Group::join_within(patience, third, 2, &names[..])),
    );
    for why in [first.expect_err("one is missing"), second.expect_err("one is missing")] {
        assert!(matches!(why, GroupError::Absent { .. }), "{why}");
        let text = why.to_string();
        assert!(text.contains("300ms") && text.contains(&names[1].to_string()), "{text}");
    }
}

#[tokio::test]
async fn lists_that_name_a_member_twice_or_at_another_place_are_refused_at_once() {
    let (endpoints, names) = endpoints("shm", 2).await;
    let join = |rank, names: Vec<Name>| {
        Group::join_within(Duration::MAX, endpoints[0].clone(), rank, &names.leak()[..])
    };
    let twice = in_time(join(0, vec![names[0].clone(), names[1].clone(), names[1].clone()])).await;
    let why = twice.expect_err("member 1 is member 2, too");
    assert!(matches!(why, GroupError::NamedTwice { first: 1, second: 2, .. }), "{why}");
    let why = in_time(join(1, names.clone())).await.expect_err("the name there is another");
    assert!(matches!(why, GroupError::NotNamed { rank: 1, .. }), "{why}");
    let text = why.to_string();
    assert!(names.iter().all(|name| text.contains(&name.to_string())), "{text}");
}

#[tokio::test]
async fn members_with_different_lists_do_not_meet() {
    let (endpoints, names) = endpoints("shm", 3).await;
    let [first, second, _third] = endpoints.try_into().expect("there are three");
    let other = [names[0].clone(), names[1].clone(), names[2].clone()];
    let (first, second) = tokio::join!(
        in_time(Group::join(first, 0, &names[..2])),
        in_time(Group::join_within(Duration::from_secs(5), second, 1, &other)),
    );
    for (why, rank) in [(first, 1), (second, 0)] {
        let why = why.expect_err("the lists differ");
        assert!(matches!(why, GroupError::OtherGroup { .. }) && why.rank() == Some(rank), "{why}");
    }
}

#[tokio::test]
async fn members_may_start_in_any_order() {
    let own = std::process::id();
    let devices: Vec<_> = (0..4).map(|rank| format!("shm:late-{own}/{rank}")).collect();
    let names: Vec<_> = devices.iter().map(|device| Name::at(device.as_str(), 7)).collect();
    let turn = Arc::new(Barrier::new(2));
    let mut members = Vec::new();
    // Those of the highest ranks, which connect to the others, begin.
    for (rank, device) in devices.into_iter().enumerate().rev() {
        let (names, turn) = (names.clone(), turn.clone());
        let begins = turn.clone();
        members.push(tokio::spawn(async move {
            let builder = doorbell_messages::Endpoint::builder().endpoint(|one| one.service(7));
            let endpoint = builder.open(&device).await.expect("it opens");
            begins.wait().await;
            let group = Group::join(endpoint, rank, &names).await.expect("all join");
            group.barrier().await.expect("all are there");
            group.leave().await;
        }));
        turn.wait().await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }
    for member in members {
        in_time(member).await.expect("no panic");
    }
}
