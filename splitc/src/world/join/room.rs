//! Whether the limits of a process allow what a world takes, before anything is opened.

use doorbell_job::Route;
use doorbell_verbs::Nic;
use doorbell_verbs::floor::{LINK_BYTES, addresses, descriptors};

use super::membership::JoinError;
use crate::heap::CONTROL;

/// How many descriptors are open for moments while processes connect: memory that is passed.
const IN_PASSING: u64 = 4;

/// Checks that process `rank` may map the heaps of the processes that it shares memory with, and
/// may have a socket for each. The error says which limit does not allow it, and what is needed.
/// The heaps of threads that share them are mapped already.
pub(super) fn check(
    nics: &[Nic],
    routes: &[Route],
    rank: usize,
    (heap, has_heaps): (usize, bool),
) -> Result<(), JoinError> {
    let maps = |route: &Route| nics.get(route.device).is_some_and(|nic| nic.capabilities().mapping);
    let others = routes.iter().enumerate().filter(|(other, route)| *other != rank && maps(route));
    let count = others.count() as u64;
    if count == 0 || has_heaps {
        return Ok(());
    }
    let refused = |why| JoinError::Limit { rank, others: count as usize, why };
    let room = descriptors();
    let needed = count + IN_PASSING;
    if room.left() < needed {
        return Err(refused(format!(
            "it takes {needed} file descriptors, and this process has {} of the {} that it may have \
             (RLIMIT_NOFILE); allow at least {} with `ulimit -n`",
            room.used,
            room.allowed,
            room.used + needed
        )));
    }
    let room = addresses();
    let (heap, links) = (heap as u64 + CONTROL, count * LINK_BYTES);
    // The own heap, too.
    let needed = (count + 1).saturating_mul(heap).saturating_add(links);
    if room.left() < needed {
        let all = room.used.saturating_add(needed).div_ceil(1024);
        return Err(refused(format!(
            "the heaps of all, of {heap} bytes each, take {needed} bytes of addresses with the rings, \
             and this process has {} of the {} that it may have (RLIMIT_AS); allow at least {all} KiB \
             with `ulimit -v`, or configure a smaller `heap`",
            room.used, room.allowed
        )));
    }
    Ok(())
}
