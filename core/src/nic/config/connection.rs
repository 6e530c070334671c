//! What a queue pair is told at each transition of its state.

use std::time::Duration;

use crate::encap::Path;
use crate::nic::protection::rights::Rights;
use crate::wire::{CaGuid, PathMtu, Pkey, Psn, Qkey, Qpn, RnrTimer};

/// A change of a queue pair's state, with what the new one needs to know. Back to
/// [`State::Reset`] there is a way of its own: [`Nic::reset`](crate::nic::Nic::reset).
#[derive(Debug)]
pub enum Change {
    /// To take receives, and what its peer may do with this side's memory.
    Init {
        /// What the peer may do, where the registration allows it, too.
        rights: Rights,
        /// The partition.
        pkey: Pkey,
    },
    /// To receive from a peer.
    ReadyToReceive(Box<Connection>),
    /// To receive datagrams, as a queue pair without a connection does.
    ReadyForDatagrams {
        /// The key that they must name.
        qkey: Qkey,
        /// The most payload that a packet carries.
        mtu: PathMtu,
    },
    /// To send, and how to insist.
    ReadyToSend(Sending),
    /// To finish what was begun and begin nothing.
    Drain,
    /// To begin again after draining.
    Resume,
    /// To flush everything.
    Error,
}

/// As many reads and atomic operations at a time as adapters take.
const MOST_READS: u8 = 16;

/// Who the peer is, and how this side answers.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The peer's queue pair.
    pub peer: Qpn,
    /// The GUID that tells the peer's NIC from others at its host, and from what may take its place
    /// there: the connection manager [knows it](crate::cm::ConnectionManager::peer). Without one,
    /// nothing that comes by another connection says that this peer is there.
    pub peer_guid: Option<CaGuid>,
    /// The way to it.
    pub path: Path,
    /// The most payload that a packet carries.
    pub mtu: PathMtu,
    /// The peer's first sequence number.
    pub expected: Psn,
    /// How long a peer is to wait when no receive is posted.
    pub not_ready: RnrTimer,
    /// After how many packets to acknowledge unasked; each KiB of a packet counts as one more.
    pub ack_every: u16,
    /// After how long to acknowledge unasked, at the latest. Each sixteenth of that it is looked
    /// whether the peer has fallen silent, which is answered.
    pub ack_delay: Duration,
    /// Whether acknowledgements say how many receives are posted.
    pub credits: bool,
    /// The most reads and atomic operations of the peer's at a time.
    pub reads: u8,
    /// Whether this side has offered to take [metadata](crate::nic::Attachment::Metadata) with a write.
    /// If not, it is no request.
    pub metadata: bool,
}

impl Connection {
    /// A connection with the customary answers: acknowledging every 32 short packets or 7 of 4 KiB,
    /// or when the peer is silent for 25 to 50 µs, or after 400; saying how many receives are
    /// posted, and taking 16 reads and atomic operations at a time, and metadata.
    pub fn new(peer: Qpn, path: Path, mtu: PathMtu, expected: Psn) -> Self {
        Self {
            peer,
            peer_guid: None,
            path,
            mtu,
            expected,
            not_ready: RnrTimer::at_least(Duration::from_micros(100)),
            ack_every: 32,
            ack_delay: Duration::from_micros(400),
            credits: true,
            reads: MOST_READS,
            metadata: true,
        }
    }
}

/// How a queue pair sends, and how it insists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sending {
    /// This side's first sequence number.
    pub first: Psn,
    /// The most packets that are unacknowledged at a time.
    pub window: u32,
    /// The time without an answer after which to send again, as long as nothing is known of the
    /// path; from 200 µs to 4 s. What is learned of the path replaces it, until the path falls
    /// silent: then it is doubled with each try.
    pub timeout: Duration,
    /// The longest that the peer delays an acknowledgement that nobody asked for: its
    /// [`ack_delay`](Connection::ack_delay).
    pub peer_delay: Duration,
    /// How often to send again without an answer before giving up.
    pub retries: u8,
    /// For how long the peer must have taken nothing before it is given up, however often it was
    /// tried: a peer in software may not have had a processor.
    pub patience: Duration,
    /// How often to come back to a peer without receives; 7 is for ever.
    pub rnr_retries: u8,
    /// Whether to ask for an acknowledgement of each message, as standard peers must be.
    pub ask_each: bool,
    /// The most reads and atomic operations under way at a time: no more than the peer takes.
    pub reads: u8,
    /// Whether the peer takes [metadata](crate::nic::Attachment::Metadata) with a write.
    pub metadata: bool,
}

impl Sending {
    /// The customary insistence towards a peer of this kind, which acknowledges unasked: a window
    /// of 256 packets, 7 retries, 2 ms before anything is known, 16 reads at a time, and metadata.
    pub fn new(first: Psn) -> Self {
        Self {
            first,
            window: 256,
            timeout: Duration::from_millis(2),
            peer_delay: Duration::from_micros(400),
            retries: 7,
            patience: Duration::ZERO,
            rnr_retries: 7,
            ask_each: false,
            reads: MOST_READS,
            metadata: true,
        }
    }

    /// The same towards a standard peer, an adapter or the kernel's driver, which acknowledges only
    /// what it is asked to.
    pub fn to_standard_peer(first: Psn) -> Self {
        Self { ask_each: true, metadata: false, ..Self::new(first) }
    }
}
