//! What a program may move to or share with other threads, which types decide.
//!
//! A type that must not leave its thread has an example that does not compile, in its
//! documentation.

use doorbell_verbs::{
    Batch, Buf, CompletionQueue, Connection, Datagrams, Destination, Domain, Failed, Incoming,
    Listener, Mapped, Message, Nic, QueuePair, Queues, ReceiveQueue, Region, Registered,
    RemoteMemory, SendQueue, SharedReceiveQueue, Unconnected,
};

/// Accepts types that a task may take from thread to thread.
const fn may_move<T: std::marker::Send>() {}

/// Accepts types that tasks of several threads may share.
const fn may_be_shared<T: std::marker::Send + Sync + Clone>() {}

const _: () = {
    may_be_shared::<Nic>();
    may_be_shared::<Domain>();
    may_be_shared::<Connection>();
    may_be_shared::<Registered>();
    may_be_shared::<Region>();
    may_be_shared::<RemoteMemory>();

    may_move::<QueuePair>();
    may_move::<&QueuePair>();
    may_move::<Queues>();
    may_move::<SendQueue>();
    may_move::<ReceiveQueue>();
    may_move::<SharedReceiveQueue>();
    may_move::<&SharedReceiveQueue>();
    may_move::<CompletionQueue>();
    may_move::<Datagrams>();
    may_move::<Destination>();
    may_move::<Batch<'_>>();
    may_move::<Unconnected<QueuePair>>();
    may_move::<Unconnected<Queues>>();
    may_move::<Listener>();
    may_move::<Incoming>();
    may_move::<Mapped>();
    may_move::<Message>();
    may_move::<Buf>();
    may_move::<Failed>();
};
