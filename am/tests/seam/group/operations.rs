//! Each operation against a plain model.

use std::sync::Arc;

use bytes::Bytes;
use doorbell_am::group::{Group, GroupConfig, GroupError, operators};
use doorbell_am::{Bundle, BundleConfig, Name};
use doorbell_verbs::Nic;

use crate::group::common::{bytes, concat, each_size, spmd, with_members};
use crate::promises::devices::Devices;

/// The longest payload of a message of a group's endpoint.
const PAYLOAD: usize = 4096;

type Outcome = Result<(), GroupError>;

/// Runs every operation with data of such a length, a little more for each rank, and compares what
/// comes with what a plain program gives.
async fn all_operations(group: Group, len: usize) -> Outcome {
    let (rank, size) = (group.rank(), group.size());
    let of = |rank: usize, salt: usize| bytes(rank, salt, if len > 1 { len + rank } else { len });
    let all = |salt: usize| (0..size).map(|rank| of(rank, salt)).collect::<Vec<_>>();
    let joined = |ranks: std::ops::Range<usize>, salt: usize| {
        ranks.map(|rank| of(rank, salt)).collect::<Vec<_>>().concat()
    };
    group.barrier().await?;
    for root in 0..size {
        let own = if rank == root { of(root, 1) } else { Bytes::new() };
        assert_eq!(group.broadcast(root, own).await?, of(root, 1));
        let gathered = group.gather(root, of(rank, 2)).await?;
        assert_eq!(gathered, (rank == root).then(|| all(2)));
        let parts = (rank == root).then(|| all(3));
        assert_eq!(group.scatter(root, parts).await?, of(rank, 3));
        let reduced = group.reduce_bytes(root, of(rank, 4), concat).await?;
        assert_eq!(reduced, (rank == root).then(|| joined(0..size, 4).into()));
    }
    assert_eq!(group.all_gather(of(rank, 5)).await?, all(5));
    let parts = (0..size).map(|to| of(rank * size + to, 6)).collect();
    let expected: Vec<_> = (0..size).map(|from| of(from * size + rank, 6)).collect();
    assert_eq!(group.all_to_all(parts).await?, expected);
    assert_eq!(group.all_reduce_bytes(of(rank, 7), concat).await?, joined(0..size, 7));
    assert_eq!(group.scan_bytes(of(rank, 8), concat).await?, joined(0..rank + 1, 8));
    let before = group.exclusive_scan_bytes(of(rank, 9), concat).await?;
    assert_eq!(before, (rank > 0).then(|| joined(0..rank, 9).into()));
    let words = |of: usize| vec![of as u64; len / 8];
    let sum = |upto: usize| vec![(0..upto as u64).sum::<u64>(); len / 8];
    let at_root = group.reduce(size - 1, words(rank), operators::sum).await?;
    assert_eq!(at_root, (rank == size - 1).then(|| sum(size)));
    assert_eq!(group.all_reduce(words(rank), |one, other| one + other).await?, sum(size));
    assert_eq!(group.scan(words(rank), operators::sum).await?, sum(rank + 1));
    let before = group.exclusive_scan(words(rank), operators::sum).await?;
    assert_eq!(before, (rank > 0).then(|| sum(rank)));
    group.barrier().await
}

async fn play(groups: Arc<Vec<Group>>, lengths: &'static [usize]) {
    for &len in lengths {
        let outcomes = spmd(&groups, |group| all_operations(group, len)).await;
        for (rank, outcome) in outcomes.into_iter().enumerate() {
            outcome.unwrap_or_else(|why| panic!("rank {rank} with {len} bytes: {why}"));
        }
    }
}

#[test]
fn in_shared_memory_every_operation_gives_what_a_plain_program_gives() {
    let lengths = &[0, 1, 100, PAYLOAD, PAYLOAD + 1];
    each_size(1..=9, Devices::shm, |groups| play(groups, lengths));
}

#[test]
fn by_udp_every_operation_gives_what_a_plain_program_gives() {
    let lengths = &[0, 1, PAYLOAD + 1];
    each_size([2, 3, 8], Devices::udp, |groups| play(groups, lengths));
}

#[test]
fn megabytes_go_through_every_operation() {
    each_size([2, 3], Devices::shm, |groups| play(groups, &[3 << 20]));
}

/// The two members wait for each other's word: the first for that the second is through.
#[test]
fn a_member_that_has_arrived_lets_the_other_through_before_it_waits_itself() {
    each_size([2], Devices::shm, |groups| async move {
        for _ in 0..3 {
            let (through, heard) = tokio::sync::oneshot::channel();
            let (first, second) = (groups[0].clone(), groups[1].clone());
            let first = tokio::spawn(async move {
                let arrived = first.arrive();
                heard.await.expect("the other is through");
                arrived.await
            });
            second.barrier().await.expect("both have come");
            through.send(()).expect("it listens");
            first.await.expect("it does not panic").expect("both have come");
        }
    });
}

/// A member whose child in the tree is late is not kept from sending to the others.
#[test]
fn a_long_broadcast_reaches_those_who_have_come_before_one_that_is_late() {
    each_size([4], Devices::shm, |groups| async move {
        let long = bytes(0, 0, 1 << 20);
        let begin = |rank: usize| {
            let own = if rank == 0 { long.clone() } else { Bytes::new() };
            tokio::spawn(groups[rank].broadcast(0, own))
        };
        // The root sends to member 2, which sends to member 3, and to member 1.
        let (root, first) = (begin(0), begin(1));
        assert_eq!(first.await.expect("it does not panic").expect("it is sent"), long);
        let late = [begin(2), begin(3)];
        for broadcast in late.into_iter().chain([root]) {
            assert_eq!(broadcast.await.expect("it does not panic").expect("it is sent"), long);
        }
    });
}

#[test]
fn collectives_run_on_threads_that_have_no_runtime() {
    let own = std::process::id();
    let device = |rank| format!("shm:group-threads-{own}/{rank}");
    let members: Vec<_> = (0..3).map(|rank| Name::at(device(rank), 7)).collect();
    let threads: Vec<_> = (0..3)
        .map(|rank| {
            let (members, device) = (members.clone(), device(rank));
            std::thread::spawn(move || {
                let nic = Nic::builder().open_blocking(&device).expect("nobody has that name");
                let bundle = Bundle::new(&nic, &BundleConfig::default()).expect("room");
                let config = GroupConfig { rank, members, ..GroupConfig::default() };
                bundle.block_on(async {
                    let group = Group::join(&bundle, config).await?;
                    all_operations(group.clone(), 5000).await?;
                    group.leave().await;
                    Ok::<_, GroupError>(())
                })
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("it does not panic").expect("nobody fails");
    }
}

#[test]
fn members_agree_on_numbers_or_learn_which_of_them_differ() {
    for size in [1, 2, 3, 5, 8] {
        with_members(size, async move |groups| {
            for odd in 0..size {
                let outcomes = spmd(&groups, move |group| async move {
                    let is_odd = group.rank() == odd;
                    let same = group.agree(&[1, u64::MAX, 3]).await?;
                    let differ = group.agree(&[1, 2 + u64::from(is_odd), 3]).await?;
                    let shorter = group.agree(&[1, 2, 3][..3 - usize::from(is_odd)]).await?;
                    Ok::<_, GroupError>((same, differ, shorter))
                });
                let expected = match size {
                    1 => (None, None, None),
                    _ => (None, Some(1), Some(2)),
                };
                for outcome in outcomes.await {
                    assert_eq!(outcome.expect("all do the same"), expected, "{odd} of {size}");
                }
            }
        });
    }
}

#[test]
fn members_that_give_other_elements_or_name_another_operator_are_told_so() {
    for (at, text) in [(0, "another type"), (1, "`sum`"), (2, "bytes, and this member expects")] {
        with_members(3, async |groups| {
            let outcomes = spmd(&groups, move |group| async move {
                let odd = group.rank() == 1;
                match (at, odd) {
                    (0, true) => group.all_reduce(vec![1_f64], operators::sum).await.map(drop),
                    (1, true) => group.all_reduce(vec![1_u64], operators::max).await.map(drop),
                    (2, true) => group.all_reduce(vec![1_u64; 2], operators::sum).await.map(drop),
                    _ => group.all_reduce(vec![1_u64], operators::sum).await.map(drop),
                }
            });
            for outcome in outcomes.await {
                let why @ Err(GroupError::Unlike { .. }) = outcome else { panic!("{outcome:?}") };
                let why = why.expect_err("they differ").to_string();
                assert!(why.starts_with("member ") && why.contains(text), "{why}");
            }
        });
    }
}

#[test]
fn a_member_in_an_agreement_does_not_meet_one_in_an_all_reduce() {
    with_members(2, async |groups| {
        let outcomes = spmd(&groups, |group| async move {
            match group.rank() {
                0 => group.agree(&[7]).await.map(drop),
                // What an agreement on one number sends: the lengths are even, and least and most.
                _ => {
                    let forged = [&[0][..], &7u64.to_be_bytes(), &7u64.to_be_bytes()].concat();
                    group.all_reduce_bytes(forged.into(), |_, _| ()).await.map(drop)
                }
            }
        });
        for outcome in outcomes.await {
            assert!(matches!(outcome, Err(GroupError::Mismatch { .. })), "{outcome:?}");
        }
    });
}
