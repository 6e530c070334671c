//! The numbers that only connection management uses.
//!
//! Codes are kept as the peer sent them, and a method tells what they mean: whether a path may be
//! of this rate, say, is for adapters to judge, not for the one who reads the message.

use std::fmt;
use std::time::Duration;

use super::layout::{Field, Reader, Writer, narrow_field, whole_field};
use crate::wire::integers::{narrow_integer, wire_integer};
use crate::wire::malformed::Malformed;
use crate::wire::numbers::PathMtu;

wire_integer! {
    /// How many reads and atomic operations the sender takes at a time.
    ResponderResources(u8) = "{}";
    /// How many reads and atomic operations the sender has under way at a time.
    InitiatorDepth(u8) = "{}";
    /// A packet's traffic class: DSCP and the two ECN bits.
    TrafficClass(u8) = "{:#04x}";
    /// How many routers a packet may cross.
    HopLimit(u8) = "{}";
}

narrow_integer! {
    /// The number of an end-to-end context; nobody has them, and they are zero.
    Eecn(u32, 24 bits) = "{:#08x}";
    /// How long a connection manager may take to answer, as 4.096 µs × 2ⁿ.
    CmTimeout(u8, 5 bits) = "{}";
    /// How long to wait for an acknowledgement, as 4.096 µs × 2ⁿ; 0 is for ever.
    AckTimeout(u8, 5 bits) = "{}";
    /// How long an adapter may take to acknowledge, as 4.096 µs × 2ⁿ.
    AckDelay(u8, 5 bits) = "{}";
    /// How often to send again what is not acknowledged.
    RetryCount(u8, 3 bits) = "{}";
    /// How often to send again what found no receive posted; 7 is for ever.
    RnrRetryCount(u8, 3 bits) = "{}";
    /// How often a connection manager sends a message again before it gives up.
    CmRetries(u8, 4 bits) = "{}";
    /// The code of a path's MTU: see [`PathMtuCode::mtu`].
    PathMtuCode(u8, 4 bits) = "{}";
    /// The code of the rate that a path bears.
    PacketRate(u8, 6 bits) = "{}";
    /// The service level of a path.
    ServiceLevel(u8, 4 bits) = "{}";
    /// The kind of connection, where [`TransportService::EXTENDED`] refers to it; 1 is XRC.
    ExtendedTransport(u8, 3 bits) = "{}";
}

/// 4.096 µs × 2ⁿ for a code of at most five bits.
const fn exponential(code: u8) -> Duration {
    Duration::from_nanos(4096 << code)
}

impl CmTimeout {
    /// The shortest that is no shorter than `duration`, or the longest that there is.
    pub fn at_least(duration: Duration) -> Self {
        let mut codes = (0..Self::MAX.get()).map(Self::new);
        codes.find(|code| code.duration() >= duration).unwrap_or(Self::MAX)
    }

    /// The time that it stands for.
    pub const fn duration(self) -> Duration {
        exponential(self.get())
    }
}

impl AckTimeout {
    /// The time that it stands for, or nothing: then one waits for ever.
    pub const fn duration(self) -> Option<Duration> {
        match self.get() {
            0 => None,
            code => Some(exponential(code)),
        }
    }
}

impl AckDelay {
    /// The time that it stands for.
    pub const fn duration(self) -> Duration {
        exponential(self.get())
    }
}

impl RnrRetryCount {
    /// Send again without limit.
    pub const INFINITE: Self = Self::MAX;
}

impl PathMtuCode {
    /// What it stands for, if anything.
    pub const fn mtu(self) -> Option<PathMtu> {
        PathMtu::from_code(self.get())
    }
}

impl From<PathMtu> for PathMtuCode {
    fn from(mtu: PathMtu) -> Self {
        Self::new(mtu.code())
    }
}

/// Declares codes of which some have names. A name documents its constant and is displayed.
macro_rules! named_code {
    ($($(#[$doc:meta])* $name:ident($repr:ty, $bits:literal bits) {
        $($constant:ident = $code:literal, $text:literal;)+
    })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
        #[repr(transparent)]
        pub struct $name($repr);

        impl $name {
            /// How many bits it has on the wire.
            pub const BITS: u32 = $bits;
            $(
                #[doc = concat!("The code ", $code, ": ", $text, ".")]
                pub const $constant: Self = Self($code);
            )+

            /// The low bits of `code`; higher ones are cut off.
            pub const fn new(code: $repr) -> Self {
                Self(code & <$repr>::MAX >> (<$repr>::BITS - $bits))
            }

            /// The code.
            pub const fn get(self) -> $repr {
                self.0
            }

            /// What it means in words, if anything.
            pub const fn meaning(self) -> Option<&'static str> {
                match self.0 {
                    $($code => Some($text),)+
                    _ => None,
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.meaning() {
                    Some(meaning) => f.write_str(meaning),
                    None => write!(f, "unknown code {}", self.0),
                }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({}: {})"), self.0, self)
            }
        }

        narrow_field! { $name }
    )+};
}

named_code! {
    /// The kind of a connection.
    TransportService(u8, 2 bits) {
        RELIABLE = 0, "reliable connection";
        UNRELIABLE = 1, "unreliable connection";
        RELIABLE_DATAGRAM = 2, "reliable datagram";
        EXTENDED = 3, "as the extended transport type says";
    }

    /// Which message an MRA or a REJ answers.
    Answered(u8, 2 bits) {
        REQ = 0, "the connection request";
        REP = 1, "the reply";
        OTHER = 2, "another message, or none";
    }

    /// Whether a reply takes up the alternate path.
    Failover(u8, 2 bits) {
        ACCEPTED = 0, "the alternate path is accepted";
        UNSUPPORTED = 1, "alternate paths are not supported";
        REFUSED = 2, "the alternate path is refused";
    }

    /// Why a connection was refused.
    RejectReason(u16, 16 bits) {
        NO_QP = 1, "no queue pair is free";
        NO_EEC = 2, "no end-to-end context is free";
        NO_RESOURCES = 3, "resources are exhausted";
        TIMEOUT = 4, "no answer came in time";
        UNSUPPORTED = 5, "the request is not supported";
        INVALID_COMM_ID = 6, "the communication id is not known";
        INVALID_COMM_INSTANCE = 7, "the communication id belongs to another instance";
        INVALID_SERVICE_ID = 8, "nobody serves this service id";
        INVALID_TRANSPORT = 9, "the transport service type is not served";
        STALE_CONNECTION = 10, "the queue pair belongs to a stale connection";
        NO_RDC = 11, "the reliable datagram channel does not exist";
        INVALID_GID = 12, "the primary path's GID is refused";
        INVALID_LID = 13, "the primary path's LID is refused";
        INVALID_SERVICE_LEVEL = 14, "the primary path's service level is refused";
        INVALID_TRAFFIC_CLASS = 15, "the primary path's traffic class is refused";
        INVALID_HOP_LIMIT = 16, "the primary path's hop limit is refused";
        INVALID_PACKET_RATE = 17, "the primary path's packet rate is refused";
        INVALID_ALTERNATE_GID = 18, "the alternate path's GID is refused";
        INVALID_ALTERNATE_LID = 19, "the alternate path's LID is refused";
        INVALID_ALTERNATE_SERVICE_LEVEL = 20, "the alternate path's service level is refused";
        INVALID_ALTERNATE_TRAFFIC_CLASS = 21, "the alternate path's traffic class is refused";
        INVALID_ALTERNATE_HOP_LIMIT = 22, "the alternate path's hop limit is refused";
        INVALID_ALTERNATE_PACKET_RATE = 23, "the alternate path's packet rate is refused";
        CM_REDIRECT = 24, "another port's connection manager is to be asked, see the information";
        PORT_REDIRECT = 25, "another port is to be asked for, as the information says";
        INVALID_MTU = 26, "the path MTU is refused";
        INSUFFICIENT_RESPONDER_RESOURCES = 27, "the responder resources are too few";
        CONSUMER = 28, "the peer's program refused";
        INVALID_RNR_RETRY = 29, "the receiver-not-ready retry count is refused";
        DUPLICATE_COMM_ID = 30, "the communication id is in use already";
        INVALID_CLASS_VERSION = 31, "the class version is not spoken";
        INVALID_FLOW_LABEL = 32, "the primary path's flow label is refused";
        INVALID_ALTERNATE_FLOW_LABEL = 33, "the alternate path's flow label is refused";
    }

    /// What became of a request to resolve a service id.
    SidrStatus(u8, 8 bits) {
        VALID = 0, "the queue pair serves it";
        UNSUPPORTED_SERVICE = 1, "nobody serves this service id";
        REFUSED = 2, "the service refused";
        NO_QP = 3, "no queue pair is free";
        REDIRECT = 4, "another port is to be asked, as the information says";
        UNSUPPORTED_VERSION = 5, "the class version is not spoken";
    }
}

whole_field! { HopLimit InitiatorDepth ResponderResources TrafficClass }
narrow_field! {
    AckDelay AckTimeout CmRetries CmTimeout Eecn ExtendedTransport PacketRate PathMtuCode
    RetryCount RnrRetryCount ServiceLevel
}
