//! Packets that are held until their time.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use doorbell_core::encap::{Outer, PathId};
use doorbell_core::nic::{Flow, Inbox};
use doorbell_core::payload::Payload;
use doorbell_core::time::Time;
use doorbell_core::wire::{Headers, Packet};

/// Packets that are held until their time, in memory that was set aside.
pub(super) struct Held {
    queue: BinaryHeap<Reverse<HeldEvent>>,
    /// Memory for payloads, in places of the same length.
    places: Box<[u8]>,
    /// The numbers of the places that are free.
    free: Vec<usize>,
    /// The length of a place.
    place: usize,
    /// How many events were ever held. Of two with the same time, the one that came first goes
    /// first.
    count: u64,
    /// How many packets came before their time.
    pub hurried: u64,
}

/// An event that is held until its time, by which held events are ordered.
struct HeldEvent {
    due: Time,
    number: u64,
    what: InboxEvent,
}

impl Ord for HeldEvent {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}

impl PartialOrd for HeldEvent {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for HeldEvent {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for HeldEvent {}

/// Something that an inbox is told.
pub(super) enum InboxEvent {
    Packet { from: OwnedFlow, headers: Headers, place: usize, len: usize },
    Gone(PathId),
}

/// A [`Flow`] that owns its headers.
#[derive(Clone, Copy)]
pub(super) enum OwnedFlow {
    Link(PathId),
    Network(u64, Outer),
}

impl Held {
    pub fn new(mtu: usize, most: usize) -> Self {
        Self {
            queue: BinaryHeap::with_capacity(most),
            places: vec![0; mtu * most].into(),
            free: (0..most).collect(),
            place: mtu,
            count: 0,
            hurried: 0,
        }
    }

    /// Returns whether no events are held.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns the earliest time of a held event.
    pub fn due(&self) -> Option<Time> {
        self.queue.peek().map(|Reverse(first)| first.due)
    }

    /// Holds an event until its time. If there is no room, the inbox hears the earliest event now.
    pub fn keep(&mut self, due: Time, what: InboxEvent, inbox: &mut impl Inbox) {
        if self.queue.len() == self.queue.capacity() {
            self.hurried += 1;
            self.let_go(inbox);
        }
        self.queue.push(Reverse(HeldEvent { due, number: self.count, what }));
        self.count += 1;
    }

    /// Holds a copy of a packet until its time.
    pub fn keep_packet<P: Payload>(
        &mut self,
        due: Time,
        flow: Flow<'_>,
        packet: &Packet<P>,
        inbox: &mut impl Inbox,
    ) {
        let len = packet.payload.len();
        if len > self.place {
            // The packet is larger than the device says that packets are: the NIC will refuse it.
            return inbox.packet(flow, packet);
        }
        let place = loop {
            match self.free.pop() {
                Some(place) => break place,
                None => {
                    self.hurried += 1;
                    self.let_go(inbox);
                }
            }
        };
        packet.payload.copy_to(&mut self.places[place * self.place..][..len]);
        let from = match flow {
            Flow::Link(link) => OwnedFlow::Link(link),
            Flow::Network(number, outer) => OwnedFlow::Network(number, *outer),
        };
        self.keep(due, InboxEvent::Packet { from, headers: packet.headers, place, len }, inbox);
    }

    /// Tells the inbox the earliest event.
    pub fn let_go(&mut self, inbox: &mut impl Inbox) {
        match self.queue.pop() {
            Some(Reverse(HeldEvent {
                what: InboxEvent::Packet { from, headers, place, len },
                due,
                ..
            })) => {
                inbox.arrived(due);
                let payload = &self.places[place * self.place..][..len];
                let flow = match &from {
                    OwnedFlow::Link(link) => Flow::Link(*link),
                    OwnedFlow::Network(number, outer) => Flow::Network(*number, outer),
                };
                inbox.packet(flow, &Packet { headers, payload });
                self.free.push(place);
            }
            Some(Reverse(HeldEvent { what: InboxEvent::Gone(link), .. })) => inbox.gone(link),
            None => {}
        }
    }

    /// Tells the inbox all events whose time has come, and returns how many they are.
    pub fn let_go_until(&mut self, now: Time, inbox: &mut impl Inbox) -> usize {
        let mut count = 0;
        while self.due().is_some_and(|due| due <= now) {
            self.let_go(inbox);
            count += 1;
        }
        count
    }
}
