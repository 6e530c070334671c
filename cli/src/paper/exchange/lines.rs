//! Exchanges for a report: each is a pair of processes, and prints what it has found.

use doorbell_report::{Note, Report, Section, Value as Number};
use indicatif::ProgressBar;
use serde_json::{Value, json};

use super::args::NAME;
use crate::{interrupts, runs};

/// Runs exchanges, and keeps what they found.
pub struct Exchanges {
    is_quick: bool,
    bar: ProgressBar,
    found: Vec<Value>,
    missing: Vec<String>,
}

impl Exchanges {
    pub fn new(is_quick: bool) -> Self {
        interrupts::remember();
        Self { is_quick, bar: runs::bar(0), found: Vec::new(), missing: Vec::new() }
    }

    /// Tells how many runs follow.
    pub fn expect(&mut self, runs: usize) {
        self.bar.inc_length(runs as u64);
    }

    /// Measures something for a number of seconds; for a part of it, if that is to be quick.
    /// Returns what was found of each length and each time of computation. What can't be measured
    /// is remembered, and why.
    pub fn run(&mut self, what: &str, arguments: &str, seconds: f64) -> Vec<Value> {
        self.bar.inc(1);
        if interrupts::is_interrupted() {
            return Vec::new();
        }
        self.bar.set_message(what.to_owned());
        let seconds = if self.is_quick { seconds / 4.0 } else { seconds };
        let seconds = seconds.to_string();
        let all = [NAME].into_iter().chain(arguments.split(' ')).chain(["--seconds", &seconds]);
        match runs::line(all) {
            _ if interrupts::is_interrupted() => Vec::new(),
            Ok(json) => {
                let found = json["found"].as_array().cloned().unwrap_or_default();
                self.found.push(json!({ "run": arguments, "found": json }));
                found
            }
            Err(why) => {
                self.missing.push(format!("{what}: {why:#}"));
                Vec::new()
            }
        }
    }

    /// Notes something that was measured in another way.
    pub fn keep(&mut self, what: &str, found: Value) {
        self.found.push(json!({ "run": what, "found": found }));
    }

    /// Notes for what could not be measured since this was asked before.
    fn troubles(&mut self) -> Vec<Note> {
        self.missing.drain(..).map(Note::missing).collect()
    }

    /// Adds the sections of a paper to a report, for each device, with notes on what could not be
    /// measured.
    pub fn sections(
        &mut self,
        mut report: Report,
        devices: &[String],
        measures: [fn(&mut Self, &str) -> Section; 3],
    ) -> Report {
        for device in devices {
            for measure in measures {
                let mut section = measure(self, device);
                for note in self.troubles() {
                    section = section.note(note);
                }
                report = report.section(section);
            }
        }
        report
    }

    /// Everything that was measured.
    pub fn finish(self) -> Vec<Value> {
        self.bar.finish_and_clear();
        self.found
    }
}

/// Reads a value with its interval.
pub fn value(json: &Value) -> Option<Number> {
    let (value, low, high) = (&json["value"], &json["low"], &json["high"]);
    Some(Number::within(value.as_f64()?, low.as_f64()?, high.as_f64()?))
}
