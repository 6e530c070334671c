//! The history of a run: how each call ended for its caller, and how often it ran.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::Path;

use crate::chaos::callers::{End, Made};

/// All calls of a run.
pub struct History {
    calls: Vec<Made>,
    /// How often each call ran, at all servers together.
    runs: HashMap<u64, usize>,
}

impl History {
    /// Puts together what the callers know and what the servers have recorded.
    pub fn new(calls: Vec<Made>, records: &Path) -> Self {
        let mut runs = HashMap::new();
        for record in std::fs::read_dir(records).expect("the records are there") {
            let record = std::fs::read(record.expect("it is there").path()).expect("a record");
            for call in record.chunks_exact(8) {
                let call = u64::from_le_bytes(call.try_into().expect("it is as long"));
                *runs.entry(call).or_insert(0) += 1;
            }
        }
        Self { calls, runs }
    }

    /// Checks each call against what is promised.
    pub fn judge(&self) {
        let wrong: Vec<_> = self.calls.iter().filter(|made| !self.is_right(made)).collect();
        let shown = wrong.iter().take(10).map(|made| format!("{made:?} ran {}", self.ran(made)));
        let shown: Vec<_> = shown.collect();
        assert!(wrong.is_empty(), "{} calls, among them {shown:#?}", wrong.len());
        assert!(self.calls.iter().any(|made| made.end == End::Answered), "nothing was answered");
    }

    /// Checks that no call has failed.
    pub fn nothing_failed(&self) {
        let failed: Vec<_> =
            self.calls.iter().filter(|made| made.end != End::Answered).take(10).collect();
        assert!(failed.is_empty(), "calls have failed, among them {failed:#?}");
    }

    fn is_right(&self, made: &Made) -> bool {
        let ran = self.ran(made);
        let as_often_as_it_may = ran <= 1 || Made::may_repeat(made.call);
        as_often_as_it_may
            && match made.end {
                End::Answered => ran >= 1,
                // A call that may repeat was perhaps tried elsewhere before.
                End::NotRun(_) => ran == 0 || Made::may_repeat(made.call),
                End::Failed(_) => true,
                End::Hung => false,
            }
    }

    fn ran(&self, made: &Made) -> usize {
        self.runs.get(&made.call).copied().unwrap_or(0)
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ends = BTreeMap::new();
        for made in &self.calls {
            *ends.entry(format!("{:?}", made.end)).or_insert(0) += 1;
        }
        write!(f, "{} calls: {ends:?}", self.calls.len())
    }
}
