//! What a queue pair is told at each transition of its state: its rights, its peer, and how it
//! sends.

use std::time::Duration;

use crate::encap::Path;
use crate::nic::protection::rights::Rights;
use crate::wire::{CaGuid, PathMtu, Pkey, Psn, Qkey, Qpn, RnrTimer};

/// A transition of a queue pair to another state, with what it needs to know there. The transition
/// back to [`State::Reset`](crate::nic::State::Reset) has a function of its own:
/// [`Nic::reset`](crate::nic::Nic::reset).
#[derive(Debug)]
pub enum Change {
    /// Lets the queue pair take receives, and says what its peer may do with this side's memory.
    Init {
        /// The rights of the peer, which hold as far as the registration of the memory allows it,
        /// too.
        rights: Rights,
        /// The partition that the queue pair belongs to.
        pkey: Pkey,
    },
    /// Lets the queue pair receive from a peer.
    ReadyToReceive(Box<Connection>),
    /// Lets a queue pair without a connection receive datagrams.
    ReadyForDatagrams {
        /// The Q_Key that datagrams must name.
        qkey: Qkey,
        /// The most payload that a packet carries.
        mtu: PathMtu,
    },
    /// Lets the queue pair send, and says how it retries.
    ReadyToSend(Sending),
    /// Lets the queue pair finish what was begun and begin nothing more.
    Drain,
    /// Lets the queue pair begin requests again after draining.
    Resume,
    /// Breaks the queue pair, so that everything posted is flushed.
    Error,
}

/// The most reads and atomic operations that are under way at a time by default, as many as
/// adapters take.
const MOST_READS: u8 = 16;

/// Describes the peer of a queue pair, and how this side responds to it.
#[derive(Debug)]
pub struct Connection {
    /// The number of the peer's queue pair.
    pub peer: Qpn,
    /// The GUID that tells the peer's NIC from others at its host, and from what may take its place
    /// there: the connection manager [knows it](crate::cm::ConnectionManager::peer). Without a
    /// GUID, nothing that comes by another connection counts as a sign of life of this peer.
    pub peer_guid: Option<CaGuid>,
    /// The path to the peer.
    pub path: Path,
    /// The most payload that a packet carries.
    pub mtu: PathMtu,
    /// The peer's first sequence number.
    pub expected: Psn,
    /// How long the peer is told to wait when no receive is posted.
    pub not_ready: RnrTimer,
    /// After how many packets to send an acknowledgement that was not asked for; each KiB of a
    /// packet counts as one more packet.
    pub ack_every: u16,
    /// The longest that an acknowledgement which was not asked for is delayed. Each sixteenth of
    /// this time the NIC looks whether the peer has fallen silent, and if so, acknowledges.
    pub ack_delay: Duration,
    /// Whether acknowledgements say how many receives are posted.
    pub credits: bool,
    /// The most reads and atomic operations that the peer may have under way at a time.
    pub reads: u8,
    /// Whether this queue pair has offered to take [metadata](crate::nic::Attachment::Metadata) with a
    /// write. Otherwise, a write with metadata is an invalid request.
    pub metadata: bool,
    /// Whether packets from beyond a missing one are kept until that has come, and acknowledgements
    /// say which they are. Both sides must have agreed on it.
    pub selective: bool,
}

impl Connection {
    /// Makes a connection with customary settings: it acknowledges every 32 short packets or 7 of 4
    /// KiB, or when the peer has been silent for 25 to 50 µs, or after 400 µs; it says how many
    /// receives are posted; and it takes metadata, and 16 reads and atomic operations at a time. It
    /// goes back to what is missing.
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
            selective: false,
        }
    }
}

/// How a queue pair sends, and how it retries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sending {
    /// The first sequence number of this side.
    pub first: Psn,
    /// The most packets that are unacknowledged at a time.
    pub window: u32,
    /// The retransmission time-out as long as nothing is known of the path, from 200 µs to 4 s.
    /// What is learned of the path replaces it, until the path falls silent: then it is doubled
    /// with each try.
    pub timeout: Duration,
    /// The longest that the peer delays an acknowledgement that nobody asked for: its
    /// [`ack_delay`](Connection::ack_delay).
    pub peer_delay: Duration,
    /// How often to send again without an acknowledgement before giving up.
    pub retries: u8,
    /// The shortest time without progress after which the peer is given up, however often a packet
    /// was sent again: a peer in software may not have had a processor.
    pub patience: Duration,
    /// How often to send again to a peer that has no receive posted; 7 means without end.
    pub rnr_retries: u8,
    /// Whether to ask for an acknowledgement of each message, as standard peers require.
    pub ask_each: bool,
    /// The most reads and atomic operations under way at a time: no more than the peer takes.
    pub reads: u8,
    /// Whether the peer takes [metadata](crate::nic::Attachment::Metadata) with a write.
    pub metadata: bool,
    /// Whether the peer [keeps](Connection::selective) packets from beyond a missing one, so that
    /// only what is missing is sent again.
    pub selective: bool,
    /// Whether the queue pair slows down where its packets wait in queues, or switches mark them. A
    /// peer that [keeps](Self::selective) packets reports both, and packets to it say that they may
    /// be marked. Other peers may send congestion notifications (CNPs).
    pub congestion: bool,
    /// Whether packets say that they may be marked even if the peer does not report marks. It may
    /// send notifications instead, as adapters do. Where it doesn't, marked packets slow nobody down.
    pub ecn: bool,
    /// By how many UDP source ports packets may go to a peer that [keeps](Self::selective) packets,
    /// from 1 to 16: routers choose by them among routes of equal cost, and routes that are
    /// congested or dead are avoided. It has an effect on paths to RoCE's own port, on devices that
    /// send from any.
    pub paths: u8,
}

impl Sending {
    /// Makes customary settings towards a peer of this implementation, which acknowledges unasked:
    /// a window of 256 packets, 7 retries, a time-out of 2 ms before anything is known, 16 reads at
    /// a time, and metadata. It goes back to what is missing.
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
            selective: false,
            congestion: false,
            ecn: false,
            paths: 1,
        }
    }

    /// Makes customary settings towards a standard peer, an adapter or the kernel's driver, which
    /// acknowledges only what it is asked to acknowledge.
    pub fn to_standard_peer(first: Psn) -> Self {
        Self { ask_each: true, metadata: false, ..Self::new(first) }
    }
}
