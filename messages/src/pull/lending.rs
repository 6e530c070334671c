//! The sending side: a long body is registered, and described for the receiver.

use doorbell_verbs::{Domain, Lent, RegisterError};

use crate::body::Body;
use crate::wire::{MOST_PIECES, describe};

/// A body that the receiver may read until this is dropped.
#[derive(Debug)]
pub struct Lending {
    _pieces: Vec<Lent>,
}

/// Lends a body to peers, and returns its encoded [`Description`](crate::wire::Description), too.
/// If `tells_addresses`, peers of this machine are told where in this process the body is.
///
/// # Errors
/// Returns an error when the NIC has as many registrations as it may have.
pub fn lend(
    domain: &Domain,
    body: Body,
    tells_addresses: bool,
) -> Result<(Lending, Vec<u8>), RegisterError> {
    let body = match body.pieces().len() {
        ..=MOST_PIECES => body,
        _ => Body::from(body.joined()),
    };
    let (mut pieces, mut description) = (Vec::new(), Vec::new());
    for piece in body.pieces() {
        let lent = domain.lend(piece.clone())?;
        let range = lent.range();
        let address = tells_addresses.then(|| piece[range.clone()].as_ptr().addr() as u64);
        let memory = (lent.remote(), address);
        describe(&mut description, &piece[..range.start], memory, &piece[range.end..]);
        pieces.push(lent);
    }
    Ok((Lending { _pieces: pieces }, description))
}
