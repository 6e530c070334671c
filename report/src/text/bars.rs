//! Bars as text: a line for each value, or for a stack of values with a letter for each part.

use super::wrapping::{padded, wrapped};
use crate::number;
use crate::scale::Range;
use crate::{Arrangement, Bar, Bars, Value};

/// The longest bar, in characters, and the shortest for which there must be room.
const LONGEST: usize = 60;
const SHORTEST: usize = 10;

/// The bars with their numbers; `None` if there is no number.
pub fn draw(bars: &Bars, width: usize) -> Option<String> {
    let stacked = bars.arrangement == Arrangement::Stacked;
    let lines: Vec<Line> = bars
        .bars
        .iter()
        .flat_map(|bar| if stacked { vec![Line::stack(bar)] } else { Line::each(bar, bars) })
        .filter(|line| !line.parts.is_empty())
        .collect();
    let names = lines.iter().map(|line| line.name.chars().count()).max()?;
    let brackets = 2 * lines.iter().map(Line::below_zero).max()?;
    let room = width.saturating_sub(names + 12 + brackets).clamp(SHORTEST, LONGEST);
    let range =
        (!stacked).then(|| bars.axis.clone()).filter(|axis| axis.scale != crate::Scale::Linear);
    let logarithmic =
        range.and_then(|axis| Range::new(&axis, false, lines.iter().flat_map(Line::values), 5));
    let most = lines.iter().map(Line::length).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let mut text = String::new();
    let mut group = "";
    for line in &lines {
        if line.group != group {
            text += &format!("{}\n", line.group);
            group = line.group;
        }
        let drawn = match &logarithmic {
            Some(range) => {
                let place = range.position(line.sum()).clamp(0.0, 1.0);
                "·".repeat((place * (room - 1) as f64).round() as usize) + "o"
            }
            None => line.drawn(most, room),
        };
        let sum = number::significant(line.sum());
        text += &format!("  {}  {} {drawn}\n", padded(&line.name, names), padded(&sum, 7));
    }
    if stacked {
        let parts = bars.parts.iter().enumerate();
        let parts = parts.map(|(number, part)| format!("{} {part}", symbol(number)));
        let total = bars.total.as_ref().map(|total| format!("the number is {total}"));
        let legend: Vec<_> = parts.chain(total).collect();
        let legend = format!("{}; below zero, a part is in brackets", legend.join(", "));
        text += &wrapped(&legend, width, "  ");
    }
    Some(text + &format!("  {}, {}\n", bars.axis.title, bars.axis.unit))
}

/// The character that a part of a stack is drawn with.
fn symbol(number: usize) -> char {
    ['█', '░', '▓', '▒', '+', 'x', 'o', '='][number % 8]
}

/// A line of text: a value, or a stack of them, with the places of the parts.
struct Line<'a> {
    name: String,
    group: &'a str,
    parts: Vec<(usize, f64)>,
}

impl<'a> Line<'a> {
    fn stack(bar: &'a Bar) -> Self {
        let parts = bar.values.iter().enumerate();
        let parts = parts.filter_map(|(part, value)| Some((part, finite(*value)?))).collect();
        Self { name: bar.label.clone(), group: &bar.group, parts }
    }

    /// A line for each part.
    fn each(bar: &'a Bar, bars: &Bars) -> Vec<Self> {
        let line = |(part, value): (usize, &Option<Value>)| {
            let name = match bars.parts.get(part) {
                Some(part) if bars.parts.len() > 1 => format!("{} {part}", bar.label),
                _ => bar.label.clone(),
            };
            Some(Self { name, group: &bar.group, parts: vec![(0, finite(*value)?)] })
        };
        bar.values.iter().enumerate().filter_map(line).collect()
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        self.parts.iter().map(|(_, value)| *value)
    }

    fn sum(&self) -> f64 {
        self.values().sum()
    }

    /// How long the bar is: parts below zero, too, take room.
    fn length(&self) -> f64 {
        self.values().map(f64::abs).sum()
    }

    /// How many parts are below zero, each of which is drawn in brackets.
    fn below_zero(&self) -> usize {
        self.values().filter(|value| *value < 0.0).count()
    }

    /// The bar, in which the parts together are as long as the whole: each of them begins where
    /// those before it end, and is rounded there.
    fn drawn(&self, most: f64, room: usize) -> String {
        let place = |length: f64| (length / most * room as f64).round() as usize;
        let mut before = 0.0;
        let bar = |(part, value): &(usize, f64)| {
            let begins = place(before);
            before += value.abs();
            let bar = symbol(*part).to_string().repeat(place(before) - begins);
            if *value < 0.0 { format!("({bar})") } else { bar }
        };
        self.parts.iter().map(bar).collect()
    }
}

fn finite(value: Option<Value>) -> Option<f64> {
    value.and_then(Value::finite).map(|value| value.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Axis;

    #[test]
    fn the_parts_of_a_stack_follow_each_other_and_one_below_zero_is_in_brackets() {
        let bars = Bars::stacked(Axis::linear("Half a round trip", "µs"), ["o_s", "L", "o_r"])
            .total("RTT/2")
            .bar(Bar::new("am", [2.0, -1.0, 1.0].map(Value::exact)).group("udp"))
            .bar(Bar::new("none", [None::<Value>; 3]));
        let text = draw(&bars, 80).expect("there are numbers");
        let rows: Vec<_> = text.lines().collect();
        assert_eq!(rows[0], "udp");
        let (full, quarter) = ("█".repeat(30), 15);
        let expected =
            format!("  am  2.00    {full}({}){}", "░".repeat(quarter), "▓".repeat(quarter));
        assert_eq!(rows[1], expected);
        assert_eq!(
            rows[2],
            "  █ o_s, ░ L, ▓ o_r, the number is RTT/2; below zero, a part is in brackets"
        );
    }

    #[test]
    fn no_line_of_a_stack_is_wider_than_the_text() {
        for parts in [[0.491, -0.302, 1.24], [-0.333, -0.333, 0.334], [0.5, 0.5, 0.5]] {
            let bars = Bars::stacked(Axis::linear("Half a round trip", "µs"), ["o_s", "L", "o_r"])
                .bar(Bar::new("Split-C, one-sided", parts.map(Value::exact)));
            for width in 50..70 {
                let text = draw(&bars, width).expect("there are numbers");
                let widest = text.lines().map(|line| line.chars().count()).max();
                assert!(widest <= Some(width), "{width}: {text}");
            }
        }
    }

    #[test]
    fn values_beside_each_other_have_a_line_each() {
        let bars = Bars::grouped(Axis::log("Gap", "µs"), ["then", "now"])
            .bar(Bar::new("am", [Some(Value::exact(30.0)), Some(Value::exact(0.03))]));
        let text = draw(&bars, 80).expect("there are numbers");
        let rows: Vec<_> = text.lines().collect();
        assert!(rows[0].starts_with("  am then  30.0 "), "{text}");
        assert!(rows[1].starts_with("  am now   0.0300"), "{text}");
        assert!(rows[0].len() > rows[1].len(), "{text}");
    }
}
