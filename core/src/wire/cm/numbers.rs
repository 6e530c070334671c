//! Integers and codes that only connection management uses.
//!
//! Codes are kept as the peer sent them, and a method tells what they mean. Whether a code is
//! acceptable, such as the packet rate of a path, is not for the parser to judge.

use std::fmt;
use std::time::Duration;

use super::layout::{Field, Reader, Writer, narrow_field, whole_field};
use crate::wire::integers::{narrow_integer, wire_integer};
use crate::wire::malformed::Malformed;
use crate::wire::path_mtu::PathMtu;

wire_integer! {
    /// The number of reads and atomic operations that the sender serves at a time.
    ResponderResources(u8) = "{}";
    /// The number of reads and atomic operations that the sender has under way at a time.
    InitiatorDepth(u8) = "{}";
    /// The traffic class of packets: DSCP and the two ECN bits.
    TrafficClass(u8) = "{:#04x}";
    /// The number of routers that a packet may cross.
    HopLimit(u8) = "{}";
}

narrow_integer! {
    /// The number of an end-to-end context. Reliable datagrams, which use them, do not exist, so it
    /// is zero.
    Eecn(u32, 24 bits) = "{:#08x}";
    /// The time that a connection manager may take to answer, as 4.096 µs × 2ⁿ.
    CmTimeout(u8, 5 bits) = "{}";
    /// The time to wait for an acknowledgement, as 4.096 µs × 2ⁿ. Zero means for ever.
    AckTimeout(u8, 5 bits) = "{}";
    /// The time that an adapter may take to acknowledge, as 4.096 µs × 2ⁿ.
    AckDelay(u8, 5 bits) = "{}";
    /// The number of times that a request which is not acknowledged is retried.
    RetryCount(u8, 3 bits) = "{}";
    /// The number of times that a request for which no receive was posted is retried. 7 means for
    /// ever.
    RnrRetryCount(u8, 3 bits) = "{}";
    /// The number of times that a connection manager repeats a message before it gives up.
    CmRetries(u8, 4 bits) = "{}";
    /// The code of a path MTU, see [`PathMtuCode::mtu`].
    PathMtuCode(u8, 4 bits) = "{}";
    /// The code of a path's packet rate.
    PacketRate(u8, 6 bits) = "{}";
    /// The service level of a path.
    ServiceLevel(u8, 4 bits) = "{}";
    /// The extended transport type, which counts with [`TransportService::EXTENDED`]. The value 1
    /// is XRC.
    ExtendedTransport(u8, 3 bits) = "{}";
}

/// Returns 4.096 µs × 2ⁿ for a code n of at most five bits.
const fn exponential(code: u8) -> Duration {
    Duration::from_nanos(4096 << code)
}

impl CmTimeout {
    /// Returns the code of the shortest time that is not below `duration`, or of the longest time.
    pub fn at_least(duration: Duration) -> Self {
        let mut codes = (0..Self::MAX.get()).map(Self::new);
        codes.find(|code| code.duration() >= duration).unwrap_or(Self::MAX)
    }

    /// Returns the time that the code stands for.
    pub const fn duration(self) -> Duration {
        exponential(self.get())
    }
}

impl AckTimeout {
    /// Returns the time that the code stands for, or `None` for an unlimited wait.
    pub const fn duration(self) -> Option<Duration> {
        match self.get() {
            0 => None,
            code => Some(exponential(code)),
        }
    }
}

impl AckDelay {
    /// Returns the time that the code stands for.
    pub const fn duration(self) -> Duration {
        exponential(self.get())
    }
}

impl RnrRetryCount {
    /// The code for retrying without limit.
    pub const INFINITE: Self = Self::MAX;
}

impl PathMtuCode {
    /// Returns the path MTU that the code stands for, if it has a meaning.
    pub const fn mtu(self) -> Option<PathMtu> {
        PathMtu::from_code(self.get())
    }
}

impl From<PathMtu> for PathMtuCode {
    fn from(mtu: PathMtu) -> Self {
        Self::new(mtu.code())
    }
}

/// Declares codes, some of which have names. The text of a name is the documentation of its
/// constant, and is displayed.
macro_rules! named_code {
    ($($(#[$doc:meta])* $name:ident($repr:ty, $bits:literal bits) {
        $($constant:ident = $code:literal, $text:literal;)+
    })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
        #[repr(transparent)]
        pub struct $name($repr);

        impl $name {
            /// The number of bits that the code has on the wire.
            pub const BITS: u32 = $bits;
            $(
                #[doc = concat!("The code ", $code, ": ", $text, ".")]
                pub const $constant: Self = Self($code);
            )+

            /// Takes the low bits of `code` and cuts off higher ones.
            pub const fn new(code: $repr) -> Self {
                Self(code & <$repr>::MAX >> (<$repr>::BITS - $bits))
            }

            /// Returns the code as a number.
            pub const fn get(self) -> $repr {
                self.0
            }

            /// Returns what the code means in words, if it has a name.
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
    /// The transport service type of a connection.
    TransportService(u8, 2 bits) {
        RELIABLE = 0, "reliable connection";
        UNRELIABLE = 1, "unreliable connection";
        RELIABLE_DATAGRAM = 2, "reliable datagram";
        EXTENDED = 3, "as the extended transport type says";
    }

    /// The message that an MRA or a REJ answers.
    Answered(u8, 2 bits) {
        REQ = 0, "the connection request";
        REP = 1, "the reply";
        OTHER = 2, "another message, or none";
    }

    /// The failover status of a REP: whether the alternate path is accepted.
    Failover(u8, 2 bits) {
        ACCEPTED = 0, "the alternate path is accepted";
        UNSUPPORTED = 1, "alternate paths are not supported";
        REFUSED = 2, "the alternate path is refused";
    }

    /// The reason code of a REJ.
    RejectReason(u16, 16 bits) {
        NO_QP = 1, "no queue pair is free";
        NO_EEC = 2, "no end-to-end context is free";
        NO_RESOURCES = 3, "resources are exhausted";
        TIMEOUT = 4, "no answer came in time";
        UNSUPPORTED = 5, "the request is not supported";
        INVALID_COMM_ID = 6, "the communication id is not known";
        INVALID_COMM_INSTANCE = 7, "the communication id belongs to another instance";
        INVALID_SERVICE_ID = 8, "no process serves this service ID";
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
        UNENCRYPTED = 0xD001, "its connections must be encrypted";
        NOT_TRUSTED = 0xD002, "the handshake for encryption was refused";
    }

    /// The status of a request to resolve a service ID.
    SidrStatus(u8, 8 bits) {
        VALID = 0, "the queue pair serves it";
        UNSUPPORTED_SERVICE = 1, "no process serves this service ID";
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
