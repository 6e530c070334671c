//! A job while it runs: signals are passed on to it, and it is ended when a process fails.

use std::process::ExitStatus;
use std::time::{Duration, Instant};

use anyhow::bail;
use doorbell_job::{Service, report};
use nix::sys::signal::Signal;
use nix::unistd::Pid;

use super::children::{Children, Running};
use super::descendants;
use super::guard::Launcher;
use super::signals::{self, GRACE, Signals};
use super::verdict::{Blame, Scene, Seen, Verdict, code};

/// How long the launcher waits, once a process has ended, for what explains that.
const AFTERMATH: Duration = Duration::from_secs(1);
/// How long the output of a job may take to be passed on, once its processes are killed.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How often the launcher looks whether a process has ended.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// A job that runs.
pub struct Watch<'a> {
    pub children: Children,
    pub signals: Signals,
    pub launcher: Launcher,
    pub service: &'a Service,
}

/// A job that is being ended.
struct Ending {
    status: u8,
    kill_at: Instant,
}

impl Ending {
    fn new(status: u8) -> Self {
        Self { status, kill_at: Instant::now() + GRACE }
    }
}

impl Watch<'_> {
    /// Waits for the end of all processes. Returns the exit status of the job: that of the process
    /// that has failed first, or zero.
    ///
    /// # Errors
    /// When the launcher is killed.
    pub fn wait(mut self) -> anyhow::Result<u8> {
        let mut ending = None;
        loop {
            // Signals are taken after the ends are noted and before these are judged, so that a
            // process that a signal to all has ended is not taken for one that failed.
            self.children.note_ends()?;
            self.take_signals(&mut ending);
            if self.launcher.has_ended() {
                descendants::kill_all();
                bail!("the launcher was killed, and the processes of the job are");
            }
            let is_running = self.children.are_running();
            match &ending {
                Some(Ending { status, kill_at }) => {
                    let is_over = !is_running && descendants::of(&[Pid::this()]).is_empty();
                    if is_over || Instant::now() >= *kill_at {
                        return self.end(*status);
                    }
                }
                None => match self.verdict() {
                    Verdict::Failed(blame) => ending = Some(self.give_up(&blame)),
                    Verdict::Fine if !is_running && self.has_said_all() => return Ok(0),
                    Verdict::Fine | Verdict::Open => {}
                },
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }

    /// Passes the signals on that have arrived.
    fn take_signals(&mut self, ending: &mut Option<Ending>) {
        for info in self.signals.pending().collect::<Vec<_>>() {
            let ends_job = signals::ends_job(info.si_signo);
            if !signals::is_of_terminal(&info)
                && let Ok(signal) = Signal::try_from(info.si_signo)
            {
                // Ssh gets only the signals that end it: it does not pass others on.
                self.pass_on(signal, ends_job);
            }
            if ends_job {
                ending.get_or_insert_with(|| Ending::new(128 + info.si_signo as u8));
            }
        }
    }

    /// Passes a signal on to the processes and to those that they have started. Ssh gets it only if
    /// `to_ssh`.
    fn pass_on(&self, signal: Signal, to_ssh: bool) {
        let running = self.children.all.iter().filter(|running| running.ended.is_none());
        let direct = running.filter(|running| to_ssh || !running.is_remote).map(Running::pid);
        let mut all: Vec<_> = direct.collect();
        let roots = if to_ssh { vec![Pid::this()] } else { all.clone() };
        all.extend(descendants::of(&roots));
        all.sort_unstable();
        all.dedup();
        descendants::send(signal, &all);
    }

    /// Judges the job by the ends of processes so far.
    fn verdict(&self) -> Verdict {
        let all = &self.children.all;
        if all.iter().all(|running| running.ended.is_none()) {
            return Verdict::Fine;
        }
        let ends = all.iter().map(|running| {
            let end = running.ended?;
            Some(Seen { status: end.status, at: end.at, is_old: end.at.elapsed() >= AFTERMATH })
        });
        Scene::now(ends.collect(), self.service).verdict()
    }

    /// Prints why the job has failed, and ends the processes that still run.
    fn give_up(&self, blame: &Blame) -> Ending {
        let (told, status) = self.told(blame);
        let others = if self.children.are_running() { "; the others are ended" } else { "" };
        report(&format!("doorbell: {told}{others}\n"));
        self.service.fail(&told);
        self.pass_on(Signal::SIGTERM, true);
        Ending::new(status)
    }

    /// A failure in words, and the status of the job that it makes.
    fn told(&self, blame: &Blame) -> (String, u8) {
        let named = |rank: usize| format!("process {rank} ({})", self.children.all[rank].told);
        let ended = |rank: usize| self.children.all[rank].ended.map(|end| end.status);
        let status = |rank| ended(rank).map_or(1, |status| code(status).max(1));
        let how = |rank| ended(rank).map_or_else(String::new, |status| format!(" with {status}"));
        match blame {
            Blame::NotBegun { why, rank } => {
                (format!("the processes have not found each other: {why}"), status(*rank))
            }
            Blame::Process(rank) => {
                let early = if ended(*rank).is_some_and(|status| ExitStatus::success(&status)) {
                    match self.service.standing(*rank) {
                        doorbell_job::Standing::Absent => ", and has not met the others",
                        _ => " before the job was over",
                    }
                } else {
                    ""
                };
                (format!("{} ended{}{early}", named(*rank), how(*rank)), status(*rank))
            }
            Blame::Lost { rank, other } => {
                let told = format!(
                    "{} ended{}, since it lost {}, which still runs",
                    named(*rank),
                    how(*rank),
                    named(*other)
                );
                (told, status(*rank))
            }
        }
    }

    /// Returns whether all output has been passed on.
    fn has_said_all(&self) -> bool {
        self.children.all.iter().all(|running| running.output.has_ended())
    }

    /// Kills what is left of the job, and waits for its last output, but not for long: a process
    /// that can't be killed may hold it.
    fn end(&mut self, status: u8) -> anyhow::Result<u8> {
        let left = descendants::kill_all();
        if !left.is_empty() {
            report(&format!("doorbell: the job is over{}\n", descendants::left_behind(&left)));
        }
        let until = Instant::now() + LAST_WORDS;
        while !self.has_said_all() && Instant::now() < until {
            std::thread::sleep(BETWEEN_LOOKS);
        }
        self.children.note_ends()?;
        Ok(status)
    }
}
