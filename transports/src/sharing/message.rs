//! What those who share an interface say to each other: that a process is there, with all that it
//! listens to, or that it is gone.
//!
//! There is no other message. A member says it of itself, as a request; the owner says it of
//! everybody, and of the member itself as the answer. Since it is always the whole, nothing is
//! queued for who is slow to listen: it is told how things are when it has room again.

use std::collections::BTreeSet;

use doorbell_core::wire::ServiceId;

use super::{SERVICES, TAGS};

/// What a process listens to.
pub(super) type Services = BTreeSet<ServiceId>;

/// The version that is spoken here.
const VERSION: u8 = 1;

const HERE: u8 = 1;
const GONE: u8 = 2;

/// The longest message.
pub(super) const LONGEST: usize = 3 + 8 * SERVICES;

/// Room for a message, and for a byte that shows one to be too long.
pub(super) type Memory = [u8; LONGEST + 1];

/// How it is with the process of a tag.
pub(super) fn write(tag: u32, services: Option<&Services>) -> Vec<u8> {
    let kind = if services.is_some() { HERE } else { GONE };
    let listed = services.into_iter().flatten().flat_map(|service| service.0.to_le_bytes());
    [VERSION, kind, tag as u8].into_iter().chain(listed).collect()
}

/// The same, read; nothing of what makes no sense.
pub(super) fn read(bytes: &[u8]) -> Option<(u32, Option<Services>)> {
    let [VERSION, kind, tag, ref listed @ ..] = *bytes else { return None };
    let (listed, rest) = listed.as_chunks();
    let fits = TAGS.contains(&tag.into()) && rest.is_empty() && listed.len() <= SERVICES;
    let services = listed.iter().map(|&service| ServiceId(u64::from_le_bytes(service)));
    match kind {
        HERE if fits => Some((tag.into(), Some(services.collect()))),
        GONE if fits && listed.is_empty() => Some((tag.into(), None)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_written_and_nothing_of_what_makes_no_sense() {
        let full: Services = (0..SERVICES as u64).map(ServiceId).collect();
        for services in [None, Some(Services::new()), Some(full)] {
            let written = write(63, services.as_ref());
            assert_eq!(read(&written), Some((63, services)));
        }
        let fine = write(3, Some(&Services::from([ServiceId(7)])));
        assert_eq!(read(&fine[..10]), None, "cut short");
        assert_eq!(read(&[0; LONGEST + 1]), None, "too long");
        for (at, byte) in [(0, VERSION + 1), (1, 0), (1, GONE), (2, 0), (2, 64)] {
            let mut changed = fine.clone();
            changed[at] = byte;
            assert_eq!(read(&changed), None);
        }
    }
}
