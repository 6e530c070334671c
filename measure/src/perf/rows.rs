//! Several measurements of one run: as words, as JSON, and as CSV.

use std::fmt::Write;

use serde_json::{Value, json};

use super::figures::{Figures, Row};
use super::floors;
use super::{Form, Plan};
use crate::machine::{PROFILE, built_by};
use crate::out::SCHEMA;
use crate::perf::plan::test::Test;

/// The measurements of a test, in the form that was asked for.
pub fn text(plan: &Plan, figures: &Figures, rows: &[Row], form: Form) -> String {
    let test = plan.test.name();
    match form {
        Form::Words => {
            let device = figures.device.unwrap_or("the kernel's sockets");
            let table = match plan.test {
                Test::Layers => floors::table(rows),
                _ => table(rows),
            };
            format!("{test} over {device}, all checked\n{table}{}\n", built_by())
        }
        Form::Json => {
            let rows = rows.iter().map(|row| Value::from_iter(row.iter().cloned()));
            let rows = Value::from_iter(rows);
            let device = figures.device;
            let all = json!({
                "schema": SCHEMA,
                "test": test,
                "device": device,
                "profile": PROFILE,
                "rows": rows,
            });
            format!("{all}\n")
        }
        Form::Csv => {
            let names = rows.first().map(|row| row.iter().map(|(name, _)| (*name).to_owned()));
            let names = names.into_iter().map(|names| names.collect::<Vec<_>>());
            let values = rows.iter().map(|row| row.iter().map(|(_, value)| plain(value)).collect());
            names.chain(values).map(|line: Vec<_>| line.join(",") + "\n").collect()
        }
    }
}

/// A table with the names above.
fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    let names = rows.first().map(|row| row.iter().map(|(name, _)| (*name).to_owned()).collect());
    let values = rows.iter().map(|row| row.iter().map(|(_, value)| shown(value)).collect());
    for line in names.into_iter().chain(values) {
        let line: Vec<String> = line;
        for cell in line {
            // Writing to a string does not fail.
            let _ = write!(text, "{cell:>14}");
        }
        text.push('\n');
    }
    text
}

/// A value as CSV has it.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A value for readers, with no more digits than they need.
fn shown(value: &Value) -> String {
    match value.as_f64().filter(|_| value.is_f64()) {
        Some(number) => format!("{number:.3}"),
        None => plain(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_the_names_above_and_a_line_for_each_row() {
        let rows: Vec<Row> = [(16, 1.23456), (4096, 20.0)]
            .map(|(size, time)| vec![("size", json!(size)), ("us", json!(time))])
            .into();
        let lines: Vec<Vec<String>> = table(&rows)
            .lines()
            .map(|line| line.split_whitespace().map(str::to_owned).collect())
            .collect();
        assert_eq!(lines, [["size", "us"], ["16", "1.235"], ["4096", "20.000"]]);
    }
}
