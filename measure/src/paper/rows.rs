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

    /// The geometric mean of a field over several rows. Rows of one run have the disturbances of that
    /// run in common, so the mean is taken of each run, and its interval is that of the runs. `None`
    /// if a run lacks a row, or if there are fewer than two runs.
    pub fn geometric_mean(&self, rows: &[&[(&str, Value)]], field: &str) -> Option<Number> {
        let of = |run: &Vec<Value>| {
            let logarithm = |row: &&[(&str, Value)]| {
                let is = |other: &&Value| row.iter().all(|(name, value)| other[name] == *value);
                let value = run.iter().find(is)?[field].as_f64()?;
                (value > 0.0).then(|| value.ln())
            };
            let sum: Option<f64> = rows.iter().map(logarithm).sum();
            Some(sum? / rows.len() as f64)
        };
        let means: Option<Vec<_>> = self.0.iter().map(of).collect();
        let Estimate { value, low, high } = Estimate::of_runs(&means?)?;
        Some(Number::within(value.exp(), low.exp(), high.exp()))
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

    /// Each operation's interval was taken for the mean's, as if all of them erred together, and
    /// where one reached zero, the mean was zero or nothing.
    #[test]
    fn a_mean_of_several_rows_is_above_zero_and_as_uncertain_as_the_runs_differ() {
        let run = |one: f64, other: f64| json!({ "rows": [{ "size": 8, "us": one }, { "size": 16, "us": other }] });
        let rows = Rows::of([run(1.0, 90.0), run(9.0, 10.0)].into_iter());
        let [eight, sixteen] = [8, 16].map(|size| [("size", json!(size))]);
        let single = rows.get(&eight, "us").and_then(|it| it.interval).expect("two runs");
        assert!(single.0 < 0.0, "the runs of one row differ much: {single:?}");
        let mean = rows.geometric_mean(&[&eight, &sixteen], "us").expect("two runs of both rows");
        assert!((mean.value - 90.0_f64.sqrt()).abs() < 1e-9, "{mean:?}");
        let (low, high) = mean.interval.expect("two runs");
        assert!((high / low - 1.0).abs() < 1e-9, "both runs have the same mean: {mean:?}");
        let third = [("size", json!(32))];
        assert_eq!(rows.geometric_mean(&[&eight, &third], "us"), None);
    }
}
