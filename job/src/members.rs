//! A job whose processes have met.

use crate::card::Card;
use crate::error::JobError;
use crate::pmi::Pmi;
use crate::rendezvous::{Joined, Service};

/// A process of a job that has met all others.
#[derive(Debug)]
pub struct Members {
    pub(crate) rank: usize,
    pub(crate) cards: Vec<Card>,
    pub(crate) key: u64,
    pub(crate) joined: Option<Joined>,
    pub(crate) pmi: Option<Pmi>,
    /// In process 0, if that serves the others. It ends last.
    pub(crate) service: Option<Service>,
}

impl Members {
    /// Those of a job whose addresses are known, and of which no more is.
    pub(crate) fn known(rank: usize, addresses: Vec<String>, own: &str) -> Self {
        let card = |(of, address): (usize, String)| {
            let address = if of == rank { own.to_owned() } else { address };
            let unknown = String::new();
            Card {
                address,
                host: unknown.clone(),
                machine: unknown.clone(),
                program: unknown.clone(),
                build: unknown,
            }
        };
        let cards = addresses.into_iter().enumerate().map(card).collect();
        Self { rank, cards, key: 0, joined: None, pmi: None, service: None }
    }

    /// The number of this process.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// What each process tells of itself, by their ranks.
    pub fn cards(&self) -> &[Card] {
        &self.cards
    }

    /// A number that all processes of the job have. Others can't guess it, unless the job has no
    /// secret. It is zero where addresses were all that was known.
    pub fn key(&self) -> u64 {
        self.key
    }

    /// Says that this process is done, and waits until all are.
    ///
    /// # Errors
    /// When another process ends without having said so.
    pub fn finish(mut self) -> Result<(), JobError> {
        let finished = self.joined.take().map_or(Ok(()), Joined::finish);
        // A launcher takes a process that says nothing for one that has failed, which it has.
        finished?;
        let finalized = self.pmi.take().map_or(Ok(()), Pmi::finalize);
        drop(self.service.take());
        finalized
    }
}
