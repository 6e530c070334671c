//! The warnings that this process has traced.

use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// The warnings that this process has traced so far.
#[derive(Debug, Default)]
pub struct Reports(Mutex<Vec<String>>);

impl Reports {
    /// The warnings of all threads of this process, from the first call on.
    pub fn of_process() -> &'static Self {
        static REPORTS: OnceLock<&'static Reports> = OnceLock::new();
        REPORTS.get_or_init(|| {
            let reports: &'static Self = Box::leak(Box::default());
            let subscriber = tracing_subscriber::registry().with(Keeps(reports));
            tracing::subscriber::set_global_default(subscriber).expect("it is the only one");
            reports
        })
    }

    /// Returns whether one of the warnings contains all parts.
    pub fn have(&self, parts: &[&str]) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().any(|one| parts.iter().all(|part| one.contains(part)))
    }
}

struct Keeps(&'static Reports);

impl<S: Subscriber> Layer<S> for Keeps {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut message = Message::default();
        event.record(&mut message);
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).push(message.0);
    }
}

#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}
