//! Members that call the same collective with different roots or elements.

use bytes::Bytes;
use doorbell_messages::collectives::{Group, GroupError, Operation, operators};

use crate::collectives::members::run;

const ADD: fn(u64, u64) -> u64 = |left, right| left + right;

// Each member takes itself, or the first one, for the root, so that all broadcasts succeed.
#[tokio::test]
async fn broadcasts_with_different_roots_have_the_next_collective_fail_with_both_roots() {
    for size in [2, 3] {
        let outcomes = run("shm", size, |group| async move {
            let root = group.rank().min(1);
            let outcome = group.broadcast(root, Bytes::from_static(b"x")).await.map(drop);
            let then = async { group.barrier().await.expect_err("the roots differ") };
            match outcome {
                Ok(()) => then.await,
                Err(why) => why,
            }
        })
        .await;
        assert!(outcomes.iter().any(names_both_roots), "{outcomes:?}");
        for why in outcomes {
            let text = why.to_string();
            assert!(text.contains("all members must name the same root"), "{text}");
        }
    }
}

fn names_both_roots(why: &GroupError) -> bool {
    matches!(why, GroupError::Roots { here, there, .. } if here + there == 1)
}

#[tokio::test]
async fn other_rooted_collectives_with_different_roots_fail() {
    for operation in [Operation::Reduce, Operation::Gather, Operation::Scatter] {
        let outcomes = run("shm", 3, move |group| async move {
            let root = match operation {
                Operation::Scatter => group.rank().min(1),
                _ => group.rank() / 2,
            };
            let outcome = match operation {
                Operation::Reduce => group.reduce(root, vec![1], ADD).await.map(drop),
                Operation::Gather => group.gather(root, Bytes::new()).await.map(drop),
                _ => {
                    let parts = (group.rank() == root).then(|| vec![Bytes::new(); 3]);
                    group.scatter(root, parts).await.map(drop)
                }
            };
            match outcome {
                Ok(()) => group.barrier().await.expect_err("the roots differ"),
                Err(why) => why,
            }
        })
        .await;
        assert!(outcomes.iter().any(names_both_roots), "{operation}: {outcomes:?}");
    }
}

#[tokio::test]
async fn reductions_of_different_elements_that_are_as_long_fail_with_both_sizes() {
    let outcomes = run("shm", 2, |group| async move {
        let outcome = match group.rank() {
            0 => group.all_reduce(vec![1_u64; 4], ADD).await.map(drop),
            _ => group.all_reduce(vec![1_u32; 8], |left, right| left + right).await.map(drop),
        };
        outcome.expect_err("the elements differ")
    })
    .await;
    let both = |why: &GroupError| matches!(why, GroupError::Elements { here, there, .. } if here + there == 12);
    assert!(outcomes.iter().any(both), "{outcomes:?}");
    let text = outcomes.iter().find(|why| both(why)).expect("it is there").to_string();
    assert!(text.contains("4 bytes") && text.contains("8 bytes"), "{text}");
}

// A member that gives itself up to a root of its own meets nobody in the broadcasts.
#[tokio::test]
async fn a_different_root_is_found_out_however_many_collectives_come_before_the_next_message() {
    let outcomes = run("shm", 2, |group| async move {
        for _ in 0..100 {
            if let Err(why) = group.broadcast(group.rank(), Bytes::new()).await {
                return why;
            }
        }
        group.all_reduce(vec![1], ADD).await.expect_err("the members have called others before")
    })
    .await;
    for why in outcomes {
        assert!(why.rank().is_some(), "{why}");
    }
}

/// Has every second member of three do something else in a collective, and returns the errors that
/// all members get.
async fn all_fail<F>(
    collective: impl Fn(Group, bool) -> F + Copy + Send + Sync + 'static,
) -> Vec<GroupError>
where
    F: Future<Output = Result<(), GroupError>> + Send,
{
    run("shm", 3, move |group| async move {
        let odd = group.rank() == 1;
        collective(group, odd).await.expect_err("the members do not do the same")
    })
    .await
}

// Every member got a value, which was garbage.
#[tokio::test]
async fn elements_of_other_types_that_are_as_long_are_an_error_of_all_members() {
    for count in [1, 20_000] {
        let outcomes = all_fail(move |group, odd| async move {
            match odd {
                true => group.all_reduce(vec![1_u64; count], operators::sum).await.map(drop),
                false => group.all_reduce(vec![1.0_f64; count], operators::sum).await.map(drop),
            }
        });
        let outcomes = outcomes.await;
        let names = |why: &GroupError| matches!(why, GroupError::Types { here: "u64" | "f64", .. });
        assert!(outcomes.iter().any(names), "{outcomes:?}");
    }
    // Closures of such types are no better, and a member that meets nobody is told later.
    let outcomes = all_fail(|group, odd| async move {
        match odd {
            true => group.reduce(0, vec![1_i32], |one, other| one + other).await.map(drop)?,
            false => group.reduce(0, vec![1_u32], |one, other| one + other).await.map(drop)?,
        }
        group.barrier().await
    });
    outcomes.await;
}

#[tokio::test]
async fn different_operators_of_the_library_are_an_error_of_all_members() {
    for count in [0, 1, 20_000] {
        let outcomes = all_fail(move |group, odd| async move {
            match odd {
                true => group.all_reduce(vec![1_u64; count], operators::sum).await.map(drop),
                false => group.all_reduce(vec![1_u64; count], operators::max).await.map(drop),
            }
        });
        let outcomes = outcomes.await;
        let both = |why: &GroupError| {
            matches!(why, GroupError::Operators { here, there, .. }
                if ["sum", "max"].contains(here) && ["sum", "max"].contains(there) && here != there)
        };
        assert!(outcomes.iter().any(both), "{outcomes:?}");
    }
}

#[tokio::test]
async fn an_operator_of_the_program_goes_with_any() {
    run("shm", 3, |group| async move {
        for count in [1, 20_000] {
            let sums = match group.rank() {
                1 => group.all_reduce(vec![1_u64; count], operators::sum).await,
                _ => group.all_reduce(vec![1_u64; count], |one, other| one + other).await,
            };
            assert_eq!(sums.expect("nobody can tell them apart"), vec![3; count]);
        }
        let root = group.reduce(2, vec![1_u8 << group.rank()], operators::or).await;
        let root = root.expect("all do the same");
        assert_eq!(root, (group.rank() == 2).then(|| vec![7]));
        group.leave().await;
    })
    .await;
}
