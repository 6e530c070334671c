//! Reasons why a peer that was reached is no peer of an endpoint.

use thiserror::Error;

/// Why an endpoint and a peer that was reached do not go together.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum Unwelcome {
    /// The peer's endpoint refuses.
    #[error("its endpoint refuses: {0}")]
    Refused(&'static str),
    /// The peer's endpoint does not admit the tag that was shown, or a peer that shows none, or
    /// anybody.
    #[error(
        "its endpoint does not admit {}: if it wants a tag, connect with that one; if it admits \
         nobody, or others, have it admit this side (`EndpointConfig::admits`, `Endpoint::set_admits`)",
        shown.as_deref().unwrap_or("a peer without a tag")
    )]
    NotAdmitted {
        /// The tag that this side has shown, if any, as text that tells no secret.
        shown: Option<String>,
    },
    /// What answers there does not know the tag by which it was connected to, though it is the tag
    /// that this endpoint demands of its own peers. So it is none of them, whatever it is.
    #[error(
        "what answers there has not proved that it knows {tag}, which this endpoint demands of its \
         peers: it is another program, or an endpoint that demands no tag; have it demand the same \
         (`EndpointBuilder::tag`)"
    )]
    Unproved {
        /// The tag, as text that tells no secret.
        tag: String,
    },
    /// The program that answers at that address is no endpoint of this kind.
    #[error("what answers there is no endpoint of {0} of this version")]
    OtherKind(&'static str),
    /// The peer speaks another version.
    #[error(
        "it speaks version {there} of {what}, and this side version {here}: build both with the same \
         version"
    )]
    OtherVersion {
        /// The kind of endpoint.
        what: &'static str,
        /// The version of this side.
        here: u64,
        /// The version of the peer.
        there: u64,
    },
    /// The two sides have different handlers of the same index.
    #[error(
        "the endpoints' handlers differ: at {index} of the {table} it has `{there}`, and this side \
         another, or one with other arguments: both must declare the same"
    )]
    OtherHandlers {
        /// The name of the table: `requests` or `replies`.
        table: &'static str,
        /// The index of the handlers that differ.
        index: u16,
        /// The name of the peer's handler.
        there: String,
    },
}
