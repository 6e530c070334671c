//! How far the handshake of a connection that this side requests has come.

use doorbell_core::connect::{Requesting, Session};
use doorbell_core::wire::cm::RejectReason;

/// How far the handshake of a connection that this side requests has come.
#[derive(Default)]
pub(in crate::control) enum Shaking {
    /// The connection is not to be encrypted, and so there is no handshake.
    #[default]
    Clear,
    /// The first message was sent.
    Begun(Box<dyn Requesting>),
    /// The third message was sent.
    Ended(Session),
}

/// Whether a peer's refusal means that it does not encrypt, so that it may be asked in the clear.
pub(in crate::control) fn may_be_clear(reason: RejectReason) -> bool {
    !matches!(reason, RejectReason::NOT_TRUSTED)
}
