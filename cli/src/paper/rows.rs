//! The lines of tests that measure several things in one run, from several runs.

use doorbell_logp::Estimate;
use doorbell_report::Value as Number;
use serde_json::Value;

/// The rows that several runs of a test have printed, run by run.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Rows(Vec<Vec<Value>>);

impl Rows {
    /// Takes the lines that the runs have printed.
    pub fn of(lines: impl Iterator<Item = Value>) -> Self {
        let rows = |line: Value| line["rows"].as_array().cloned().unwrap_or_default();
        Self(lines.map(rows).collect())
    }

    /// The value of a field, in the row whose fields have these values; `None` if it was not
    /// measured twice.
    pub fn get(&self, row: &[(&str, Value)], field: &str) -> Option<Number> {
        let is = |other: &&Value| row.iter().all(|(name, value)| other[name] == *value);
        let of = |rows: &Vec<Value>| rows.iter().find(is)?[field].as_f64();
        let values: Vec<_> = self.0.iter().filter_map(of).collect();
        let Estimate { value, low, high } = Estimate::of_runs(&values)?;
        Some(Number::within(value, low, high))
    }

    /// The values of a field by those of another, which are numbers.
    pub fn curve(&self, by: &str, field: &str) -> Vec<(f64, Number)> {
        let Some(first) = self.0.first() else { return Vec::new() };
        let keys = first.iter().map(|row| row[by].clone());
        keys.filter_map(|key| Some((key.as_f64()?, self.get(&[(by, key)], field)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_that_of_all_runs_with_its_interval() {
        let run = |micros: f64| json!({ "rows": [{ "size": 8, "us": micros }, { "size": 16 }] });
        let rows = Rows::of([1.0, 2.0, 3.0].map(run).into_iter());
        let value = rows.get(&[("size", json!(8))], "us").expect("three runs");
        assert!((value.value - 2.0).abs() < 1e-9 && value.interval.is_some());
        assert_eq!(rows.get(&[("size", json!(16))], "us"), None);
        assert_eq!(rows.curve("size", "us"), [(8.0, value)]);
        assert_eq!(Rows::default().curve("size", "us"), []);
    }
}
