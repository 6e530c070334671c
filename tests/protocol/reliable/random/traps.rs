//! Memory that is there to be named wrongly.

use doorbell_core::nic::{Domain, KeyError, Lkey, Memory, Nic, Registration, Rights, Segment};
use doorbell_core::wire::{RemoteAddr, Rkey};

use super::dice::{self, Dice};
use super::memory::Image;
use super::model::key_error;
use super::spoil::{BadKey, without};

/// The registrations of a node that are there to be named wrongly.
pub struct Traps {
    /// Of another domain, with every right.
    foreign: Image,
    /// Each without one of the rights.
    lacking: Vec<(Rights, Image)>,
    /// Taken back, its place in the table still free.
    revoked: Image,
    /// Taken back, and another registration in its place.
    replaced: Image,
    replacement: Image,
}

/// Some bytes of a node's, and what would be right to say of them.
pub struct Own {
    pub registration: Registration,
    pub len: usize,
    pub needed: Rights,
}

impl Traps {
    pub fn new(nic: &mut Nic, domain: Domain, dice: &mut Dice) -> Self {
        let all = without(Rights::NONE);
        let other = nic.domain();
        let mut image = |nic: &mut Nic, domain, rights| {
            let len = dice.between(1, 500);
            Image::new(nic, domain, rights, dice::bytes(dice.u64(), len))
        };
        let replaced = image(nic, domain, all);
        nic.deregister(replaced.registration.lkey).expect("it was just registered");
        let replacement = image(nic, domain, all);
        let foreign = image(nic, other, all);
        let peers = Rights::REMOTE_WRITE | Rights::REMOTE_READ | Rights::REMOTE_ATOMIC;
        let lacking = vec![
            (Rights::LOCAL_WRITE, image(nic, domain, peers)),
            (Rights::REMOTE_WRITE, image(nic, domain, without(Rights::REMOTE_WRITE))),
            (Rights::REMOTE_READ, image(nic, domain, without(Rights::REMOTE_READ))),
            (Rights::REMOTE_ATOMIC, image(nic, domain, without(Rights::REMOTE_ATOMIC))),
        ];
        let revoked = image(nic, domain, all);
        nic.deregister(revoked.registration.lkey).expect("it was just registered");
        Self { foreign, lacking, revoked, replaced, replacement }
    }

    /// A key and an address that are wrong in this way.
    fn wrong(&self, bad: BadKey, own: &Own) -> (Registration, u64) {
        let Own { registration: mut named, len, needed } = *own;
        let end = named.address.0 + named.len - len as u64;
        match bad {
            BadKey::Unknown => {
                // Random bits that no key has.
                named.lkey = Lkey(named.lkey.0 ^ 0x8000_0080);
                named.rkey.0 ^= 0x8000_0080;
                (named, named.address.0)
            }
            BadKey::Revoked => (self.revoked.registration, self.revoked.registration.address.0),
            BadKey::Replaced => {
                // The memory of the new registration, by the key of the old one.
                (self.replaced.registration, self.replacement.registration.address.0)
            }
            BadKey::Domain => (self.foreign.registration, self.foreign.registration.address.0),
            BadKey::Rights => {
                let lacking = self.lacking.iter().find(|(right, _)| *right == needed);
                let (_, image) = lacking.expect("something is needed");
                (image.registration, image.registration.address.0)
            }
            // It was good before.
            BadKey::Invalidated => (named, named.address.0),
            BadKey::Beyond(by) => (named, end + by as u64),
            BadKey::Before => (named, named.address.0 - 1),
            BadKey::Wraps => (named, u64::MAX - len as u64 / 2),
        }
    }

    /// What a peer is told: the key, and the address.
    pub fn remote(&self, bad: BadKey, own: &Own) -> (Rkey, RemoteAddr) {
        let (registration, address) = self.wrong(bad, own);
        (registration.rkey, RemoteAddr(address))
    }

    /// Spoils the last segment that has bytes, of memory that is known by `registration` otherwise:
    /// those before it are good, and not to be touched all the same.
    pub fn spoil(&self, bad: BadKey, registration: Registration, memory: &mut Memory) {
        let Some(at) = spoilt(memory) else { return };
        let segment = match memory {
            Memory::Segment(segment) => segment,
            Memory::List(list) => &mut list[at],
            Memory::None | Memory::Buf(_) => return,
        };
        let own = Own { registration, len: segment.len as usize, needed: Rights::LOCAL_WRITE };
        let (registration, address) = self.wrong(bad, &own);
        (segment.lkey, segment.address) = (registration.lkey, address);
    }

    pub fn check(&self, node: usize) -> Result<(), String> {
        let Self { foreign, lacking, revoked, replaced, replacement } = self;
        let others = [foreign, revoked, replaced, replacement];
        for image in lacking.iter().map(|(_, image)| image).chain(others) {
            image.check(&format!("memory of node {node} that nobody may touch"))?;
        }
        Ok(())
    }
}

fn segments(memory: &Memory) -> &[Segment] {
    match memory {
        Memory::Segment(segment) => std::slice::from_ref(segment),
        Memory::List(list) => list,
        Memory::None | Memory::Buf(_) => &[],
    }
}

/// Which segment of a request is the one to be spoilt.
fn spoilt(memory: &Memory) -> Option<usize> {
    segments(memory).iter().rposition(|segment| segment.len > 0)
}

/// What is said of memory that was spoilt: of which segment, and why.
pub fn complaint(bad: BadKey, memory: &Memory) -> (u16, KeyError) {
    let at = spoilt(memory).expect("what is spoilt has bytes");
    (at as u16, key_error(bad, segments(memory)[at].lkey.0))
}
