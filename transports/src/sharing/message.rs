//! The messages of processes that share an interface. A message says that the process of a tag is
//! there, with all services that the process listens to, or that it is gone.
//!
//! There is no other message. A member sends one about itself, as a request; the owner sends them
//! about all processes, and about the member itself as the answer. Since each message has all
//! services, nothing is queued for a process that is slow to read: when there is room again, it is
//! sent the present state.

use std::collections::BTreeSet;

use doorbell_core::wire::ServiceId;

use super::tag::TAGS;

/// The most services that a process listens to.
pub const SERVICES: usize = 256;

/// The services that a process listens to.
pub(super) type Services = BTreeSet<ServiceId>;

/// The version of these messages.
const VERSION: u8 = 1;

const HERE: u8 = 1;
const GONE: u8 = 2;

/// The bytes of the longest message.
pub(super) const LONGEST: usize = 3 + 8 * SERVICES;

/// Room for a message, and for one more byte, by which a message is known to be too long.
pub(super) type Memory = [u8; LONGEST + 1];

/// Writes a message about the process of a tag, which is gone if there are no `services`.
pub(super) fn write(tag: u32, services: Option<&Services>) -> Vec<u8> {
    let kind = if services.is_some() { HERE } else { GONE };
    let listed = services.into_iter().flatten().flat_map(|service| service.0.to_le_bytes());
    [VERSION, kind, tag as u8].into_iter().chain(listed).collect()
}

/// Reads the tag of a process from a message, and the process's services, unless it is gone. `None`
/// if the bytes are no message.
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

/// Reads a message, and writes it again; `None` if the bytes are no message.
pub fn sharing_message_again(bytes: &[u8]) -> Option<Vec<u8>> {
    let (tag, services) = read(bytes)?;
    Some(write(tag, services.as_ref()))
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
