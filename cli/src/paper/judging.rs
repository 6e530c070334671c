//! Whether claims of papers hold, by values that are uncertain.

use doorbell_report::{Note, Value};

/// A claim of the paper, and whether it holds here; `None` if that can't be told.
pub fn claim(holds: impl Into<Option<bool>>, text: String) -> Note {
    match holds.into() {
        Some(true) => Note::holds(text),
        Some(false) => Note::does_not_hold(text),
        None => Note::undecided(text),
    }
}

/// Returns whether a value is below another; `None` if one was not measured, or their intervals
/// overlap, so that chance may be all that makes the difference.
pub fn is_below(one: impl Into<Option<Value>>, other: impl Into<Option<Value>>) -> Option<bool> {
    let ((low, high), (from, to)) = (ends(one.into()?), ends(other.into()?));
    if high < from {
        return Some(true);
    }
    (low > to).then_some(false)
}

/// Whether a value is between two bounds; `None` if its interval contains a bound.
pub fn is_between(value: Value, least: f64, most: f64) -> Option<bool> {
    let (low, high) = ends(value);
    if low >= least && high <= most {
        return Some(true);
    }
    (high < least || low > most).then_some(false)
}

/// How many times another value a value is, as uncertain as both together; both are positive.
pub fn ratio(one: Value, other: Value) -> Value {
    let ((low, high), (from, to)) = (ends(one), ends(other));
    Value::within(one.value / other.value, low / to, high / from)
}

fn ends(value: Value) -> (f64, f64) {
    value.interval.unwrap_or((value.value, value.value))
}

/// The difference of two values, as uncertain as both together.
pub fn difference(one: Value, other: Value) -> Value {
    let ((low, high), (from, to)) = (ends(one), ends(other));
    Value::within(one.value - other.value, low - to, high - from)
}

/// A value as text, or that there is none.
pub fn text(value: Option<Value>) -> String {
    value.map_or_else(|| "not measured".to_owned(), |value| format!("{:.1}", value.value))
}
