//! The texts that a drawing shows for a pointer.

use crate::{Value, number};

/// The text for a pointer that rests on a value: the name, the value and its interval.
pub fn tooltip(name: &str, value: Value, unit: &str) -> String {
    let text = number::significant(value.value);
    let interval = value.interval.map_or_else(String::new, |(low, high)| {
        format!(" ({} to {})", number::significant(low), number::significant(high))
    });
    format!("{name}: {text} {unit}").trim_end().to_owned() + &interval
}
