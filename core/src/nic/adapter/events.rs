//! Events: how the program takes them.

use crate::nic::adapter::nic::{Nic, find};
use crate::nic::requests::event::Event;

impl Nic {
    /// Whether an event waits to be taken.
    #[inline]
    pub fn has_events(&self) -> bool {
        !self.common.events.is_empty()
    }

    /// Takes the next event, if there is one.
    pub fn event(&mut self) -> Option<Event> {
        let event = self.common.events.pop_front()?;
        let Self { common, pairs, numbers, .. } = self;
        let pending = match event {
            Event::Completion(queue) => {
                let found =
                    common.completions.get_mut(queue.place as usize).and_then(Option::as_mut);
                found.map(|queue| &mut queue.event_pending)
            }
            Event::Broken(qpn, _) => {
                find(pairs, *numbers, qpn).map(|pair| &mut pair.broken_pending)
            }
            Event::Drained(qpn) => find(pairs, *numbers, qpn).map(|pair| &mut pair.drained_pending),
            Event::Established(qpn) => {
                find(pairs, *numbers, qpn).map(|pair| &mut pair.established_pending)
            }
            Event::PathChanged(qpn) => {
                find(pairs, *numbers, qpn).map(|pair| &mut pair.path_changed_pending)
            }
            Event::LastReceive(qpn) => {
                find(pairs, *numbers, qpn).map(|pair| &mut pair.last_receive_pending)
            }
            Event::ReceivesLow(queue) => {
                let queues = &mut common.shared_receives;
                let found = queues.get_mut(queue.place as usize).and_then(Option::as_mut);
                found.map(|queue| &mut queue.event_pending)
            }
            Event::RequestBounced(_) => {
                common.management.bounced_taken();
                None
            }
        };
        if let Some(pending) = pending {
            *pending = false;
        }
        Some(event)
    }
}
