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
             collective can be: await collectives to their ends, or `begin` them and keep the handle"
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
