//! Questions of peers' endpoints, which no handler of the program sees.

use std::sync::Arc;

use super::Dispatcher;
use crate::arguments::Room;
use crate::error::Undeliverable;
use crate::link::{Link, To};
use crate::receives::Arrival;
use crate::wire::{Ask, Content, SYSTEM, proof_of_words, words_of_memory};

impl Dispatcher {
    /// Answers the question of another endpoint.
    #[cold]
    pub(super) fn answer_question(&mut self, link: &Arc<Link>, arrival: &Arrival) {
        let mut room = Room::new();
        let (words, payload) = (room.read(arrival.words()), arrival.payload());
        let to = To { handler: SYSTEM, call: arrival.header.call };
        let reply = |words: &[u64], payload: &[u8]| {
            link.reply_to_question(to, Content { words, payload });
        };
        let table = self.tables.get(link.endpoint.number).and_then(Option::as_ref);
        match (words.first().and_then(|&ask| Ask::from_word(ask)), table) {
            (Some(Ask::Compare), Some(handlers)) => {
                let difference = handlers.differs(payload).map(|found| found.to_bytes());
                reply(&[], difference.as_deref().unwrap_or_default());
            }
            (Some(Ask::Show), _) if matches!(words.len(), 1 | 3) => {
                let proof = words.get(1..).and_then(proof_of_words);
                let admitted = link.admit_anew(proof);
                let segment = words_of_memory(link.offered_segment());
                reply(if admitted { &segment[..] } else { &[] }, &[]);
            }
            (Some(Ask::Recall), _) => {
                let count = link.send_side().yield_credits() as u64;
                reply(&[count], &[]);
            }
            (Some(Ask::Lend), _) => reply(&[link.grant_segment().into()], &[]),
            (Some(Ask::Names), _) => {
                let known = words.get(1).map_or(usize::MAX, |&known| known as usize);
                let names = &link.endpoint.names;
                let more = names.get(known..).unwrap_or_default();
                reply(&[names.len() as u64], &more[..more.len().min(link.longest())]);
            }
            (Some(Ask::Close), _) => {
                // Before the answer: what other threads send meanwhile may come behind it.
                link.peer_closes();
                reply(&[], &[]);
            }
            (Some(Ask::GiveUp), _) => {
                link.give_up_calls(words.get(1..).unwrap_or_default());
                reply(&[], &[]);
            }
            (Some(Ask::Leave), _) => reply(&[link.usage.is_asked().into()], &[]),
            _ => link.give_back(arrival.header, Undeliverable::NoHandler, &[]),
        }
    }
}
