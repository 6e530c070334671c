//! Which processes of a job have come, are done, or have ended.
//!
//! Each change returns what all connected processes are to be told of it; the service sends that.

use std::iter::successors;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use super::super::proof::nonce;

/// How a process of the job stands with the rendezvous.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// The process has not come.
    Absent,
    /// The process has come, and is connected.
    Here,
    /// The process has said that it is done.
    Done,
    /// The process's connection has ended, before it said that it was done.
    Ended {
        /// The process whose end it has named as the reason of its own.
        after: Option<usize>,
    },
}

/// The processes of a job, by their ranks.
#[derive(Debug)]
pub struct Roll {
    members: Vec<Option<Member>>,
    /// A random text by which this run of the job differs from all others, also of one secret.
    run: String,
    /// Whether every process has come.
    pub complete: bool,
    /// Why not all can come any more.
    pub failed: Option<String>,
    /// The last one who came without the secret: the rank that it claimed, and its address.
    pub stranger: Option<(usize, SocketAddr)>,
    /// The process whose connection was the first to end without a word, or that was the first to be
    /// named by others that each ended because of another.
    pub first_ended: Option<usize>,
    /// The processes that have named another, in this order.
    named: Vec<usize>,
}

#[derive(Debug)]
struct Member {
    card: String,
    /// The text for all others, until all processes have sent theirs.
    tells: Option<String>,
    stream: TcpStream,
    from: SocketAddr,
    standing: Standing,
    /// The process whose end it has named as the reason of its own.
    after: Option<usize>,
}

/// A process that comes, with what it says of itself.
pub struct Arrival<'a> {
    pub rank: usize,
    /// How many processes the job has.
    pub size: usize,
    pub card: &'a str,
    pub from: SocketAddr,
}

/// Why a process may not take part.
pub struct Refusal {
    pub why: String,
    /// Whether the job can't begin without it.
    pub ends_job: bool,
}

impl Roll {
    pub fn new(size: usize) -> Self {
        let members = (0..size).map(|_| None).collect();
        Self {
            members,
            run: nonce(),
            complete: false,
            failed: None,
            stranger: None,
            first_ended: None,
            named: Vec::new(),
        }
    }

    pub fn standing(&self, rank: usize) -> Standing {
        let member = self.members.get(rank).and_then(Option::as_ref);
        member.map_or(Standing::Absent, |member| member.standing)
    }

    /// The connections of all processes that are there.
    pub fn streams(&self) -> Vec<TcpStream> {
        let ended = |member: &&Member| !matches!(member.standing, Standing::Ended { .. });
        let there = self.members.iter().flatten().filter(ended);
        there.filter_map(|member| member.stream.try_clone().ok()).collect()
    }

    /// The address of this host by which a process of another host has come, if one has.
    pub fn seen_as(&self) -> Option<IpAddr> {
        let streams = self.members.iter().flatten().map(|member| &member.stream);
        let addresses = streams.filter_map(|stream| stream.local_addr().ok());
        addresses.map(|address| address.ip().to_canonical()).find(|ip| !ip.is_loopback())
    }

    /// Enters a process into the roll. Returns the cards of all if it is the last one to come.
    pub fn enter(
        &mut self,
        arrival: &Arrival<'_>,
        stream: TcpStream,
    ) -> Result<Option<String>, Refusal> {
        let Arrival { rank, size, card, from } = *arrival;
        let refused = |why, ends_job| Err(Refusal { why, ends_job });
        if let Some(why) = &self.failed {
            return refused(why.clone(), false);
        }
        let own = self.members.len();
        if size != own || rank >= size {
            let why = format!(
                "process {rank} at {from} says that the job has {size} processes, and the \
                 rendezvous that it has {own}"
            );
            return refused(why, true);
        }
        if let Some(before) = &self.members[rank] {
            let before = before.from;
            return refused(format!("process {rank} has come already, from {before}"), false);
        }
        self.members[rank] = Some(Member {
            card: card.to_owned(),
            tells: None,
            stream,
            from,
            standing: Standing::Here,
            after: None,
        });
        self.complete = self.members.iter().all(Option::is_some);
        let all = self.complete.then(|| {
            let cards = self.members.iter().flatten().map(|member| &*member.card);
            listed(&format!("cards {own} {}", self.run), cards)
        });
        Ok(all)
    }

    /// Takes what a process tells all others. Returns the texts of all if it is the last one.
    pub fn take(&mut self, rank: usize, text: &str) -> Option<String> {
        let member = self.members[rank].as_mut().filter(|_| self.complete)?;
        member.tells = Some(text.to_owned());
        if self.members.iter().flatten().any(|member| member.tells.is_none()) {
            return None;
        }
        let texts = self.members.iter_mut().flatten().filter_map(|member| member.tells.take());
        let texts: Vec<_> = texts.collect();
        let head = format!("told {}", texts.len());
        Some(listed(&head, texts.iter().map(String::as_str)))
    }

    /// Notes that a process ends because another one has ended. If processes name each other in a
    /// circle, the one that was named first is the first to have ended.
    pub fn ends_after(&mut self, rank: usize, other: usize) -> Vec<String> {
        let is_other = other != rank && other < self.members.len();
        let member =
            self.members[rank].as_mut().filter(|member| is_other && member.after.is_none());
        let Some(member) = member else { return Vec::new() };
        member.after = Some(other);
        self.named.push(rank);
        match self.circle(rank) {
            Some(first) if self.first_ended.is_none() => self.is_first(first),
            _ => Vec::new(),
        }
    }

    /// The process that was named first in a circle of processes that name each other, if `rank` is
    /// in one.
    fn circle(&self, rank: usize) -> Option<usize> {
        let after = |rank: usize| self.members[rank].as_ref().and_then(|member| member.after);
        let chain = successors(after(rank), |&at| after(at)).take(self.members.len());
        let mut circle: Vec<_> = chain.collect();
        let end = circle.iter().position(|&at| at == rank)?;
        circle.truncate(end + 1);
        after(*self.named.iter().find(|rank| circle.contains(rank))?)
    }

    /// Notes which process was the first to end.
    fn is_first(&mut self, rank: usize) -> Vec<String> {
        self.first_ended = Some(rank);
        vec![format!("first {rank}")]
    }

    /// Notes that a process is done.
    pub fn is_done(&mut self, rank: usize) -> Vec<String> {
        let Some(member) = &mut self.members[rank] else { return Vec::new() };
        member.standing = Standing::Done;
        self.over()
    }

    /// Notes that the connection of a process has ended.
    pub fn has_ended(&mut self, rank: usize) -> Vec<String> {
        let Some(member) = &mut self.members[rank] else { return Vec::new() };
        if !self.complete {
            // It has not seen the others yet, and may come again.
            self.members[rank] = None;
            return Vec::new();
        }
        let after = member.after;
        if member.standing != Standing::Here {
            if after.is_some() {
                // It waited for the others, and then heard that one had ended.
                member.standing = Standing::Ended { after };
            }
            return Vec::new();
        }
        member.standing = Standing::Ended { after };
        let mut lines = vec![format!("ended {rank}")];
        if after.is_none() && self.first_ended.is_none() {
            lines.extend(self.is_first(rank));
        }
        lines.extend(self.over());
        lines
    }

    fn over(&self) -> Vec<String> {
        let is_here = |member: &Member| member.standing == Standing::Here;
        let over = self.complete && !self.members.iter().flatten().any(is_here);
        over.then(|| "over".to_owned()).into_iter().collect()
    }

    /// Returns a text that names the processes which have not come.
    pub fn missing(&self, within: Duration) -> String {
        let of = self.members.len();
        let missing: Vec<_> = (0..of).filter(|&rank| self.members[rank].is_none()).collect();
        let named: Vec<_> = missing.iter().take(8).map(ToString::to_string).collect();
        let more = if missing.len() > named.len() { " and others" } else { "" };
        // A process that was cut off in the midst of the proof, and has come since, was no
        // stranger.
        let has_come = |rank: usize| self.members.get(rank).is_some_and(Option::is_some);
        let stranger = self.stranger.filter(|(rank, _)| !has_come(*rank));
        let stranger = stranger.map_or_else(String::new, |(rank, from)| {
            format!("; process {rank} at {from} came with another secret")
        });
        format!(
            "{} of {of} processes have not come within {within:?}: {}{more}{stranger}",
            missing.len(),
            named.join(", ")
        )
    }
}

/// A line that says which texts follow, and the texts.
fn listed<'a>(head: &str, texts: impl Iterator<Item = &'a str>) -> String {
    let mut all = head.to_owned();
    for text in texts {
        all.push('\n');
        all.push_str(text);
    }
    all
}
