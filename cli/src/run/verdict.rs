//! Which process has failed first. Others fail because it has, and often end before it does.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Instant;

use doorbell_job::{Service, Standing};

/// The state of a job's processes at some time, by their ranks.
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

/// The state of a job, by the ends of its processes.
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
    /// Takes the state of the processes as it is now. The ends must have been seen before: a
    /// process tells the rendezvous why it ends before it does.
    pub fn now(ends: Vec<Option<Seen>>, service: &Service) -> Self {
        let standings = (0..ends.len()).map(|rank| service.standing(rank)).collect();
        let (first_ended, failure) = (service.first_ended(), service.failure());
        Self { ends, standings, first_ended, failure }
    }

    /// Judges the job by the ends of its processes.
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

    /// Finds the cause of a process's failure. None if the cause is not known yet, and may be soon.
    fn cause(&self, rank: usize, is_old: bool) -> Option<Blame> {
        let first = self.first_ended.unwrap_or(rank);
        let mut at = rank;
        // Each process names at most one other. If they name each other in a circle, the one that
        // ended first is blamed.
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

/// The exit status that stands for the end of a process, as shells have it.
pub fn code(ended: ExitStatus) -> u8 {
    let code = ended.code().or(ended.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: Standing = Standing::Ended { after: None };

    fn after(other: usize) -> Standing {
        Standing::Ended { after: Some(other) }
    }

    /// A job of processes each of which has ended with a status, or runs, and stands somehow with
    /// the rendezvous. The ends are all as old as each other.
    fn scene(processes: &[(Option<i32>, Standing)], is_old: bool, first: Option<usize>) -> Scene {
        let at = Instant::now();
        let seen = |code: i32| Seen { status: ExitStatus::from_raw(code << 8), at, is_old };
        Scene {
            ends: processes.iter().map(|(code, _)| code.map(seen)).collect(),
            standings: processes.iter().map(|(_, standing)| *standing).collect(),
            first_ended: first,
            failure: None,
        }
    }

    #[test]
    fn the_process_that_failed_first_is_blamed() {
        use Standing::{Absent, Done, Here};
        let failed = |rank| Verdict::Failed(Blame::Process(rank));
        let lost = |rank, other| Verdict::Failed(Blame::Lost { rank, other });
        let cases: &[(&[_], Option<usize>, [Verdict; 2])] = &[
            (&[(None, Absent), (None, Here)], None, [Verdict::Fine, Verdict::Fine]),
            (&[(Some(0), Absent), (None, Absent)], None, [Verdict::Fine, Verdict::Fine]),
            (&[(Some(0), Absent), (None, Here)], None, [failed(0), failed(0)]),
            (&[(Some(7), Absent), (None, Here)], None, [failed(0), failed(0)]),
            (&[(Some(0), Done), (Some(0), Done)], None, [Verdict::Fine, Verdict::Fine]),
            // It may be that its word that it is done has not been heard yet.
            (&[(Some(0), Here), (None, Here)], None, [Verdict::Open, Verdict::Fine]),
            (&[(Some(0), ALONE), (None, Here)], Some(0), [failed(0), failed(0)]),
            (&[(Some(3), Done), (None, Here)], None, [failed(0), failed(0)]),
            (&[(Some(3), Here), (None, Here)], None, [Verdict::Open, failed(0)]),
            // Others are seen to end before the one that failed.
            (&[(Some(1), after(1)), (None, Here)], None, [Verdict::Open, lost(0, 1)]),
            (&[(Some(1), after(1)), (Some(3), Here)], None, [Verdict::Open, failed(1)]),
            (&[(Some(1), after(1)), (Some(3), ALONE)], Some(1), [failed(1), failed(1)]),
            (&[(Some(1), after(1)), (Some(0), ALONE)], Some(1), [failed(1), failed(1)]),
            (
                &[(Some(1), after(1)), (Some(1), after(2)), (Some(3), ALONE)],
                Some(2),
                [failed(2), failed(2)],
            ),
            // A process that does not say why it ends, as another one has.
            (&[(Some(1), ALONE), (Some(3), ALONE)], Some(1), [failed(1), failed(1)]),
            (&[(Some(1), Done), (Some(3), ALONE)], Some(1), [failed(1), failed(1)]),
            (&[(Some(1), ALONE), (None, ALONE)], Some(1), [Verdict::Open, lost(0, 1)]),
            // Processes that contradict each other.
            (&[(Some(1), after(1)), (Some(1), after(0))], None, [failed(0), failed(0)]),
            (&[(Some(1), after(1)), (Some(0), Done)], None, [failed(0), failed(0)]),
        ];
        for (processes, first, expected) in cases {
            for (is_old, expected) in [false, true].into_iter().zip(expected) {
                let verdict = scene(processes, is_old, *first).verdict();
                assert_eq!(verdict, *expected, "{processes:?}, old: {is_old}");
            }
        }
    }

    #[test]
    fn the_reason_of_the_rendezvous_goes_before_the_process_that_ended_of_it() {
        let mut scene = scene(&[(Some(1), Standing::Absent), (None, Standing::Here)], false, None);
        let why = "1 of 2 processes have not come".to_owned();
        scene.failure = Some(why.clone());
        assert_eq!(scene.verdict(), Verdict::Failed(Blame::NotBegun { why, rank: 0 }));
    }
}
