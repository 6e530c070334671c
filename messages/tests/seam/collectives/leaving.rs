//! Members that leave: a group that has failed, before the others are done, or without a word.

use std::time::Duration;

use bytes::Bytes;
use doorbell_messages::collectives::Group;
use tokio::time::timeout;

use crate::collectives::members::run;

const ADD: fn(u64, u64) -> u64 = |left, right| left + right;

/// Less than a member waits for others that do not hear that it leaves.
const SOON: Duration = Duration::from_secs(5);

async fn leaves_soon(group: Group) {
    let rank = group.rank();
    timeout(SOON, group.leave()).await.unwrap_or_else(|_| panic!("member {rank} waits to leave"));
}

#[tokio::test]
async fn members_leave_a_group_that_has_failed_without_waiting() {
    for size in [2, 3] {
        run("shm", size, |group| async move {
            let outcome = group.all_reduce(vec![1; 3 + group.rank()], ADD).await;
            outcome.expect_err("the lengths differ");
            leaves_soon(group).await;
        })
        .await;
    }
}

#[tokio::test]
async fn a_member_that_has_left_before_a_collective_is_said_to_have_left() {
    for size in [2, 3] {
        let outcomes = run("shm", size, |group| async move {
            let why = match group.rank() {
                0 => None,
                _ => Some(group.barrier().await.expect_err("member 0 has left")),
            };
            leaves_soon(group).await;
            why
        })
        .await;
        for why in outcomes.into_iter().flatten() {
            let text = why.to_string();
            assert!(why.rank() == Some(0) && text.contains("has left the group"), "{text}");
        }
    }
}

#[tokio::test]
async fn a_collective_that_is_dropped_before_it_is_polled_fails_for_all() {
    let outcomes = run("shm", 3, |group| async move {
        let outcome = if group.rank() == 0 {
            drop(group.barrier());
            group.all_gather(Bytes::new()).await.map(drop)
        } else {
            group.barrier().await
        };
        let why = outcome.expect_err("a barrier was dropped");
        leaves_soon(group).await;
        why
    })
    .await;
    for why in outcomes {
        let text = why.to_string();
        assert!(why.rank() == Some(0) && text.contains("a barrier was given up"), "{text}");
    }
}
