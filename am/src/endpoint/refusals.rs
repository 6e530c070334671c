//! Errors of connecting, as the steps of a connection meet them.

use std::error::Error;

use doorbell_verbs::Name;

use crate::error::{CallError, ConnectError, OpenError, Unwelcome};
use crate::wire::{Refusal, Tag};

/// The error of a peer for which there is no room here, or no endpoint any more.
pub(super) fn no_room(name: &Name, why: OpenError) -> ConnectError {
    let name = name.to_string();
    match why {
        OpenError::Closed | OpenError::RuntimeEnded => ConnectError::Closed { name },
        why => ConnectError::NoRoom { name, why: Box::new(why) },
    }
}

/// The error of a peer that has not answered a question.
pub(super) fn lost(name: &Name, why: CallError) -> ConnectError {
    ConnectError::Lost { name: name.to_string(), why: Box::new(why) }
}

/// Returns whether a question was not answered because its time was over.
pub(super) fn was_late(why: &(dyn Error + Send + Sync + 'static)) -> bool {
    matches!(why.downcast_ref::<CallError>(), Some(CallError::Deadline { .. }))
}

/// The error of a program that answers, and is no endpoint of Active Messages.
pub(super) fn no_endpoint(name: &Name) -> ConnectError {
    unwelcome(name, Unwelcome::OtherKind("Active Messages"))
}

/// The error of a peer that does not admit what this side has shown.
pub(super) fn not_admitted(name: &Name, shown: Option<Tag>) -> ConnectError {
    unwelcome(name, Unwelcome::NotAdmitted { shown: shown.map(|tag| tag.to_string()) })
}

/// The error of a peer that has not proved that it knows a tag.
pub(super) fn unproved(name: &Name, tag: Tag) -> ConnectError {
    unwelcome(name, Unwelcome::Unproved { tag: tag.to_string() })
}

pub(super) fn unwelcome(name: &Name, why: Unwelcome) -> ConnectError {
    ConnectError::Unwelcome { name: name.to_string(), why }
}

/// Returns the error of a peer that did not connect.
pub(super) fn refused(name: &Name, shown: Option<Tag>, why: ConnectError) -> ConnectError {
    let ConnectError::Refused { ref private, .. } = why else { return why };
    match Refusal::from_private(private) {
        Some(Refusal::Tag) => not_admitted(name, shown),
        Some(refusal) => unwelcome(name, Unwelcome::Refused(refusal.text())),
        None => why,
    }
}
