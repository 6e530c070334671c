//! Registered memory, of which some must never change.

use std::ops::Range;

use doorbell_core::memory::Region;
use doorbell_core::nic::{Domain, Lkey, Nic, Registration, Rights, Segment};

use doorbell_core::wire::Reth;

use super::super::input::Input;

/// The bytes of each region.
pub const LEN: usize = 1024;

/// A region, what names it, and what of it may change.
struct Known {
    region: Region,
    registration: Registration,
    /// Where programs may have messages received.
    window: Range<usize>,
    /// What the bytes outside of `window` must be, unless peers may write them.
    kept: Option<Vec<u8>>,
}

pub struct Memory {
    known: Vec<Known>,
    /// Where peers may write at present.
    open: usize,
}

/// The places of the regions.
const READ_ONLY: usize = 2;

impl Memory {
    /// Regions: one that peers may write, one for receives, one to be read only, and one of
    /// another domain.
    pub fn new(nic: &mut Nic, ours: Domain, other: Domain) -> Self {
        let mut memory = Self { known: Vec::new(), open: 0 };
        let both = Rights::LOCAL_WRITE | Rights::REMOTE_WRITE;
        memory.register(nic, ours, both, 0..LEN);
        memory.register(nic, ours, Rights::LOCAL_WRITE, 256..768);
        memory.register(nic, ours, Rights::REMOTE_READ | Rights::REMOTE_ATOMIC, 0..0);
        memory.register(nic, other, both, 0..0);
        memory.known[0].kept = None;
        memory
    }

    fn register(&mut self, nic: &mut Nic, domain: Domain, rights: Rights, window: Range<usize>) {
        let pattern: Vec<u8> = (0..LEN).map(|i| (i * 7 + self.known.len() * 31) as u8).collect();
        let region = Region::from_bytes(&pattern);
        let registration = nic.register(domain, region.clone(), rights).expect("there is room");
        self.known.push(Known { region, registration, window, kept: Some(pattern) });
    }

    /// Takes the open region back, and opens another. What was there stays for ever.
    pub fn revoke(&mut self, nic: &mut Nic, ours: Domain) {
        if self.known.len() >= 12 {
            return;
        }
        let open = &mut self.known[self.open];
        nic.deregister(open.registration.lkey).expect("it was registered");
        open.kept = Some(open.bytes());
        open.window = 0..0;
        self.open = self.known.len();
        self.register(nic, ours, Rights::LOCAL_WRITE | Rights::REMOTE_WRITE, 0..LEN);
        self.known[self.open].kept = None;
    }

    /// Asserts that what must not change is as it was.
    pub fn check(&self) {
        for (index, known) in self.known.iter().enumerate() {
            let Some(kept) = &known.kept else { continue };
            let (now, window) = (known.bytes(), &known.window);
            let before = now[..window.start] == kept[..window.start];
            let behind = now[window.end..] == kept[window.end..];
            assert!(before && behind, "region {index} was written");
        }
    }

    /// Asserts that a peer may write there at present.
    pub fn check_write(&self, Reth { address, rkey, length }: Reth) {
        let open = self.open();
        let end = u128::from(address.0) + u128::from(length.0);
        let last = u128::from(open.address.0) + LEN as u128;
        let within = address >= open.address && end <= last;
        assert!(length.0 == 0 || rkey == open.rkey && within, "a write that nobody allowed");
    }

    /// Any of what was ever registered.
    pub fn any(&self, input: &mut Input<'_>) -> Registration {
        self.known[usize::from(input.u8()) % self.known.len()].registration
    }

    /// What peers may write to at present.
    pub fn open(&self) -> Registration {
        self.known[self.open].registration
    }

    /// A part of a region that sends may read.
    pub fn to_send(&self, input: &mut Input<'_>, len: u32) -> Segment {
        let known = if input.u8() < 16 { self.any(input) } else { self.readable() };
        known.segment(u64::from(input.u16()) % LEN as u64, len)
    }

    fn readable(&self) -> Registration {
        self.known[READ_ONLY].registration
    }

    /// A part of a region that receives may fill: within its window, or where they may not, for
    /// want of the right or because the key is another.
    pub fn to_receive(&self, input: &mut Input<'_>) -> Segment {
        let index = if input.u8() < 16 { usize::from(input.u8()) } else { 1 };
        let known = &self.known[index % self.known.len()];
        let room = known.window.len().max(1);
        let at = usize::from(input.u16()) % room;
        let len = usize::from(input.u16()) % (room - at + 1);
        let segment = known.registration.segment((known.window.start + at) as u64, len as u32);
        let wrong = if input.u8() < 8 { 1 << (input.u8() & 31) } else { 0 };
        Segment { lkey: Lkey(segment.lkey.0 ^ wrong), ..segment }
    }
}

impl Known {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; LEN];
        self.region.read_at(0, &mut bytes).expect("it is as long as that");
        bytes
    }
}
