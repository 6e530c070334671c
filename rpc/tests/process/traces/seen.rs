//! A subscriber that keeps what it sees of spans, for tests to wait for.

use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

use tokio::sync::watch;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// A span that has closed.
#[derive(Clone, Default, Debug)]
pub struct Seen {
    pub name: &'static str,
    pub fields: HashMap<&'static str, String>,
    /// The name of the span that was current when this one began, or that it was given as its
    /// parent.
    pub within: Option<&'static str>,
    /// The text of the events within the span.
    pub events: Vec<String>,
}

impl Seen {
    pub fn field(&self, name: &str) -> &str {
        self.fields.get(name).unwrap_or_else(|| panic!("no field {name} in {self:?}"))
    }
}

impl Visit for Seen {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }
}

/// Returns all spans that have closed in this process.
static CLOSED: OnceLock<watch::Sender<Vec<Seen>>> = OnceLock::new();

/// Has everything seen that this process traces.
pub fn install() {
    CLOSED.get_or_init(|| {
        let subscriber = tracing_subscriber::registry().with(Keeps);
        tracing::subscriber::set_global_default(subscriber).expect("nobody else subscribes");
        watch::Sender::default()
    });
}

/// The first span that has closed and fits, as soon as there is one.
pub async fn closed(fits: impl Fn(&Seen) -> bool) -> Seen {
    let mut all = CLOSED.get().expect("the subscriber is installed").subscribe();
    let found = all.wait_for(|all| all.iter().any(&fits)).await.expect("the sender stays");
    found.iter().find(|seen| fits(seen)).expect("there is one").clone()
}

struct Keeps;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Keeps {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let span = context.span(id).expect("the span is new");
        let within = span.parent().map(|parent| parent.name());
        let mut seen = Seen { name: span.name(), within, ..Seen::default() };
        attributes.record(&mut seen);
        span.extensions_mut().insert(seen);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let span = context.span(id).expect("the span is there");
        if let Some(seen) = span.extensions_mut().get_mut::<Seen>() {
            values.record(seen);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut text = Seen::default();
        event.record(&mut text);
        if let Some(span) = context.event_span(event)
            && let Some(seen) = span.extensions_mut().get_mut::<Seen>()
        {
            seen.events.extend(text.fields.remove("message"));
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let span = context.span(&id).expect("the span is there");
        let seen = span.extensions_mut().remove::<Seen>();
        CLOSED.get().expect("the subscriber is installed").send_modify(|all| all.extend(seen));
    }
}
