//! What papers claim, and whether it holds here.

use doorbell_report::{Note, Value};

/// A claim of a paper, and whether it holds here; `None` if that can't be told.
pub fn claim(holds: Option<bool>, text: String) -> Note {
    match holds {
        Some(true) => Note::holds(text),
        Some(false) => Note::does_not_hold(text),
        None => Note::undecided(text),
    }
}

/// Whether a value is below another; `None` if one is missing, or their intervals overlap.
pub fn is_below(one: Option<Value>, other: Option<Value>) -> Option<bool> {
    let ends = |value: Value| value.interval.unwrap_or((value.value, value.value));
    let ((low, high), (from, to)) = (ends(one?), ends(other?));
    if high < from {
        return Some(true);
    }
    (low > to).then_some(false)
}

/// A value as text, or that there is none.
pub fn text(value: Option<Value>) -> String {
    value.map_or_else(|| "not measured".to_owned(), |value| format!("{:.1}", value.value))
}
