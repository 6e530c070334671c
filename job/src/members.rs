//! A job whose processes have met.

use std::net::IpAddr;

use crate::card::{Card, escaped, unescaped};
use crate::error::JobError;
use crate::pmi::Pmi;
use crate::rendezvous::{Joined, MOST_TEXT, Service};
use crate::sys::NoSuccess;

/// A process of a job that has met all others.
#[derive(Debug)]
pub struct Members {
    pub(crate) rank: usize,
    pub(crate) cards: Vec<Card>,
    pub(crate) key: u64,
    pub(crate) way: Way,
    pub(crate) pmi: Option<Pmi>,
    /// In process 0, if that serves the others. It ends last.
    pub(crate) service: Option<Service>,
    /// Where process 0 serves the others, and a launcher sees no more of this process than its exit
    /// status: this process must not end with success before the job does.
    pub(crate) led_by_first: Option<NoSuccess>,
}

/// How the processes hear of each other.
#[derive(Debug)]
pub(crate) enum Way {
    /// Their addresses were known, and nothing else is.
    Known(Vec<String>),
    Met(Joined),
}

impl Members {
    /// Creates the members of a job whose addresses are known in advance.
    pub(crate) fn known(rank: usize, addresses: Vec<String>) -> Self {
        let cards = vec![Card::default(); addresses.len()];
        Self {
            rank,
            cards,
            key: 0,
            way: Way::Known(addresses),
            pmi: None,
            service: None,
            led_by_first: None,
        }
    }

    /// The number of this process.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns each process's description of itself, by their ranks. The fields are empty where
    /// nothing but addresses is known.
    pub fn cards(&self) -> &[Card] {
        &self.cards
    }

    /// Returns whether all processes run on one host, and in one network namespace.
    pub fn are_on_one_machine(&self) -> bool {
        let first = &self.cards[0].machine;
        !first.is_empty() && self.cards.iter().all(|card| card.machine == *first)
    }

    /// A number that all processes of the job have. Others can't guess it, unless the job has no
    /// secret. It is zero where addresses were all that was known.
    pub fn key(&self) -> u64 {
        self.key
    }

    /// An address of this host by which other hosts of the job reach it, if one is known.
    pub fn own_ip(&self) -> Option<IpAddr> {
        let Way::Met(joined) = &self.way else { return None };
        let seen = self.service.as_ref().and_then(Service::seen_as);
        seen.or_else(|| joined.own_ip().filter(|ip| !ip.is_loopback()))
    }

    /// Tells all processes a text, for one the addresses of this process, and returns the texts of
    /// all, by their ranks, when all have told theirs. Where only addresses were known, these are
    /// what is returned.
    ///
    /// The text has at most [`MOST_TEXT`] bytes.
    ///
    /// # Errors
    /// When the text is too long, and when a process ends, or does not tell anything for as long as
    /// all may take to come.
    pub fn exchange(&self, text: &str) -> Result<Vec<String>, JobError> {
        if text.len() > MOST_TEXT {
            return Err(JobError::TooLong { len: text.len(), most: MOST_TEXT });
        }
        let joined = match &self.way {
            Way::Known(addresses) => return Ok(addresses.clone()),
            Way::Met(joined) => joined,
        };
        let told = joined.exchange(&escaped(text))?;
        let texts = told
            .into_iter()
            .enumerate()
            .map(|(rank, found)| unescaped(&found).ok_or(JobError::Card { rank, found }));
        texts.collect()
    }

    /// Reports to the rendezvous that this process ends only because another has gone, and returns
    /// the process that was the first to end, if the rendezvous knows within two seconds: the other
    /// may have ended because a third one had.
    pub fn first_ended(&self, other: usize) -> Option<usize> {
        let Way::Met(joined) = &self.way else { return None };
        let led_by_first = self.led_by_first.is_some() && self.rank > 0;
        // Process 0 takes its service with it. If it had ended because of another, the service would
        // have said so before.
        joined.first_ended(other).or((led_by_first && joined.is_lost()).then_some(0))
    }

    /// Reports to the rendezvous that this process ends only because another one has ended. A
    /// launcher learns from that which process failed first. Returns when that is noted, for at most
    /// two seconds: whoever then sees this process end is not the first to have seen an end.
    pub fn ends_after(&self, other: usize) {
        if let Way::Met(joined) = &self.way {
            joined.ends_after(other);
        }
    }

    /// Reports to the rendezvous that this process is done, and waits until all processes are.
    ///
    /// # Errors
    /// When another process ends without having said so.
    pub fn finish(mut self) -> Result<(), JobError> {
        // A launcher takes a process that says nothing for one that has failed, which it has.
        if let Way::Met(joined) = self.way {
            joined.finish()?;
        }
        self.led_by_first = None;
        let finalized = self.pmi.take().map_or(Ok(()), Pmi::finalize);
        drop(self.service.take());
        finalized
    }
}
