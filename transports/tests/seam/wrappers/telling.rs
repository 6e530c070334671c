//! What happens is told to who listens.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use doorbell_transports::wrap::Traced;
use tracing::dispatcher::Dispatch;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::wrappers::in_memory::InMemory;
use crate::wrappers::nics::exchange;

/// Counts events by their messages.
#[derive(Clone, Default)]
struct Listener(Arc<Mutex<BTreeMap<String, u64>>>);

impl Visit for &Listener {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            let mut told = self.0.lock().expect("nobody panicked");
            *told.entry(format!("{value:?}")).or_default() += 1;
        }
    }
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("doorbell_transports") && *metadata.level() == Level::TRACE
    }

    fn event(&self, event: &Event<'_>) {
        event.record(&mut &*self);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn every_packet_is_an_event_in_both_directions() {
    // Whether anybody wants an event is asked once, for all threads; and as long as there is only
    // one who might, of the thread alone that comes to it first, which may be another test's. So
    // there are two.
    let _other = Dispatch::new(Listener::default());
    let listener = Listener::default();
    let (one, other) = InMemory::pair().expect("two sockets");
    let (_, mut other) = tracing::subscriber::with_default(listener.clone(), || {
        exchange(one, Traced::new(other), 50)
    });
    let told = listener.0.lock().expect("nobody panicked").clone();
    use doorbell_transports::Device;
    let counted = other.statistics();
    assert_eq!(told.get("packet"), Some(&counted.frames_received), "{told:?}");
    assert_eq!(told.get("push"), Some(&(counted.packets_sent + counted.refused)), "{told:?}");
}
