//! A recorder that keeps what is counted, for tests to look at.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use metrics::{
    Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};

type Values = BTreeMap<String, Arc<AtomicU64>>;

/// The values of this process, by names and labels, and what the names mean.
static VALUES: Mutex<Values> = Mutex::new(BTreeMap::new());
static MEANINGS: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());

struct Keeps;

/// A histogram of which the number of its values is kept.
struct Number(Arc<AtomicU64>);

impl HistogramFn for Number {
    fn record(&self, value: f64) {
        assert!((0.0..60.0).contains(&value), "{value} seconds");
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn values() -> MutexGuard<'static, Values> {
    VALUES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `name{label=value,…}`, with the labels in their order.
fn text(name: &str, labels: &[(&str, &str)]) -> String {
    let labels: Vec<_> = labels.iter().map(|(label, value)| format!("{label}={value}")).collect();
    format!("{name}{{{}}}", labels.join(","))
}

impl Keeps {
    fn place(&self, key: &Key) -> Arc<AtomicU64> {
        let labels: Vec<_> = key.labels().map(|label| (label.key(), label.value())).collect();
        values().entry(text(key.name(), &labels)).or_default().clone()
    }

    fn describe(&self, name: KeyName, meaning: SharedString) {
        let mut meanings = MEANINGS.lock().unwrap_or_else(PoisonError::into_inner);
        meanings.insert(name.as_str().to_owned(), meaning.into_owned());
    }
}

impl Recorder for Keeps {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, meaning: SharedString) {
        self.describe(name, meaning);
    }

    fn describe_gauge(&self, name: KeyName, _: Option<Unit>, meaning: SharedString) {
        self.describe(name, meaning);
    }

    fn describe_histogram(&self, name: KeyName, _: Option<Unit>, meaning: SharedString) {
        self.describe(name, meaning);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.place(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.place(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Arc::new(Number(self.place(key))))
    }
}

/// Has everything kept that this process counts.
pub fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| metrics::set_global_recorder(Keeps).expect("nobody else records"));
}

/// A counter, or the number of a histogram's values: zero if there is none.
pub fn count(name: &str, labels: &[(&str, &str)]) -> u64 {
    values().get(&text(name, labels)).map_or(0, |value| value.load(Ordering::SeqCst))
}

/// Returns the value of a gauge; zero if there is no such gauge.
pub fn gauge(name: &str, labels: &[(&str, &str)]) -> f64 {
    f64::from_bits(count(name, labels))
}

/// The names that were described.
pub fn described() -> Vec<String> {
    let meanings = MEANINGS.lock().unwrap_or_else(PoisonError::into_inner);
    meanings.keys().cloned().collect()
}

/// Returns whether a metric with this name and these labels has a value.
pub fn is_there(name: &str, labels: &[(&str, &str)]) -> bool {
    values().contains_key(&text(name, labels))
}
