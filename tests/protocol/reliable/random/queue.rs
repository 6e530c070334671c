//! A completion queue as a program sees it.

use doorbell_core::nic::{CompletionQueue, CompletionQueueId, Notify};
use doorbell_simulation::Fabric;

use super::model::{Check, ensure};
use super::program;

pub struct Queue {
    pub node: usize,
    pub id: CompletionQueueId,
    pub ends: CompletionQueue,
    /// What it was armed for, and how many completions came since that call for an event.
    armed: Option<(Notify, usize)>,
    pub events: usize,
}

impl Queue {
    pub fn new(fabric: &mut Fabric, drawn: &program::Queue) -> Self {
        let made = fabric.nic(drawn.node).completion_queue(drawn.capacity);
        let (id, ends) = made.expect("a capacity");
        Self { node: drawn.node, id, ends, armed: None, events: 0 }
    }

    /// Asks for an event, when it has just been emptied.
    pub fn arm(&mut self, fabric: &mut Fabric, solicited: bool) -> Check {
        let notify = if solicited { Notify::Solicited } else { Notify::Any };
        fabric.nic(self.node).arm(self.id, notify).map_err(|why| why.to_string())?;
        // Who asked for any before is not to miss one.
        let any = matches!(self.armed, Some((Notify::Any, _)));
        self.armed = Some((if any { Notify::Any } else { notify }, 0));
        self.events = 0;
        Ok(())
    }

    /// A completion came, which may call for an event.
    pub fn notable(&mut self, urgent: bool) {
        if let Some((notify, count)) = &mut self.armed {
            *count += usize::from(urgent || *notify == Notify::Any);
        }
    }

    /// If it was armed, it had one event if anything came that calls for one, and none before.
    pub fn check_events(&mut self) -> Check {
        let Self { id, armed, events, .. } = self;
        let expected = usize::from(armed.is_some_and(|(_, count)| count > 0));
        ensure!(*events == expected, "{events} events of {id:?}, armed for {armed:?}");
        if expected > 0 {
            (*armed, *events) = (None, 0);
        }
        Ok(())
    }
}
