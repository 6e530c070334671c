//! Packets that wait until the program extracts them.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use doorbell_verbs::floor::locked;
use tokio::sync::Notify;

use super::inbox::Inbox;
use super::link::Link;
use super::wire::{OVERHEAD, Packet};

/// A packet that has come within the window of its message.
pub struct Arrived {
    pub link: Arc<Link>,
    pub inbox: Arc<Inbox>,
    pub packet: Packet,
    pub bytes: Bytes,
}

/// The packets that wait until the program extracts them, in the order in which they have come.
/// The windows of their messages bound them.
#[derive(Default)]
pub struct Pacer {
    arrived: Mutex<VecDeque<Arrived>>,
    more: Notify,
}

impl Pacer {
    /// Puts a packet behind the others.
    pub fn put(&self, arrived: Arrived) {
        locked(&self.arrived).push_back(arrived);
        self.more.notify_one();
    }

    /// Takes the next packet.
    pub fn take(&self) -> Option<Arrived> {
        locked(&self.arrived).pop_front()
    }

    /// Waits until there is a packet.
    pub async fn any(&self) {
        while locked(&self.arrived).is_empty() {
            self.more.notified().await;
        }
    }

    /// Drops the packets of a peer that has gone, or of all peers.
    pub fn drop_of(&self, gone: Option<&Link>) {
        let of_gone =
            |arrived: &Arrived| gone.is_none_or(|gone| std::ptr::eq(gone, &*arrived.link));
        let mut dropped = VecDeque::new();
        let mut all = locked(&self.arrived);
        for arrived in std::mem::take(&mut *all) {
            if of_gone(&arrived) { &mut dropped } else { &mut *all }.push_back(arrived);
        }
        drop(all);
        for Arrived { link, packet, bytes, .. } in dropped {
            let cost = if packet.abandons { 0 } else { bytes.len() + OVERHEAD };
            link.control.hub.counters.held.fetch_sub(cost, Ordering::Relaxed);
        }
    }
}
