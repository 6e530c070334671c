//! The pieces of bars: where each value begins and ends.

use super::tooltip::tooltip;
use crate::scale;
use crate::{Arrangement, Axis, Bar, Bars, Scale, Value};

/// A value of a bar as it is drawn.
pub struct Piece {
    /// The number of the part.
    pub part: usize,
    /// Where the piece begins; `None` for the base of the axis.
    pub from: Option<f64>,
    /// Where the piece ends.
    pub to: f64,
    /// The interval of the end.
    pub interval: Option<(f64, f64)>,
    /// The value as text, for a pointer that rests on the piece.
    pub told: String,
}

/// The axis of bars: that of stacked bars is linear.
pub fn axis(bars: &Bars) -> Axis {
    let scale = match bars.arrangement {
        Arrangement::Grouped => bars.axis.scale,
        Arrangement::Stacked => Scale::Linear,
    };
    Axis { scale, ..bars.axis.clone() }
}

/// The pieces of a bar whose values have a place on the axis.
pub fn of(bars: &Bars, bar: &Bar) -> Vec<Piece> {
    let axis = axis(bars);
    let (mut above, mut below) = (0.0, 0.0);
    let values = bar.values.iter().enumerate().take(bars.parts.len());
    let values = values.filter_map(|(part, value)| Some((part, (*value)?.finite()?)));
    let values = values.filter(|(_, value)| scale::fits(value.value, axis.scale));
    values
        .map(|(part, value)| {
            let name = format!("{}, {}", bar.label, bars.parts[part]);
            let told = tooltip(&name, value, &axis.unit);
            let Value { value, interval } = value;
            if bars.arrangement == Arrangement::Grouped {
                return Piece { part, from: None, to: value, interval, told };
            }
            let end = if value < 0.0 { &mut below } else { &mut above };
            let from = *end;
            *end += value;
            let interval = interval.map(|(low, high)| (from + low, from + high));
            Piece { part, from: Some(from), to: *end, interval, told }
        })
        .collect()
}

/// The sum of a stacked bar, if all parts have a value.
pub fn sum(bars: &Bars, bar: &Bar) -> Option<f64> {
    let values = (0..bars.parts.len()).map(|part| Some((*bar.values.get(part)?)?.finite()?.value));
    let sum = values.sum::<Option<f64>>()?;
    (bars.arrangement == Arrangement::Stacked && scale::fits(sum, Scale::Linear)).then_some(sum)
}
