//! What a connection manager counts, above all what it repeated, refused and gave up.

crate::counted! {
    /// Counts since the manager was made. Every datagram that arrives is counted as `received` or
    /// as `malformed`, and once more if the manager did anything else with it than take it.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    #[cfg_attr(feature = "serde", serde(default))]
    pub struct Counters {
        /// Messages that the driver handed in, malformed ones excluded.
        pub received: u64,
        /// Datagrams that the driver took to send.
        pub sent: u64,
        /// Messages sent again because no answer came in time.
        pub resent: u64,
        /// Datagrams dropped because [too many](super::Config::outgoing) waited to be sent.
        pub crowded_out: u64,

        /// Datagrams dropped because they are no connection manager's messages.
        pub malformed: u64,
        /// Messages dropped because their connection, or the service that they ask for, is another
        /// process's.
        pub of_others: u64,
        /// Messages about connections that do not exist. They are answered where the specification
        /// has an answer.
        pub unknown: u64,
        /// Messages dropped because their kind is not supported, or the connection's state has no
        /// use for them.
        pub stray: u64,
        /// Messages that had come before. They are answered again where the specification has an
        /// answer.
        pub duplicates: u64,

        /// Messages dropped because they would end an encrypted connection, and its peer has not
        /// sealed them.
        pub not_authentic: u64,

        /// Requests rejected because no process listens to the service.
        pub no_such_service: u64,
        /// Requests rejected because they ask for something that is not supported.
        pub unsupported: u64,
        /// Requests rejected because there is no room for another connection.
        pub table_full: u64,
        /// Requests dropped because the listener's backlog was full. The peer repeats them.
        pub backlog_full: u64,
        /// Requests dropped because there were as many half-open connections as are allowed, or
        /// these filled the table. The peer repeats the requests.
        pub half_open_full: u64,
        /// Half-open connections that gave their places to newer requests.
        pub crowded: u64,
        /// Requests and replies that name the communication ID or the queue pair of another
        /// connection. They are dropped while that connection's peer is asked whether it is alive,
        /// and while its identifiers are in time-wait. The sender repeats them.
        pub claims: u64,
        /// Requests and replies rejected as stale: they name the communication ID or the queue pair
        /// of a connection whose peer is still alive.
        pub stale: u64,

        /// Connections that were established.
        pub established: u64,
        /// Requests to a closed port, as the system of the peer's host reported.
        pub closed_ports: u64,
        /// Connections that peers rejected.
        pub refused: u64,
        /// Connections given up because the peer or the program did not answer.
        pub timed_out: u64,
    }
}
