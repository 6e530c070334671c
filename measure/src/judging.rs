//! Whether claims hold, by values that are uncertain, and what is made of several such values.
//!
//! All that is judged here is a time, a rate or a share, which is above zero. An interval that
//! reaches zero says that next to nothing is known of such a value: nothing is concluded from it.

use doorbell_report::{Block, Note, NoteKind, Section, Value};

/// A claim, as of a paper, and whether it holds here; `None` if that can't be told.
pub fn claim(holds: impl Into<Option<bool>>, text: String) -> Note {
    match holds.into() {
        Some(true) => Note::holds(text),
        Some(false) => Note::does_not_hold(text),
        None => Note::undecided(text),
    }
}

/// Returns whether a value is below another; `None` if one was not measured, if an interval reaches
/// zero, or if the intervals overlap, so that chance may be all that makes the difference.
pub fn is_below(one: impl Into<Option<Value>>, other: impl Into<Option<Value>>) -> Option<bool> {
    let ((low, high), (from, to)) = (ends(one.into()?)?, ends(other.into()?)?);
    if high < from {
        return Some(true);
    }
    (low > to).then_some(false)
}

/// Returns whether a value is between two bounds; `None` if the value is not known, or if its
/// interval contains a bound or reaches zero.
pub fn is_between(value: impl Into<Option<Value>>, least: f64, most: f64) -> Option<bool> {
    let (low, high) = ends(value.into()?)?;
    if low >= least && high <= most {
        return Some(true);
    }
    (high < least || low > most).then_some(false)
}

/// Returns whether a claim of two parts holds: it does if both parts do, and does not if one of them
/// does not.
pub fn both(one: Option<bool>, other: Option<bool>) -> Option<bool> {
    match (one, other) {
        (Some(true), Some(true)) => Some(true),
        (Some(false), _) | (_, Some(false)) => Some(false),
        _ => None,
    }
}

/// Returns how many times another value a value is. The interval is made of both intervals by their
/// logarithms, whose difference the logarithm of the ratio is: the reaches of two independent values
/// add up like the sides of a right angle. `None` if either interval reaches zero, since the ratio
/// may then be anything.
pub fn ratio(one: Value, other: Value) -> Option<Value> {
    let ((low, high), (from, to)) = (ends(one)?, ends(other)?);
    let value = one.value / other.value;
    let down = (one.value / low).ln().hypot((to / other.value).ln());
    let up = (high / one.value).ln().hypot((other.value / from).ln());
    Some(Value::within(value, value * (-down).exp(), value * up.exp()))
}

/// The ends of a value's interval; `None` if the interval reaches zero, or does not hold the value.
fn ends(value: Value) -> Option<(f64, f64)> {
    let (low, high) = value.interval.unwrap_or((value.value, value.value));
    (low > 0.0 && low <= value.value && value.value <= high).then_some((low, high))
}

/// A value and its interval, both as many times as much.
pub fn times(factor: f64, value: Value) -> Value {
    let interval = value.interval.map(|(low, high)| (factor * low, factor * high));
    Value { value: factor * value.value, interval }
}

/// The difference of two values, as uncertain as both together.
pub fn difference(one: Value, other: Value) -> Value {
    let ((low, high), (from, to)) = (reach(one), reach(other));
    Value::within(one.value - other.value, low - to, high - from)
}

/// The sum of two values, as uncertain as both together.
pub fn sum(one: Value, other: Value) -> Value {
    let ((low, high), (from, to)) = (reach(one), reach(other));
    Value::within(one.value + other.value, low + from, high + to)
}

fn reach(value: Value) -> (f64, f64) {
    value.interval.unwrap_or((value.value, value.value))
}

/// A value as text, with `decimals` decimals and its unit, or that nothing is known of it.
pub fn told(value: Option<Value>, decimals: usize, unit: &str) -> String {
    value.map_or_else(
        || "too uncertain to tell".to_owned(),
        |value| format!("{:.decimals$} {unit}", value.value),
    )
}

/// Takes back what was concluded in a section, since something has disturbed the measurements.
pub fn withhold(section: Section) -> Section {
    let Section { heading, blocks } = section;
    let withheld = |block| match block {
        Block::Note(Note { kind: NoteKind::Holds | NoteKind::DoesNotHold, text }) => {
            Block::Note(Note::undecided(format!("{text} Not judged, since the machine was busy.")))
        }
        other => other,
    };
    Section { heading, blocks: blocks.into_iter().map(withheld).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two runs of a collective over TCP and by messages on a busy machine: 166 % faster, from −35
    /// to −186 %, it said, and that the claim does not hold.
    #[test]
    fn a_ratio_of_an_interval_that_reaches_zero_is_not_known_and_nothing_is_concluded() {
        let (ours, theirs) = (Value::within(15.0, -20.0, 50.0), Value::within(40.0, 17.0, 63.0));
        assert_eq!(ratio(theirs, ours), None);
        assert_eq!(ratio(ours, theirs), None);
        assert_eq!(is_between(ratio(theirs, ours), 1.5, f64::INFINITY), None);
        assert_eq!(is_below(ours, Value::within(90.0, 80.0, 100.0)), None);
        assert_eq!(is_between(ours, 60.0, f64::INFINITY), None);
        assert_eq!(ratio(Value::exact(0.0), theirs), None);
    }

    #[test]
    fn the_interval_of_a_ratio_holds_the_ratio_and_is_narrower_than_that_of_the_worst_cases() {
        let (one, other) = (Value::within(8.0, 4.0, 16.0), Value::within(2.0, 1.0, 4.0));
        let found = ratio(one, other).expect("both are above zero");
        let (low, high) = found.interval.expect("it is uncertain");
        // Both reach a factor of two each way, which makes one of two to the power of √2.
        let reach = 2.0_f64.powf(2.0_f64.sqrt());
        assert!((low - 4.0 / reach).abs() < 1e-9 && (high - 4.0 * reach).abs() < 1e-9, "{found:?}");
        assert!(low > 1.0 && high < 16.0, "{found:?}");
        let exact = ratio(Value::exact(3.0), Value::exact(1.5)).expect("both are above zero");
        assert_eq!(exact, Value::within(2.0, 2.0, 2.0));
    }

    /// Nineteen of twenty intervals hold the true ratio, for values that are as uncertain as those
    /// of four runs.
    #[test]
    fn the_intervals_of_ratios_hold_the_true_ratio_as_often_as_they_say() {
        let mut state = 11_u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        // The sum of twelve such numbers is as good as normally distributed.
        let mut about =
            |mean: f64| mean * (1.0 + 0.03 * ((0..12).map(|_| draw()).sum::<f64>() - 6.0));
        let mut runs = |mean| {
            let found: Vec<_> = (0..4).map(|_| about(mean)).collect();
            let found = doorbell_logp::Estimate::of_runs(&found).expect("four runs");
            Value::within(found.value, found.low, found.high)
        };
        let hits = (0..1000)
            .filter(|_| {
                let (low, high) = ratio(runs(30.0), runs(20.0)).and_then(|it| it.interval).unwrap();
                (low..=high).contains(&1.5)
            })
            .count();
        assert!((930..=995).contains(&hits), "{hits}");
    }

    #[test]
    fn a_claim_of_two_parts_fails_with_either_and_holds_with_both() {
        assert_eq!(both(Some(true), Some(true)), Some(true));
        assert_eq!(both(None, Some(false)), Some(false));
        assert_eq!(both(Some(true), None), None);
    }

    #[test]
    fn nothing_is_concluded_on_a_busy_machine() {
        let section = Section::new("Times").note(claim(true, "It is fast.".to_owned()));
        let section = section.note(Note::missing("a network")).note(claim(false, String::new()));
        let kinds = withhold(section).blocks.into_iter().map(|block| match block {
            Block::Note(note) => note.kind,
            other => panic!("{other:?}"),
        });
        let expected = [NoteKind::Undecided, NoteKind::Missing, NoteKind::Undecided];
        assert_eq!(kinds.collect::<Vec<_>>(), expected);
    }
}
