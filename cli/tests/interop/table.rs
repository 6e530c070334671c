//! What was tried, and how it went.

use std::fmt;
use std::time::Instant;

use crate::pingpongs::At;
use crate::session::{Asks, Device, Family, Outcome};

/// A row for each thing that is tried with each device, a column for each way.
#[derive(Default)]
pub struct Table {
    /// Of rows that do not contain this, nothing is tried.
    only: Option<String>,
    rows: Vec<String>,
    failures: Vec<String>,
}

const HEAD: &str = "\
| what | device | IPv4, we ask | IPv4, they ask | IPv6, we ask | IPv6, they ask |
|---|---|---|---|---|---|";

/// Where the table stands.
const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/interoperability.md");

impl Table {
    /// With the rows whose names contain what the variable `ROWS` has, if there is one.
    pub fn new() -> Self {
        Self { only: std::env::var("ROWS").ok(), ..Self::default() }
    }

    /// Tries something with both devices, by both families, both ways round.
    pub fn row(&mut self, what: String, tries: impl FnMut(At) -> Outcome) {
        self.row_of(what, &Asks::BOTH, tries);
    }

    /// The same where some of these ask only.
    pub fn row_of(&mut self, what: String, who: &[Asks], mut tries: impl FnMut(At) -> Outcome) {
        if self.only.as_ref().is_some_and(|only| !what.contains(only)) {
            return;
        }
        for device in Device::ALL {
            let mut row = format!("| {what} | {} |", device.name());
            let start = Instant::now();
            for family in Family::BOTH {
                for asks in Asks::BOTH {
                    if !who.contains(&asks) {
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
        if self.only.is_some() {
            return eprintln!("only some rows were tried: the document is not compared");
        }
        let document = std::fs::read_to_string(DOCUMENT).expect("the document is there");
        assert!(
            document.contains(&format!("\n{self}\n\n")),
            "the table in docs/interoperability.md is another: put that above in its place"
        );
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{HEAD}\n{}", self.rows.join("\n"))
    }
}
