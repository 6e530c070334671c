//! What a connection manager has seen, above all what it repeated, refused and gave up.

/// Counts since the manager was made. Every datagram that arrives is counted among the received or
/// the malformed, and once more where it was not simply taken.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct Counters {
    /// Messages taken from the driver, malformed ones not among them.
    pub received: u64,
    /// Datagrams given to the driver.
    pub sent: u64,
    /// Messages said again because nothing was heard.
    pub resent: u64,
    /// Datagrams lost because [too many](super::Config::outgoing) waited to be sent.
    pub crowded_out: u64,

    /// Dropped: not a message of the connection manager's.
    pub malformed: u64,
    /// Dropped: about a connection, or for a service, of another process.
    pub of_others: u64,
    /// Messages of a connection that isn't there: answered where the standard has an answer.
    pub unknown: u64,
    /// Dropped: of a kind that is not served here, or one that the connection's state has no use
    /// for.
    pub stray: u64,
    /// Messages that had been taken before: answered again where the standard has an answer.
    pub duplicates: u64,

    /// Requests refused: nobody listens to the service.
    pub no_such_service: u64,
    /// Requests refused: they ask for what is not served here.
    pub unsupported: u64,
    /// Requests refused: all connections are taken.
    pub table_full: u64,
    /// Requests dropped, so that the peer asks again: the listener's backlog was full.
    pub backlog_full: u64,
    /// Requests dropped, so that the peer asks again: there were as many half-open connections as
    /// there may be, or they took what was left of the table.
    pub half_open_full: u64,
    /// Half-open connections that gave their places to newer requests.
    pub crowded: u64,
    /// Requests and replies that claim the name or the queue pair of another connection: dropped,
    /// so that the peer repeats them while that is verified, or while the numbers rest.
    pub claims: u64,
    /// Requests and replies refused: they claim the name or the queue pair of a connection whose
    /// peer still answered when it was asked.
    pub stale: u64,

    /// Connections that stood.
    pub established: u64,
    /// Connections that were asked of a closed port, as the system of its host said.
    pub closed_ports: u64,
    /// Connections that peers refused.
    pub refused: u64,
    /// Connections given up because the peer, or the program, did not answer.
    pub timed_out: u64,
}
