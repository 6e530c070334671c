//! What is measured for a paper: runs of `doorbell perf`, one after the other.

use std::fmt;

use doorbell_logp::Estimate;
use doorbell_report::{Note, Value as Number};
use indicatif::ProgressBar;
use serde_json::{Value, json};

use super::length::{Length, Of};
use super::rows::Rows;
use super::sections::{Measured, Measures};
use crate::logp::line::Line;
use crate::{interrupts, runs};

/// How often each test is run, from which its interval comes.
const REPETITIONS: Of<usize> = Of { full: 4, quick: 3, brief: 2 };
/// For how many seconds a stream is measured, and the parameters of LogP.
const STREAM: Of<f64> = Of { full: 0.15, quick: 0.05, brief: 0.01 };
const LOGP: Of<f64> = Of { full: 0.4, quick: 0.2, brief: 0.05 };
/// How many round trips a latency has.
const ROUND_TRIPS: Of<u32> = Of { full: 30_000, quick: 5_000, brief: 500 };

/// A test of `doorbell perf` on a device, with its further arguments.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    pub test: &'a str,
    pub device: &'a str,
    pub arguments: &'a [&'a str],
}

impl Run<'_> {
    fn test_and_arguments(&self) -> String {
        [&[self.test][..], self.arguments].concat().join(" ")
    }
}

impl fmt::Display for Run<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} over {}", self.test_and_arguments(), self.device)
    }
}

/// Runs tests, and keeps what they found.
pub struct Bench {
    devices: Vec<String>,
    length: Length,
    bar: ProgressBar,
    found: Vec<Value>,
    /// The runs that have failed, and why, and how many of them were asked about.
    failed: Vec<String>,
    told: usize,
}

impl Bench {
    pub fn new(devices: Vec<String>, length: Length) -> Self {
        interrupts::remember();
        let bar = runs::bar(0);
        let (found, failed) = Default::default();
        Self { devices, length, bar, found, failed, told: 0 }
    }

    pub fn devices(&self) -> Vec<String> {
        self.devices.clone()
    }

    /// Tells how many tests will be run on each device, each as often as it is repeated.
    pub fn expect(&mut self, tests: usize) {
        self.bar.set_length((tests * self.devices.len()) as u64);
    }

    /// Half of a round trip, or the whole time of what is awaited, in microseconds: the mean of
    /// several runs' medians.
    pub fn latency(&mut self, run: Run<'_>) -> Option<Number> {
        let times = self.length.choose(ROUND_TRIPS).to_string();
        self.repeated(run, &["--iters", &times], |json| json["p50_us"].as_f64())
    }

    /// How many microseconds pass from one message of a stream to the next.
    pub fn interval(&mut self, run: Run<'_>) -> Option<Number> {
        self.stream(run, |json| Some(1e6 / json["msgs_per_s"].as_f64()?))
    }

    /// The rate of a stream in megabytes a second.
    pub fn rate(&mut self, run: Run<'_>) -> Option<Number> {
        self.stream(run, |json| Some(1e3 * json["gbytes_per_s"].as_f64()?))
    }

    fn stream(&mut self, run: Run<'_>, of: impl Fn(&Value) -> Option<f64>) -> Option<Number> {
        let seconds = self.length.choose(STREAM).to_string();
        self.repeated(run, &["--seconds", &seconds], of)
    }

    /// The parameters of LogP, by several runs.
    pub fn parameters(&mut self, run: Run<'_>) -> Option<Line> {
        let seconds = self.length.choose(LOGP).to_string();
        self.bar.inc(1);
        let mut lines = Vec::new();
        for _ in 0..self.length.choose(REPETITIONS) {
            lines.extend(Line::from_json(self.once(run, &["--pair", "--seconds", &seconds])?));
        }
        Line::of_runs(&lines)
    }

    /// Measures a breakdown of the host's time several times. Returns the line that the test prints
    /// in each run.
    pub fn costs(&mut self, run: Run<'_>) -> Vec<Value> {
        self.bar.inc(1);
        let times = 0..self.length.choose(REPETITIONS);
        times.map_while(|_| self.once(run, &[])).collect()
    }

    /// Runs a test several times that measures several things in one run.
    pub fn rows(&mut self, run: Run<'_>, seconds: Of<f64>) -> Rows {
        let seconds = self.length.choose(seconds).to_string();
        self.bar.inc(1);
        let times = 0..self.length.choose(REPETITIONS);
        let once = |_| self.once(run, &["--pair", "--seconds", &seconds]);
        Rows::of(times.filter_map(once))
    }

    fn repeated(
        &mut self,
        run: Run<'_>,
        how_much: &[&str],
        of: impl Fn(&Value) -> Option<f64>,
    ) -> Option<Number> {
        let how_much: Vec<_> = ["--pair"].iter().chain(how_much).copied().collect();
        self.bar.inc(1);
        let mut values = Vec::new();
        for _ in 0..self.length.choose(REPETITIONS) {
            values.extend(of(&self.once(run, &how_much)?));
        }
        let Some(estimate) = Estimate::of_runs(&values) else {
            self.failed.push(format!("{run}: the test has printed no such number"));
            return None;
        };
        let Estimate { value, low, high } = estimate;
        Some(Number::within(value, low, high))
    }

    /// Runs a test once. What can't be measured is remembered, and why.
    fn once(&mut self, run: Run<'_>, how_much: &[&str]) -> Option<Value> {
        if interrupts::is_interrupted() {
            return None;
        }
        let Run { test, device, arguments } = run;
        self.bar.set_message(run.to_string());
        let line = ["perf", test, "--json", "--device", device];
        match runs::line([&line[..], arguments, how_much].concat()) {
            _ if interrupts::is_interrupted() => None,
            Ok(json) => {
                let entry =
                    json!({ "run": run.test_and_arguments(), "device": device, "found": json });
                self.found.push(entry);
                Some(json)
            }
            Err(why) => {
                self.failed.push(format!("{run}: {why:#}"));
                None
            }
        }
    }

    /// The lines with parameters of LogP that have been measured so far.
    pub fn lines(&self) -> Vec<Line> {
        self.found.iter().filter_map(|entry| Line::from_json(entry["found"].clone())).collect()
    }

    /// Everything that was measured.
    pub fn finish(self) -> Measured {
        self.bar.finish_and_clear();
        Measured { found: self.found, failed: self.failed }
    }
}

impl Measures for Bench {
    fn troubles(&mut self) -> Vec<Note> {
        let mut failed = self.failed[self.told..].to_vec();
        self.told = self.failed.len();
        failed.dedup();
        failed.into_iter().map(Note::missing).collect()
    }
}
