//! Exchanges for a report: each is a pair of processes, and prints what it has found.

use doorbell_report::{Note, Report, Section, Value as Number};
use indicatif::ProgressBar;
use serde_json::{Value, json};

use super::args::NAME;
use crate::paper::length::{Length, Of};
use crate::paper::sections::{self, Measured, Measures};
use crate::{interrupts, runs};

/// Runs exchanges, and keeps what they found.
pub struct Exchanges {
    length: Length,
    bar: ProgressBar,
    found: Vec<Value>,
    /// The runs that have failed, and why, and how many of them were asked about.
    failed: Vec<String>,
    told: usize,
}

impl Exchanges {
    pub fn new(length: Length) -> Self {
        interrupts::remember();
        let (found, failed) = Default::default();
        Self { length, bar: runs::bar(0), found, failed, told: 0 }
    }

    /// Returns how long measurements are.
    pub fn length(&self) -> Length {
        self.length
    }

    /// Tells how many runs follow.
    pub fn expect(&mut self, runs: usize) {
        self.bar.inc_length(runs as u64);
    }

    /// Measures something for a number of seconds, or for a part of it. Returns what was found of
    /// each length and each time of computation. What can't be measured is remembered, and why.
    pub fn run(&mut self, what: &str, arguments: &str, seconds: f64) -> Vec<Value> {
        self.bar.inc(1);
        if interrupts::is_interrupted() {
            return Vec::new();
        }
        self.bar.set_message(what.to_owned());
        let part = self.length.choose(Of { full: 1.0, quick: 0.25, brief: 0.025 });
        let seconds = (seconds * part).to_string();
        let all = [NAME].into_iter().chain(arguments.split(' ')).chain(["--seconds", &seconds]);
        match runs::line(all) {
            _ if interrupts::is_interrupted() => Vec::new(),
            Ok(json) => {
                let found = json["found"].as_array().cloned().unwrap_or_default();
                self.found.push(json!({ "run": arguments, "found": json }));
                found
            }
            Err(why) => {
                self.fail(format!("{what}: {why:#}"));
                Vec::new()
            }
        }
    }

    /// Notes something that was measured in another way.
    pub fn keep(&mut self, what: &str, found: Value) {
        self.found.push(json!({ "run": what, "found": found }));
    }

    /// Notes that something could not be measured, and why.
    pub fn fail(&mut self, why: String) {
        self.failed.push(why);
    }

    /// Adds the sections of a paper to a report, for each device.
    pub fn sections(
        &mut self,
        report: Report,
        devices: &[String],
        measures: [fn(&mut Self, &str) -> Section; 3],
    ) -> Report {
        let all = devices.iter().flat_map(|device| measures.map(|measure| (device, measure)));
        all.fold(report, |report, (device, measure)| {
            sections::measure(report, self, |exchanges| vec![measure(exchanges, device)])
        })
    }

    /// Everything that was measured.
    pub fn finish(self) -> Measured {
        self.bar.finish_and_clear();
        Measured { found: self.found, failed: self.failed }
    }
}

impl Measures for Exchanges {
    fn troubles(&mut self) -> Vec<Note> {
        let failed = self.failed[self.told..].iter().cloned().map(Note::missing).collect();
        self.told = self.failed.len();
        failed
    }
}

/// Reads a value with its interval.
pub fn value(json: &Value) -> Option<Number> {
    let (value, low, high) = (&json["value"], &json["low"], &json["high"]);
    Some(Number::within(value.as_f64()?, low.as_f64()?, high.as_f64()?))
}
