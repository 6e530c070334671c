//! Errors of mapping peers.

use doorbell_verbs::ConnectError;
use thiserror::Error;

use super::call::CallError;
use super::open::OpenError;
use crate::name::NameError;
use crate::wire::Tag;

/// The error of a peer that was not mapped.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MapError {
    /// The peer was not reached, or its connection manager refuses.
    #[error("mapping {name}: it can't be connected to")]
    Connect {
        /// The name of the peer.
        name: String,
        /// The error of the connection.
        #[source]
        why: ConnectError,
    },
    /// The endpoint here has no room for another peer.
    #[error("mapping {name}: this endpoint has no room for another peer")]
    NoRoom {
        /// The name of the peer.
        name: String,
        /// The resource that is used up.
        #[source]
        why: OpenError,
    },
    /// The peer's endpoint refuses this one.
    #[error("mapping {name}: its endpoint refuses: {why}")]
    Refused {
        /// The name of the peer.
        name: String,
        /// The reason that the peer gave.
        why: &'static str,
    },
    /// The peer's endpoint does not admit the tag that was shown, or a peer that shows none, or
    /// anybody.
    #[error(
        "mapping {name}: its endpoint does not admit {}: if it wants a tag, map it with that one; if it \
         admits nobody, or others, have it admit this side (`EndpointConfig::admits`, \
         `Endpoint::set_admits`)",
        shown.map_or_else(|| "a peer without a tag".to_owned(), |tag| tag.to_string())
    )]
    Tag {
        /// The name of the peer.
        name: String,
        /// The tag that this side has shown, if any.
        shown: Option<Tag>,
    },
    /// What answers there does not know the tag by which it was mapped, though it is the tag that
    /// this endpoint demands of its own peers. So it is none of them, whatever it is.
    #[error(
        "mapping {name}: what answers there has not proved that it knows {tag}, which this endpoint \
         demands of its peers: it is another program, or an endpoint that demands no tag; have it \
         demand the same (`EndpointBuilder::tag`)"
    )]
    Unproved {
        /// The name of the peer.
        name: String,
        /// The tag by which the peer was mapped.
        tag: Tag,
    },
    /// The text names no endpoint.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The program that answers at that address is no endpoint.
    #[error("mapping {0}: what answers there is no endpoint of Active Messages of this version")]
    NoEndpoint(String),
    /// A peer is mapped at the place already.
    #[error(
        "mapping {name}: place {index} is taken by {}: unmap that first, or take another place",
        if .there == .name { "this same peer" } else { .there.as_str() }
    )]
    Taken {
        /// The peer that was to be mapped.
        name: String,
        /// The index of the place.
        index: usize,
        /// The peer that is mapped there.
        there: String,
    },
    /// The translation table has no such place.
    #[error(
        "mapping {name} at place {index}: this endpoint has the places below {most}: configure more of \
         them (`EndpointConfig::places`), or take one of these"
    )]
    Place {
        /// The peer that was to be mapped.
        name: String,
        /// The index of the place.
        index: usize,
        /// The number of places.
        most: usize,
    },
    /// The two sides have different handlers of the same index.
    #[error(
        "mapping {name}: the endpoints' handlers differ: at {index} of the {table} it has `{there}`, and \
         this side another, or one with other arguments: both must declare the same"
    )]
    Handlers {
        /// The name of the peer.
        name: String,
        /// The name of the table: `requests` or `replies`.
        table: &'static str,
        /// The index of the handlers that differ.
        index: u16,
        /// The name of the peer's handler.
        there: String,
    },
    /// The peer has gone, or does not answer what endpoints ask each other, before it was mapped.
    #[error("mapping {name}: it was connected to, and then lost")]
    Lost {
        /// The name of the peer.
        name: String,
        /// The error of the question that the peer did not answer.
        #[source]
        why: CallError,
    },
}
