//! Members that leave in order.

use bytes::Bytes;
use doorbell_am::Tag;
use doorbell_am::group::{Group, GroupConfig, GroupError};
use doorbell_verbs::Nic;

use crate::group::common::{in_time, join, spmd, with_members};
use crate::promises::devices::Devices;

#[test]
fn a_collective_that_needs_a_member_which_has_left_fails_for_all_and_names_that_one() {
    for size in 2..=6 {
        with_members(size, async |groups| {
            let outcomes = spmd(&groups, |group| async move {
                group.barrier().await.expect("all are there");
                if group.rank() == 1 {
                    group.leave().await;
                    return None;
                }
                Some(group.barrier().await)
            });
            for outcome in outcomes.await.into_iter().flatten() {
                let left = matches!(outcome, Err(GroupError::Left { rank: 1, last: 1, .. }));
                assert!(left, "{size} members: {outcome:?}");
            }
        });
    }
}

#[test]
fn what_a_member_has_done_before_it_left_is_done_for_others_that_come_later() {
    with_members(5, async |groups| {
        let given = Bytes::from_static(b"a parting gift");
        let outcomes = spmd(&groups, |group| {
            let given = given.clone();
            async move {
                if group.rank() == 0 {
                    for _ in 0..3 {
                        group.broadcast(0, given.clone()).await.expect("it sends");
                    }
                    group.leave().await;
                    return;
                }
                // As long as it takes the root to leave, and some others to hear of that.
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
                for _ in 0..3 {
                    let came = group.broadcast(0, Bytes::new()).await;
                    assert_eq!(came.expect("the root has sent it"), given);
                }
                let after = group.broadcast(0, Bytes::new()).await;
                assert!(
                    matches!(after, Err(GroupError::Left { rank: 0, last: 3, .. })),
                    "{after:?}"
                );
            }
        });
        outcomes.await;
    });
}

#[test]
fn a_member_that_has_left_begins_nothing_more() {
    with_members(2, async |groups| {
        let kept = groups[0].clone();
        spmd(&groups, Group::leave).await;
        let after = kept.barrier().await;
        assert!(matches!(after, Err(GroupError::Left { rank: 0, .. })), "{after:?}");
    });
}

/// In a group with a tag a member sends by no connection but those it has made. The one that leaves
/// here was connected to by a member that it had never sent anything: that one was not told, took
/// the other to be gone, and failed a collective in which the other had done its part.
#[test]
fn a_member_that_leaves_tells_those_who_have_connected_to_it_as_well() {
    in_time(1, async {
        let devices = Devices::shm(4);
        let config = GroupConfig { tag: Some(Tag(5)), ..GroupConfig::default() };
        let mut groups = join(&devices.nics, &config).await;
        // In a barrier, members send to the next, and to the one behind that.
        for outcome in spmd(&groups, |group| async move { group.barrier().await }).await {
            outcome.expect("all are there");
        }
        let given = Bytes::from_static(b"a parting gift");
        let (first, leaver, last) = tokio::join!(
            groups[0].broadcast(0, given.clone()),
            groups[2].broadcast(0, Bytes::new()),
            groups[3].broadcast(0, Bytes::new()),
        );
        for came in [first, leaver, last] {
            assert_eq!(came.expect("it was sent"), given);
        }
        groups.remove(2).leave().await;
        // As long as it takes the others to see that the connections to that member have ended.
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        let late = groups[1].broadcast(0, Bytes::new()).await;
        assert_eq!(late.expect("the member that has left is not needed"), given);
    });
}

#[test]
fn everything_of_a_group_goes_with_its_last_handle() {
    in_time(1, async {
        let name = |rank| format!("shm:group-goes-{}/{rank}", std::process::id());
        for _ in 0..3 {
            let open = |rank| Nic::builder().open_blocking(&name(rank));
            let nics = [0, 1].map(|rank| open(rank).expect("nobody has that name any more"));
            let groups = join(&nics, &GroupConfig::default()).await;
            drop(nics);
            spmd(&groups, |group| async move {
                group.barrier().await.expect("all are there");
                group.leave().await;
            })
            .await;
            drop(groups);
            // The tasks of a NIC end when they are run next.
            while Nic::open(&name(0)).await.is_err() {
                tokio::task::yield_now().await;
            }
        }
    });
}
