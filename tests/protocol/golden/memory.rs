//! The memory of a recorded station, as far as the capture tells of it.
//!
//! A NIC of ours gives keys and addresses that can't be chosen, so a stand-in registers memory of
//! its own for each key that peers used, and what they say of the recorded key and address is put
//! in terms of those. How long a registration was is not recorded. It is made as long as it can
//! have been: one byte shorter than what was refused, where something was.

use doorbell_core::memory::Region;
use doorbell_core::nic::{Domain, Nic, Registration, Rights};
use doorbell_core::wire::{AtomicEth, Extensions, Gid, Operation, RemoteAddr, Reth, Rkey};

use crate::golden::recording::{Brought, Exchange, Fate, Message};

/// Why all that was asked with some key may have been refused. The answer is the same, and a NIC
/// has to give it in every case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadKey {
    /// It was none, though it was close to one.
    IsNone,
    /// It was another protection domain's.
    IsAnothers,
    /// What was asked was not among its rights.
    LacksTheRight,
}

/// What a peer asked of memory.
struct Access {
    rkey: Rkey,
    start: u64,
    len: u64,
    right: Rights,
    refused: bool,
}

/// Memory registered for a recorded key.
struct Place {
    rkey: Rkey,
    start: u64,
    given: Registration,
    /// What peers must use instead of the recorded key.
    key: Rkey,
    region: Region,
    /// What each byte must be, if it was written by a peer.
    known: Vec<Option<u8>>,
}

pub struct Memory {
    places: Vec<Place>,
    /// Bytes that peers read, or found, where peers had written.
    pub recognised: usize,
}

fn access(message: &Message) -> Option<Access> {
    let (rkey, start, len) = match message.headers.extensions {
        Extensions::Reth(reth) | Extensions::RethImm(reth, _) => {
            (reth.rkey, reth.address.0, u64::from(reth.length.0))
        }
        Extensions::Atomic(atomic) => (atomic.rkey, atomic.address.0, 8),
        _ => return None,
    };
    let right = match message.operation() {
        Operation::ReadRequest => Rights::REMOTE_READ,
        Operation::Write => Rights::REMOTE_WRITE,
        _ => Rights::REMOTE_ATOMIC,
    };
    let refused = matches!(message.fate, Fate::Refused { .. });
    Some(Access { rkey, start, len, right, refused })
}

/// All rights that peers can have but for those that these needed.
fn all_but(refused: &[&Access]) -> Rights {
    [Rights::REMOTE_READ, Rights::REMOTE_WRITE, Rights::REMOTE_ATOMIC]
        .into_iter()
        .filter(|&right| refused.iter().all(|access| access.right != right))
        .fold(Rights::NONE, |all, right| all | right)
}

impl Memory {
    /// Registers what peers of a station used, in all of a capture's exchanges.
    pub fn new(
        exchanges: &[Exchange],
        station: Gid,
        bad: BadKey,
        nic: &mut Nic,
        domain: Domain,
    ) -> Self {
        let asked = |exchange: &Exchange, end: usize| match exchange.ends[end].station == station {
            true => exchange.messages(1 - end),
            false => Vec::new(),
        };
        let messages = exchanges.iter().flat_map(|exchange| [0, 1].map(|end| asked(exchange, end)));
        let accesses: Vec<Access> = messages.flatten().filter_map(|m| access(&m)).collect();
        let mut memory = Self { places: Vec::new(), recognised: 0 };
        for Access { rkey, .. } in &accesses {
            if memory.place(*rkey).is_none() {
                let these: Vec<_> = accesses.iter().filter(|other| other.rkey == *rkey).collect();
                memory.places.push(Place::new(&these, bad, nic, domain));
            }
        }
        memory
    }

    fn place(&mut self, rkey: Rkey) -> Option<&mut Place> {
        self.places.iter_mut().find(|place| place.rkey == rkey)
    }

    /// The same extension headers with our key and address.
    pub fn translate(&mut self, extensions: Extensions) -> Extensions {
        let mut ours = |rkey, address: RemoteAddr| {
            let place = self.place(rkey).expect("a registration for every key that was used");
            let offset = address.0.wrapping_sub(place.start);
            (place.key, RemoteAddr(place.given.address.0.wrapping_add(offset)))
        };
        match extensions {
            Extensions::Reth(reth) => {
                let (rkey, address) = ours(reth.rkey, reth.address);
                Extensions::Reth(Reth { rkey, address, ..reth })
            }
            Extensions::RethImm(reth, imm) => {
                let (rkey, address) = ours(reth.rkey, reth.address);
                Extensions::RethImm(Reth { rkey, address, ..reth }, imm)
            }
            Extensions::Atomic(atomic) => {
                let (rkey, address) = ours(atomic.rkey, atomic.address);
                Extensions::Atomic(AtomicEth { rkey, address, ..atomic })
            }
            other => other,
        }
    }

    /// Puts into memory what a request that was granted is about to find there, except where that
    /// is known: there, the request must find it of itself. What was never written by a peer is
    /// the recorded program's, which may have changed it at any time.
    pub fn prepare(&mut self, message: &Message) {
        let found = match &message.brought {
            Brought::Nothing => return,
            Brought::Data(data) => data.clone(),
            Brought::Word(word) => word.to_ne_bytes().to_vec(),
        };
        let Some((place, offset)) = self.touched(message) else { return };
        let mut recognised = 0;
        for (index, byte) in found.into_iter().enumerate() {
            match place.known[offset + index] {
                Some(_) => recognised += 1,
                None => place.region.write_at(offset + index, &[byte]).expect("within the region"),
            }
        }
        self.recognised += recognised;
    }

    /// Notes what memory must be after a request that was granted.
    pub fn changed_by(&mut self, message: &Message) {
        let content = match (message.headers.extensions, &message.brought) {
            (Extensions::Atomic(atomic), &Brought::Word(before)) => {
                let (operand, compare) = (atomic.swap_or_add.0, atomic.compare.0);
                let after = match message.operation() {
                    Operation::FetchAdd => before.wrapping_add(operand),
                    _ if before == compare => operand,
                    _ => before,
                };
                after.to_ne_bytes().to_vec()
            }
            (Extensions::Reth(_) | Extensions::RethImm(..), Brought::Nothing) => {
                message.content.clone()
            }
            _ => return,
        };
        let Some((place, offset)) = self.touched(message) else { return };
        for (known, byte) in place.known[offset..].iter_mut().zip(content) {
            *known = Some(byte);
        }
    }

    /// Where a request that was granted reads or writes.
    fn touched(&mut self, message: &Message) -> Option<(&mut Place, usize)> {
        let Access { rkey, start, len, refused, .. } = access(message)?;
        let place = self.place(rkey).filter(|_| len > 0 && !refused)?;
        let offset = (start - place.start) as usize;
        Some((place, offset))
    }

    /// Whether memory is as peers have left it.
    pub fn check(&self) -> Result<(), String> {
        for place in &self.places {
            let mut bytes = vec![0; place.region.len()];
            place.region.read_at(0, &mut bytes).expect("all of the region");
            for (index, (&found, known)) in bytes.iter().zip(&place.known).enumerate() {
                if let Some(expected) = known.filter(|&expected| expected != found) {
                    let at = RemoteAddr(place.start + index as u64);
                    return Err(format!("{at:?} holds {found:#04x} and not {expected:#04x}"));
                }
            }
        }
        Ok(())
    }
}

impl Place {
    /// Registers memory for all that was asked with one key.
    fn new(accesses: &[&Access], bad: BadKey, nic: &mut Nic, domain: Domain) -> Self {
        let (granted, refused): (Vec<&Access>, Vec<_>) =
            accesses.iter().filter(|access| access.len > 0).partition(|access| !access.refused);
        let used = if granted.is_empty() { &refused } else { &granted };
        // What 8 divides there must be what 8 divides here.
        let start = used.iter().map(|access| access.start & !7).min().unwrap_or(0);
        let mut end = used.iter().map(|access| access.start + access.len).max().unwrap_or(start);
        let mut rights = Rights::LOCAL_WRITE | Rights::REMOTE;
        let mut of = domain;
        let mut bits = 0;
        if granted.is_empty() {
            match bad {
                BadKey::IsNone => bits = 1 << 31,
                BadKey::IsAnothers => of = nic.domain(),
                BadKey::LacksTheRight => rights = all_but(&refused),
            }
        } else if let Some(beyond) = refused.iter().map(|access| access.start + access.len).min() {
            assert!(beyond > end, "a part of what was granted was refused as well");
            end = beyond - 1;
        }
        let len = usize::try_from(end - start).expect("it fits this computer's memory");
        let region = Region::new(len);
        let given = nic.register(of, region.clone(), rights).expect("room for a registration");
        let (rkey, key) = (accesses[0].rkey, Rkey(given.rkey.0 ^ bits));
        Self { rkey, start, given, key, region, known: vec![None; len] }
    }
}
