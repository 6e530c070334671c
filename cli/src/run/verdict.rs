//! Which process has failed first. Others fail because it has, and often end before it does.

use std::process::ExitStatus;
use std::time::Instant;

use doorbell_job::{Service, Standing};

/// What is known of the processes of a job at some time, by their ranks.
#[derive(Debug)]
pub struct Scene {
    pub ends: Vec<Option<Seen>>,
    pub standings: Vec<Standing>,
    /// The process whose connection with the rendezvous was the first to end without a word.
    pub first_ended: Option<usize>,
    /// Why the job can't begin.
    pub failure: Option<String>,
}

/// The end of a process, as it has been seen.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub status: ExitStatus,
    pub at: Instant,
    /// Whether the process has ended so long ago that nothing more is waited for that would explain
    /// its end.
    pub is_old: bool,
}

/// What the ends of processes say of their job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// No process has failed.
    Fine,
    /// Processes have ended, and whether or why they have failed is not known yet.
    Open,
    /// The job has failed.
    Failed(Blame),
}

/// Why a job has failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Blame {
    /// The processes have not found each other. A process that failed so is named.
    NotBegun { why: String, rank: usize },
    /// A process has failed by itself.
    Process(usize),
    /// A process has ended because another has gone, which still seems to run.
    Lost { rank: usize, other: usize },
}

impl Scene {
    /// What is known now. The ends must have been seen before: a process tells the rendezvous why it
    /// ends before it does.
    pub fn now(ends: Vec<Option<Seen>>, service: &Service) -> Self {
        let standings = (0..ends.len()).map(|rank| service.standing(rank)).collect();
        let (first_ended, failure) = (service.first_ended(), service.failure());
        Self { ends, standings, first_ended, failure }
    }

    /// What the ends of the processes say of the job.
    pub fn verdict(&self) -> Verdict {
        let seen = self.ends.iter().enumerate().filter_map(|(rank, seen)| Some((rank, (*seen)?)));
        let mut seen: Vec<_> = seen.collect();
        seen.sort_by_key(|(_, seen)| seen.at);
        let has_one_come = self.standings.iter().any(|standing| *standing != Standing::Absent);
        let mut verdict = Verdict::Fine;
        for (rank, seen) in seen {
            let has_failed = match self.standings[rank] {
                // Others wait for it.
                Standing::Absent => !seen.status.success() || has_one_come,
                Standing::Ended { .. } => true,
                Standing::Here if seen.status.success() => {
                    if !seen.is_old {
                        verdict = Verdict::Open;
                    }
                    false
                }
                Standing::Here | Standing::Done => !seen.status.success(),
            };
            if !has_failed {
                continue;
            }
            let why = self.failure.clone().map(|why| Blame::NotBegun { why, rank });
            match why.or_else(|| self.cause(rank, seen.is_old)) {
                Some(blame) => return Verdict::Failed(blame),
                None => verdict = Verdict::Open,
            }
        }
        verdict
    }

    /// What has made a process fail. None if that is not known yet, and may be soon.
    fn cause(&self, rank: usize, is_old: bool) -> Option<Blame> {
        let first = self.first_ended.unwrap_or(rank);
        let mut at = rank;
        // Each process names another at the most, and a circle says nothing.
        for step in 0.. {
            if step > self.ends.len() {
                at = first;
                break;
            }
            let next = match self.standings[at] {
                Standing::Ended { after: Some(other) } => other,
                Standing::Ended { after: None } | Standing::Done => first,
                // It has ended a moment ago, or will end.
                Standing::Here if !is_old => return None,
                Standing::Here | Standing::Absent => at,
            };
            if next == at {
                break;
            }
            at = next;
        }
        match self.ends[at] {
            Some(seen) if self.standings[at] == Standing::Done && seen.status.success() => {
                Some(Blame::Process(rank))
            }
            Some(_) => Some(Blame::Process(at)),
            None if is_old => Some(Blame::Lost { rank, other: at }),
            None => None,
        }
    }
}
