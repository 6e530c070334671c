//! The failures of collectives, in the words of Split-C: processes, not members.

use doorbell_am::group::{Collective, GroupError, Operation};

/// Describes why a collective has failed.
pub(crate) fn in_words(why: &GroupError) -> String {
    match why {
        GroupError::Gone { whole, why, .. } => format!("process {whole} has gone: {why}"),
        GroupError::Connect { whole, why, .. } => {
            format!("process {whole} was not connected to: {why}")
        }
        GroupError::Left { whole, .. } => {
            format!("process {whole} has left: its program has ended, and it takes part in nothing")
        }
        GroupError::GaveUp { whole, .. } => format!(
            "process {whole} has dropped a collective before it was done, and so no further \
             collective can be: await each to its end, and where a time-out or the like may cut that \
             short, in a task of its own (`tokio::task::spawn_local`)"
        ),
        GroupError::Mismatch { whole, here, there, .. } if is_end(there) => format!(
            "process {whole} is in {}, and another process in {}: a program calls the same \
             collectives in every process, and returns when no other process needs it any more",
            called(there),
            called(here),
        ),
        GroupError::Mismatch { whole, here, there, .. } => format!(
            "process {whole} is in {}, and another process in {}: all processes must call the same \
             collectives in the same order, with the same root",
            called(there),
            called(here),
        ),
        GroupError::TooLong { whole, len, longest, .. } => format!(
            "process {whole} had {len} bytes for one message of a collective, and {longest} are the \
             most: use several collectives, or `put`"
        ),
        GroupError::Malformed { whole, .. } => format!(
            "process {whole} has sent what belongs to no collective: all must run the same version \
             of the program"
        ),
        GroupError::Root { root, size } => {
            format!("the root is process {root}, and there are the processes below {size}")
        }
        GroupError::Parts { found, size } => format!(
            "there are {found} values to give, and {size} processes: one is for each, in the order \
             of ranks"
        ),
        other => other.to_string(),
    }
}

/// The rank of the process that has gone, or has come to the end of its program before another was
/// done with it, if that is why a collective has failed.
pub(crate) fn gone(why: &GroupError) -> Option<usize> {
    early(why).or(why.gone())
}

/// The rank of the process that has come to the end of its program before another was done with
/// it, if that is why a collective has failed.
pub(crate) fn early(why: &GroupError) -> Option<usize> {
    match why {
        GroupError::Mismatch { whole, there, .. } if is_end(there) => Some(*whole),
        _ => None,
    }
}

fn is_end(collective: &Collective) -> bool {
    collective.operation() == Operation::Finish
}

/// The name of a collective, as programs call it.
fn called(collective: &Collective) -> String {
    match collective.operation() {
        Operation::Fence => "`all_store_sync`".to_owned(),
        Operation::Agree => "an agreement about an array or a function: `spread`, `blocked`, \
                             `matrix`, `private`, `share`, `free`, `define`"
            .to_owned(),
        Operation::Finish => "`leave`, at the end of its program".to_owned(),
        _ => collective.to_string(),
    }
}
