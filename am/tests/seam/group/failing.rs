//! Members that leave, give up, differ from others, or never come.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use doorbell_am::group::{Group, GroupConfig, GroupError, Operation};
use doorbell_am::{Bundle, BundleConfig, Name, Tag};
use doorbell_kit::{datagrams_to_closed_ports, lab};
use doorbell_verbs::Nic;

use crate::group::common::{concat, in_time, join, names, spmd, with_members};
use crate::promises::devices::Devices;

#[test]
fn members_in_different_collectives_are_told_which_ones() {
    for size in 2..=6 {
        with_members(size, async |groups| {
            let outcomes = spmd(&groups, |group| async move {
                match group.rank() {
                    1 => group.barrier().await,
                    _ => group.broadcast(0, Bytes::new()).await.map(drop),
                }
            });
            let mut told = 0;
            for outcome in outcomes.await {
                // The root of a broadcast may be done with that.
                let Err(why) = outcome else { continue };
                let GroupError::Mismatch { here, there, .. } = why else { panic!("{why}") };
                let found = [here.operation(), there.operation()];
                assert!(found.contains(&Operation::Barrier), "{found:?}");
                assert!(found.contains(&Operation::Broadcast), "{found:?}");
                told += 1;
            }
            assert!(told > 0, "{size} members");
        });
    }
}

#[test]
fn members_that_wait_for_each_other_in_different_collectives_find_that_out() {
    with_members(2, async |groups| {
        let outcomes = spmd(&groups, |group| async move {
            match group.rank() {
                0 => group.gather(0, Bytes::new()).await.map(drop),
                _ => group.broadcast(0, Bytes::new()).await.map(drop),
            }
        });
        for outcome in outcomes.await {
            assert!(matches!(outcome, Err(GroupError::Mismatch { .. })), "{outcome:?}");
        }
    });
}

/// A member took the message of another collective, if that had come before it began its own, for
/// one of its own, and was done.
#[test]
fn no_member_is_done_with_a_collective_by_messages_of_another() {
    for size in 2..=4 {
        for late in 0..20 {
            with_members(size, async move |groups| {
                let outcomes = spmd(&groups, move |group| async move {
                    if group.rank() > 0 {
                        return group.fence().await;
                    }
                    // The messages of the others come meanwhile, or not.
                    for _ in 0..late {
                        tokio::task::yield_now().await;
                    }
                    group.barrier().await
                });
                for outcome in outcomes.await {
                    assert!(matches!(outcome, Err(GroupError::Mismatch { .. })), "{outcome:?}");
                }
            });
        }
    }
}

#[test]
fn roots_that_differ_are_named() {
    with_members(3, async |groups| {
        let outcomes = spmd(&groups, |group| async move {
            group.broadcast(group.rank() / 2, Bytes::new()).await?;
            group.barrier().await
        });
        for outcome in outcomes.await {
            let Err(GroupError::Mismatch { here, there, .. }) = outcome else {
                panic!("{outcome:?}")
            };
            assert!(here != there, "{here} and {there}");
        }
    });
}

/// Polls a future once. Whether it is done with that.
fn is_ready(future: std::pin::Pin<&mut impl Future>) -> bool {
    future.poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_ready()
}

#[test]
fn a_collective_that_is_dropped_fails_for_all_and_names_who_dropped_it() {
    for size in 2..=6 {
        for polled in [false, true] {
            with_members(size, async |groups| {
                let outcomes = spmd(&groups, |group| async move {
                    group.barrier().await.expect("all are there");
                    loop {
                        let mut barrier = Box::pin(group.barrier());
                        if group.rank() != 1 {
                            barrier.await?;
                            continue;
                        }
                        // It may be done at once, if all others have come.
                        if polled && is_ready(barrier.as_mut()) {
                            tokio::task::yield_now().await;
                            continue;
                        }
                        drop(barrier);
                        return group.barrier().await;
                    }
                });
                for outcome in outcomes.await {
                    let gave_up = matches!(outcome, Err(GroupError::GaveUp { rank: 1, .. }));
                    assert!(gave_up, "{size} members: {outcome:?}");
                }
            });
        }
    }
}

#[test]
fn an_operator_that_panics_fails_the_collective_for_all() {
    with_members(4, async |groups| {
        let outcomes = spmd(&groups, |group| async move {
            let rank = group.rank();
            let task = tokio::spawn(group.all_reduce_bytes(
                Bytes::from_static(b"x"),
                move |left, right| {
                    if rank == 2 {
                        std::panic::resume_unwind(Box::new("as it should"));
                    }
                    concat(left, right);
                },
            ));
            match task.await {
                Ok(_) if rank != 2 => group.barrier().await,
                _ => Err(GroupError::GaveUp { rank: 2, whole: 2 }),
            }
        });
        for outcome in outcomes.await {
            assert!(matches!(outcome, Err(GroupError::GaveUp { rank: 2, .. })), "{outcome:?}");
        }
    });
}

#[test]
fn a_team_without_the_member_that_failed_goes_on() {
    with_members(5, async |groups| {
        spmd(&groups, |group| async move {
            let rank = group.rank();
            let team = group.split(Some(rank as u32 / 3), 0).await.expect("all split");
            let team = team.expect("all have a colour");
            if rank == 4 {
                drop(team.barrier());
            }
            let outcome = team.barrier().await;
            match rank {
                0..3 => outcome.expect("nobody has failed there"),
                _ => match outcome {
                    Err(GroupError::GaveUp { rank: 1, whole: 4 }) => {}
                    other => panic!("rank {rank}: {other:?}"),
                },
            }
            // Of the whole group nobody has given up anything.
            group.barrier().await.expect("all are there");
        })
        .await;
    });
}

#[test]
fn a_member_that_never_comes_is_named_when_patience_is_over() {
    in_time(1, async {
        let devices = Devices::shm(2);
        let mut members = names(&devices.nics);
        members.push(Name::at("shm:nobody-has-this-name/3", 7));
        let patience = Duration::from_millis(300);
        let mut groups = Vec::new();
        for (rank, nic) in devices.nics.iter().enumerate() {
            let bundle = Bundle::new(nic, &BundleConfig::default()).expect("room");
            let members = members.clone();
            let config = GroupConfig { rank, members, patience, ..GroupConfig::default() };
            groups.push(Group::join(&bundle, config).await.expect("room"));
        }
        let outcomes = spmd(&groups, |group| async move { group.barrier().await });
        for outcome in outcomes.await {
            let Err(GroupError::Connect { rank: 2, name, .. }) = outcome else {
                panic!("{outcome:?}");
            };
            assert_eq!(name, members[2]);
        }
    });
}

#[test]
fn a_member_that_comes_late_is_waited_for() {
    in_time(1, async {
        let devices = Devices::shm(3);
        let members = names(&devices.nics);
        let tasks = devices.nics.iter().cloned().enumerate().map(|(rank, nic)| {
            let config = GroupConfig { rank, members: members.clone(), ..GroupConfig::default() };
            tokio::spawn(async move {
                // Others have tried to connect by then.
                tokio::time::sleep(Duration::from_millis(20 * rank as u64)).await;
                let bundle = Bundle::new(&nic, &BundleConfig::default()).expect("room");
                let group = Group::join(&bundle, config).await?;
                group.barrier().await?;
                group.leave().await;
                Ok::<_, GroupError>(())
            })
        });
        let tasks: Vec<_> = tasks.collect();
        for task in tasks {
            task.await.expect("it does not panic").expect("all come");
        }
    });
}

/// The system says that nobody is at its port, and each attempt fails at once.
#[test]
fn by_udp_a_member_whose_port_is_still_closed_is_waited_for() {
    lab::test(|_| {
        // Nobody else has addresses in this namespace.
        let address = |rank: usize| format!("udp:127.0.0.1:{}", 5000 + rank);
        let members: Vec<_> = (0..2).map(|rank| Name::at(address(rank), 7)).collect();
        let joins = async |rank: usize| {
            let config = GroupConfig { rank, members: members.clone(), ..GroupConfig::default() };
            let nic = Nic::open(&address(rank)).await.expect("nobody has it");
            let bundle = Bundle::new(&nic, &BundleConfig::default()).expect("room");
            let group = Group::join(&bundle, config).await.expect("room");
            group.barrier().await.expect("the other one comes");
            group.leave().await;
        };
        in_time(1, async {
            let comes_later = async {
                while datagrams_to_closed_ports() < 4 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                joins(0).await;
            };
            tokio::join!(joins(1), comes_later);
        });
    });
}

/// Each made a connection of its own once, until the endpoint had no place left for another member.
#[test]
fn collectives_that_begin_at_the_same_time_connect_to_a_member_once() {
    with_members(3, async |groups| {
        let broadcasts = |group: Group| async move {
            let begun: Vec<_> =
                (0..10).map(|_| tokio::spawn(group.broadcast(0, Bytes::new()))).collect();
            for broadcast in begun {
                broadcast.await.expect("it does not panic").expect("it is done");
            }
        };
        // The root needs no other member to be done, and no other connects to it.
        spmd(&groups[..1], broadcasts).await;
        spmd(&groups[1..], broadcasts).await;
    });
}

#[test]
fn members_with_another_list_of_members_are_told_that() {
    in_time(1, async {
        let devices = Devices::shm(3);
        let all = names(&devices.nics);
        let mut groups = Vec::new();
        for (rank, nic) in devices.nics.iter().take(2).enumerate() {
            let bundle = Bundle::new(nic, &BundleConfig::default()).expect("room");
            let members = all[..3 - rank].to_vec();
            let config = GroupConfig { rank, members, ..GroupConfig::default() };
            groups.push(Group::join(&bundle, config).await.expect("room"));
        }
        let outcome = groups[0].barrier().await;
        assert!(matches!(outcome, Err(GroupError::OtherGroup { rank: 1, .. })), "{outcome:?}");
    });
}

#[test]
fn members_that_show_each_other_a_tag_meet_whichever_of_them_connects_first() {
    // A member that was connected to shows no tag by that connection, and was not admitted by it
    // once.
    in_time(1, async {
        let devices = Devices::shm(3);
        let config = GroupConfig { tag: Some(Tag(7)), ..GroupConfig::default() };
        let groups = join(&devices.nics, &config).await;
        for _ in 0..3 {
            for outcome in spmd(&groups, |group| async move { group.barrier().await }).await {
                outcome.expect("all show the tag");
            }
        }
    });
}

#[test]
fn a_member_that_does_not_show_the_tag_is_not_admitted() {
    in_time(1, async {
        let devices = Devices::shm(2);
        let members = names(&devices.nics);
        let mut groups = Vec::new();
        for (rank, nic) in devices.nics.iter().enumerate() {
            let bundle = Bundle::new(nic, &BundleConfig::default()).expect("room");
            let (members, tag) = (members.clone(), Some(Tag(rank as u64)));
            let config = GroupConfig { rank, members, tag, ..GroupConfig::default() };
            groups.push(Group::join(&bundle, config).await.expect("room"));
        }
        let outcome = groups[0].broadcast(0, Bytes::new()).await;
        let Err(why @ GroupError::Connect { rank: 1, .. }) = outcome else { panic!("{outcome:?}") };
        assert!(why.to_string().contains("tag 0x0"), "{why}");
    });
}

#[test]
fn a_message_longer_than_members_take_is_refused_to_all() {
    in_time(1, async {
        let devices = Devices::shm(4);
        let config = GroupConfig { longest: 10_000, ..GroupConfig::default() };
        let groups = join(&devices.nics, &config).await;
        let outcomes =
            spmd(
                &groups,
                |group| async move { group.all_gather(Bytes::from(vec![0; 5000])).await },
            );
        for outcome in outcomes.await {
            let Err(GroupError::TooLong { len, longest: 10_000, .. }) = outcome else {
                panic!("{:?}", outcome.map(|blocks| blocks.len()));
            };
            assert!(len > 10_000);
        }
    });
}

#[test]
fn a_root_or_parts_that_can_not_be_are_refused_before_anything_is_sent() {
    with_members(2, async |groups| {
        spmd(&groups, |group| async move {
            let outcome = group.broadcast(2, Bytes::new()).await;
            assert!(matches!(outcome, Err(GroupError::Root { root: 2, size: 2 })), "{outcome:?}");
            let outcome = group.all_to_all(vec![Bytes::new(); 3]).await;
            assert!(matches!(outcome, Err(GroupError::Parts { found: 3, size: 2 })), "{outcome:?}");
            group.barrier().await.expect("all are there");
        })
        .await;
    });
}

/// A member that is 1000 broadcasts ahead would have sent a thousand payloads that nobody has
/// taken.
#[test]
fn a_member_far_ahead_is_held_up_by_one_that_has_not_come() {
    const BROADCASTS: usize = 1000;
    with_members(3, async |groups| {
        let ahead = Arc::new(AtomicUsize::new(0));
        let outcomes = spmd(&groups, |group| {
            let ahead = ahead.clone();
            async move {
                if group.rank() == 0 {
                    for _ in 0..BROADCASTS {
                        group.broadcast(0, Bytes::from(vec![7; 4096])).await?;
                        ahead.fetch_add(1, Ordering::Relaxed);
                    }
                    return Ok(());
                }
                while group.rank() == 2 && ahead.load(Ordering::Relaxed) < 16 {
                    tokio::task::yield_now().await;
                }
                for _ in 0..1000 {
                    tokio::task::yield_now().await;
                }
                for done in 0..BROADCASTS {
                    let ahead = ahead.load(Ordering::Relaxed);
                    assert!(ahead <= done + 17, "{ahead} broadcasts were sent, {done} received");
                    group.broadcast(0, Bytes::new()).await?;
                }
                Ok::<_, GroupError>(())
            }
        });
        for outcome in outcomes.await {
            outcome.expect("nobody fails");
        }
    });
}
