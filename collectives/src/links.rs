//! What collectives need of the network below: messages between members, by tags.

use std::future::{Future, pending, ready};
use std::sync::Arc;

use bytes::Bytes;

/// Links between the members of a group, over which collectives run: over sockets or channels, say,
/// or over tagged messages, as those of the crate `doorbell-messages`.
///
/// Messages from one member to another that match the same receive are received in the order in
/// which the futures of their sends were first polled. A send may wait until the message is
/// received. No collective sends a message that the receiver does not receive, whatever else the
/// receiver waits for, and members that send to each other receive at the same time. So links need
/// no buffers of their own.
///
/// The highest bit of a tag is zero. Links that send messages of their own, about the group itself,
/// tell them by that bit.
pub trait Links: Send + Sync + 'static {
    /// The error of a message that can't be sent or received.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Returns the rank of this member.
    fn rank(&self) -> usize;

    /// Returns the number of members.
    fn size(&self) -> usize;

    /// Sends a message to another member. It is done when the body needs not be kept any more.
    /// Links that can take the message at once do so before they return the future, and not only
    /// when that is polled.
    fn send(
        &self,
        to: usize,
        tag: u64,
        body: Bytes,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Receives the first message of another member whose tag is `tag` where `mask` has ones.
    /// Returns the message's own tag and its body. Links that post receives do so before they
    /// return the future.
    fn receive(
        &self,
        from: usize,
        tag: u64,
        mask: u64,
    ) -> impl Future<Output = Result<(u64, Bytes), Self::Error>> + Send;

    /// Looks for a message of another member that has come and whose tag is `tag` where `mask` has
    /// ones. Returns the message's own tag, and leaves it. This is asked only to say more precisely
    /// what has failed; by default no message is seen.
    fn seen(&self, from: usize, tag: u64, mask: u64) -> Option<u64> {
        let _ = (from, tag, mask);
        None
    }

    /// Returns the name of a member, for errors.
    fn name(&self, rank: usize) -> String {
        format!("rank {rank}")
    }

    /// Has the group fail, because a collective has failed here, and waits until the other members
    /// know. The first failure counts. Other members are told even if the future is dropped. By
    /// default nothing happens, and other members wait for messages of this one until the links to
    /// it end.
    fn fail(&self, failure: Failure) -> impl Future<Output = ()> + Send {
        let _ = failure;
        ready(())
    }

    /// Waits until the group has failed, here or at another member. By default that never happens.
    fn failed(&self) -> impl Future<Output = Failure> + Send {
        pending()
    }
}

/// The reason why a group has failed, for all members.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The rank of the member that the failure is about.
    pub rank: usize,
    /// The event at that member, or to it, that has made the group fail.
    pub why: Arc<str>,
}
