//! Finding the places of a peer's named handlers.

use std::sync::Arc;
use std::time::Duration;

use super::question::ask_within;
use crate::error::{CallError, Called, SendError};
use crate::kinds::{Kind, LONGEST_LISTING, Missing};
use crate::link::Link;
use crate::wire::Ask;

/// Learns what the named handlers of a peer are, unless that is known. Each of the peer's answers
/// is waited for no longer than `within`, or than the endpoint's patience if there is no bound.
pub(crate) async fn learn(link: &Arc<Link>, within: Option<Duration>) -> Result<(), CallError> {
    let within = Some(within.unwrap_or(link.endpoint.config.patience));
    let mut listing = Vec::new();
    while link.names().is_none() {
        let words = [Ask::Names as u64, listing.len() as u64];
        let reply = ask_within(link, &words, &[], within).await?;
        let len = reply.words().next().and_then(|len| usize::try_from(len).ok());
        listing.extend(reply.payload());
        let Some(len) = len.filter(|len| (listing.len()..=LONGEST_LISTING).contains(len)) else {
            return Err(no_listing(link));
        };
        if listing.len() < len {
            // A peer that adds nothing would be asked again and again.
            if reply.payload().is_empty() {
                return Err(no_listing(link));
            }
            continue;
        }
        let names = link.endpoint.names_of_peer(std::mem::take(&mut listing));
        link.set_names(names.ok_or_else(|| no_listing(link))?);
    }
    Ok(())
}

#[cold]
fn no_listing(link: &Link) -> CallError {
    let call = Called::new(link.peer_text(), None, "a question between endpoints");
    CallError::NotSent { call, why: SendError::NoListing { peer: link.peer_text() } }
}

/// Returns the place of a handler in a peer's table, if the program has chosen it or it was learnt.
#[inline]
pub(crate) fn place<K: Kind>(kind: K, link: &Link) -> Option<u16> {
    match kind.named() {
        None => kind.index(),
        Some(named) => link.names()?.find(named.key),
    }
}

/// Asks the peer for the place of a handler.
#[cold]
pub(crate) async fn place_of<K: Kind>(
    kind: K,
    link: &Arc<Link>,
    within: Option<Duration>,
) -> Result<u16, CallError> {
    learn(link, within).await?;
    place(kind, link).ok_or_else(|| missing(kind, link))
}

#[cold]
fn missing<K: Kind>(kind: K, link: &Link) -> CallError {
    let (name, peer) = (kind.name(), link.peer_text());
    let call = Called::new(peer.clone(), None, name);
    let missing = link.names().map_or(Missing::Unknown(Vec::new()), |names| names.missing(name));
    let why = match missing {
        Missing::Unknown(known) => {
            let known = Some(known.into());
            SendError::NoHandler { peer, name, known }
        }
        Missing::OtherTypes(there) => {
            let (here, there) = (K::types().into(), there.into());
            SendError::OtherTypes { peer, name, here, there }
        }
    };
    CallError::NotSent { call, why }
}
