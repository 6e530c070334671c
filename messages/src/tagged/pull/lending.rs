//! The sending side: a long body is registered, and described for the receiver.

use doorbell_verbs::{Domain, Lent, RegisterError};

use crate::tagged::body::Body;
use crate::tagged::wire::{describe, most_pieces};

/// A body that the receiver may read until this is dropped.
#[derive(Debug)]
pub struct Lending {
    _pieces: Vec<Lent>,
}

/// Lends a body to a peer that reads it through each of some devices, whose domains these are.
/// Returns the body's encoded [`Description`](crate::tagged::wire::Description), too. If
/// `tells_addresses`, the peer is told where in this process the body is.
///
/// # Errors
/// Returns an error when a NIC has as many registrations as it may have.
pub fn lend(
    domains: &[Domain],
    body: Body,
    tells_addresses: bool,
) -> Result<(Lending, Vec<u8>), RegisterError> {
    let body = match body.pieces().len() <= most_pieces(domains.len()) {
        true => body,
        false => Body::from(body.joined()),
    };
    let (mut pieces, mut description) = (Vec::new(), Vec::new());
    for piece in body.pieces() {
        let lent = domains.iter().map(|domain| domain.lend(piece.clone()));
        let lent = lent.collect::<Result<Vec<_>, _>>()?;
        let remote: Vec<_> = lent.iter().map(Lent::remote).collect();
        let address = tells_addresses.then(|| piece.as_ptr().addr() as u64);
        describe(&mut description, &remote, address);
        pieces.extend(lent);
    }
    Ok((Lending { _pieces: pieces }, description))
}
