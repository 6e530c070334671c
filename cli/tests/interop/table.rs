//! What was tried, and how it went.

use std::fmt;
use std::time::Instant;

use doorbell_kit::is_thorough;

use crate::pingpongs::At;
use crate::session::{Asks, Device, Family, Outcome};

/// The rows of a quick run: each kind of connection, one with faults, and `rdma_cm`. Each device
/// tries them by one of the two families.
const QUICK: [&str; 4] = ["`ibv_", "with 1 % of each", "`rping`", "private data"];

/// A row for each thing that is tried with each device, a column for each way.
#[derive(Default)]
pub struct Table {
    /// Of rows that contain none of these, nothing is tried; where there are none, all are.
    only: Vec<String>,
    /// Whether each device tries one family only.
    quick: bool,
    rows: Vec<String>,
    failures: Vec<String>,
}

const HEAD: &str = "\
| what | device | IPv4, we ask | IPv4, they ask | IPv6, we ask | IPv6, they ask |
|---|---|---|---|---|---|";

/// Where the table stands.
const DOCUMENT: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/operating/interoperability.md");

impl Table {
    /// A table of the rows whose names contain what the variable `ROWS` has. Where it is not set,
    /// of [some rows](QUICK), or of all in a thorough run.
    pub fn new() -> Self {
        let asked = std::env::var("ROWS").ok();
        let quick = asked.is_none() && !is_thorough();
        let some = || if quick { QUICK.map(str::to_owned).to_vec() } else { Vec::new() };
        Self { only: asked.map_or_else(some, |row| vec![row]), quick, ..Self::default() }
    }

    /// Tries something with both devices, by both families, both ways round.
    pub fn row(&mut self, what: String, tries: impl FnMut(At) -> Outcome) {
        self.row_of(what, &Asks::BOTH, tries);
    }

    /// Adds a row of the table in which only some sides ask.
    pub fn row_of(&mut self, what: String, who: &[Asks], mut tries: impl FnMut(At) -> Outcome) {
        if !self.only.is_empty() && !self.only.iter().any(|only| what.contains(only)) {
            return;
        }
        for (number, device) in Device::ALL.into_iter().enumerate() {
            let mut row = format!("| {what} | {} |", device.name());
            let start = Instant::now();
            for (other, family) in Family::BOTH.into_iter().enumerate() {
                let passed_over = self.quick && number != other;
                for asks in Asks::BOTH {
                    if passed_over || !who.contains(&asks) {
                        row += " – |";
                        continue;
                    }
                    let outcome = tries((device, family, asks));
                    row += if outcome.is_ok() { " yes |" } else { " **no** |" };
                    if let Err(why) = outcome {
                        let at = format!("{what}, {device:?}, {family:?}, {asks:?} ask");
                        eprintln!("{at}: {why}");
                        self.failures.push(format!("{at}: {why}"));
                    }
                }
            }
            eprintln!("{row} {:.1?}", start.elapsed());
            self.rows.push(row);
        }
    }

    /// # Panics
    /// When something failed, or the table is another than the one in the documentation.
    pub fn check(&self) {
        let count = self.failures.len();
        assert!(self.failures.is_empty(), "{count} failed:\n{}", self.failures.join("\n"));
        if !self.only.is_empty() {
            return eprintln!(
                "only some rows were tried, and the document is not compared: DOORBELL_THOROUGH=1 \
                 tries all"
            );
        }
        let document = std::fs::read_to_string(DOCUMENT).expect("the document is there");
        assert!(
            document.contains(&format!("\n{self}\n\n")),
            "the table in docs/operating/interoperability.md is another: put that above in its place"
        );
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{HEAD}\n{}", self.rows.join("\n"))
    }
}
