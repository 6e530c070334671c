//! The layers as a table for people.

use std::fmt::Write;

use serde_json::Value;

use crate::perf::figures::Row;

/// Makes the table of the rows of all layers, below a line with the names of columns and a line with
/// their units.
pub fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    let mut line = |cells: [String; 6]| {
        let [floor, below, latency, added, rate, share] = cells;
        let left = format!("{floor:<16} {below:<16}");
        let line = format!("{left} {latency:>10} {added:>10} {rate:>10} {share:>8}");
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}", line.trim_end());
    };
    line(["floor", "stands on", "latency", "added", "rate", "share"].map(str::to_owned));
    line(["", "", "µs", "µs", "M/s", "%"].map(str::to_owned));
    for row in rows {
        let field = |wanted| row.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value);
        let word = |name| field(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let number = |name, factor: f64, digits: usize| {
            let number = field(name).and_then(Value::as_f64);
            number.map_or(String::new(), |number| format!("{:.digits$}", number * factor))
        };
        line([
            word("floor"),
            word("below"),
            number("latency_us", 1.0, 3),
            number("added_us", 1.0, 3),
            number("msgs_per_s", 1e-6, 2),
            number("rate_share", 100.0, 0),
        ]);
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_has_the_figures_of_a_layer_and_nothing_where_there_is_no_layer_below() {
        let row = |below: Option<&str>, added: Option<f64>, share: Option<f64>| {
            vec![
                ("floor", json!("tagged messages")),
                ("below", json!(below)),
                ("latency_us", json!(0.25)),
                ("added_us", json!(added)),
                ("msgs_per_s", json!(2_346_000.0)),
                ("rate_share", json!(share)),
            ]
        };
        let rows = [row(None, None, None), row(Some("Active Messages"), Some(-0.1), Some(0.5))];
        let text = table(&rows);
        let cells: Vec<Vec<_>> =
            text.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(cells[0], ["tagged", "messages", "0.250", "2.35"]);
        let all = ["tagged", "messages", "Active", "Messages", "0.250", "-0.100", "2.35", "50"];
        assert_eq!(cells[1], all);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
