//! The table of opcodes: what each packet is, which headers it has, and which payload it may carry.
//!
//! The specification leaves the opcodes from 0xC0 on to manufacturers. Those used here are extensions
//! of ours, which are sent only to peers that offered to take them.

use super::extensions::Layout;
use crate::fields::ByByte;

/// The transport service that a packet belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Service {
    /// The reliable connection service.
    Rc,
    /// The unreliable connection service.
    Uc,
    /// The unreliable datagram service.
    Ud,
    /// Congestion notification, which belongs to no transport service.
    Cnp,
}

/// The operation that a packet requests or answers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// A send, with data for a posted receive.
    Send,
    /// An RDMA write, with data for the receiver's memory.
    Write,
    /// A request for data of the receiver's memory (RDMA read).
    ReadRequest,
    /// The data that answers an RDMA read.
    ReadResponse,
    /// An acknowledgement, or a NAK.
    Acknowledge,
    /// An acknowledgement of an atomic operation, with the old value.
    AtomicAcknowledge,
    /// An atomic compare and swap: replaces a word if it is as expected.
    CompareSwap,
    /// An atomic fetch and add: adds to a word.
    FetchAdd,
    /// A congestion notification packet (CNP).
    CongestionNotification,
    /// Any of the others, encrypted.
    Encrypted,
}

/// The position of a packet in its message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Position {
    /// The first packet of several.
    First,
    /// A packet that is neither the first nor the last.
    Middle,
    /// The last packet of several.
    Last,
    /// The only packet of its message.
    Only,
}

/// The rule for how many bytes of payload a packet must have.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PayloadRule {
    /// The packet has no payload.
    None,
    /// Exactly the path MTU, since more packets of the message follow.
    Mtu,
    /// From one byte up to the path MTU, since other packets of the message came before.
    Rest,
    /// From zero bytes up to the path MTU.
    Any,
    /// Sixteen bytes of zero, which a congestion notification carries.
    Sixteen,
}

impl PayloadRule {
    /// Whether a payload of `len` bytes obeys the rule on a path of this MTU.
    #[inline]
    pub const fn allows(self, len: usize, mtu: usize) -> bool {
        match self {
            Self::None => len == 0,
            Self::Mtu => len == mtu,
            Self::Rest => len >= 1 && len <= mtu,
            Self::Any => len <= mtu,
            Self::Sixteen => len == 16,
        }
    }
}

/// A row of the opcode table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpcodeInfo {
    /// The transport service that the packet belongs to.
    pub service: Service,
    /// The operation that the packet requests or answers.
    pub operation: Operation,
    /// The position of the packet in its message.
    pub position: Position,
    /// The extension headers that follow the BTH.
    pub layout: Layout,
    /// The rule for the length of the payload.
    pub payload: PayloadRule,
    /// Whether the packet belongs to a message that consumes a posted receive: every packet of a
    /// send does, and of a write the packet with its immediate data or metadata.
    pub needs_receive: bool,
}

impl OpcodeInfo {
    /// Whether the packet answers a request, and so is for the requester's side of a queue pair.
    #[inline]
    pub const fn is_response(&self) -> bool {
        matches!(
            self.operation,
            Operation::ReadResponse | Operation::Acknowledge | Operation::AtomicAcknowledge
        )
    }

    /// Whether the packet begins a message.
    #[inline]
    pub const fn begins(&self) -> bool {
        matches!(self.position, Position::First | Position::Only)
    }

    /// Whether the packet ends a message.
    #[inline]
    pub const fn ends(&self) -> bool {
        matches!(self.position, Position::Last | Position::Only)
    }
}

macro_rules! opcodes {
    ($($name:ident = $code:literal:
        $service:ident $operation:ident $position:ident, $layout:ident, $payload:ident $(, $receive:ident)?;)+) => {
        /// The operation code of a packet.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        #[allow(missing_docs, reason = "the names are the specification's, the table says the rest")]
        pub enum Opcode { $($name = $code,)+ }

        impl Opcode {
            /// Every opcode, in the order of their codes.
            pub const ALL: &[Self] = &[$(Self::$name,)+];
        }

        /// Opcodes by their code, for parsing.
        static BY_CODE: ByByte<Option<Opcode>> = {
            let mut table = [None; 256];
            $(table[$code] = Some(Opcode::$name);)+
            ByByte(table)
        };

        const INFO: [OpcodeInfo; 256] = {
            let absent = OpcodeInfo {
                service: Service::Cnp,
                operation: Operation::CongestionNotification,
                position: Position::Only,
                layout: Layout::None,
                payload: PayloadRule::None,
                needs_receive: false,
            };
            let mut table = [absent; 256];
            $(table[$code] = OpcodeInfo {
                service: Service::$service,
                operation: Operation::$operation,
                position: Position::$position,
                layout: Layout::$layout,
                payload: PayloadRule::$payload,
                needs_receive: false $(|| opcodes!(@ $receive))?,
            };)+
            table
        };
    };
    (@ receive) => { true };
}

opcodes! {
    RcSendFirst              = 0x00: Rc Send First, None, Mtu, receive;
    RcSendMiddle             = 0x01: Rc Send Middle, None, Mtu, receive;
    RcSendLast               = 0x02: Rc Send Last, None, Rest, receive;
    RcSendLastImmediate      = 0x03: Rc Send Last, Imm, Rest, receive;
    RcSendOnly               = 0x04: Rc Send Only, None, Any, receive;
    RcSendOnlyImmediate      = 0x05: Rc Send Only, Imm, Any, receive;
    RcWriteFirst             = 0x06: Rc Write First, Reth, Mtu;
    RcWriteMiddle            = 0x07: Rc Write Middle, None, Mtu;
    RcWriteLast              = 0x08: Rc Write Last, None, Rest;
    RcWriteLastImmediate     = 0x09: Rc Write Last, Imm, Rest, receive;
    RcWriteOnly              = 0x0A: Rc Write Only, Reth, Any;
    RcWriteOnlyImmediate     = 0x0B: Rc Write Only, RethImm, Any, receive;
    RcReadRequest            = 0x0C: Rc ReadRequest Only, Reth, None;
    RcReadResponseFirst      = 0x0D: Rc ReadResponse First, Aeth, Mtu;
    RcReadResponseMiddle     = 0x0E: Rc ReadResponse Middle, None, Mtu;
    RcReadResponseLast       = 0x0F: Rc ReadResponse Last, Aeth, Rest;
    RcReadResponseOnly       = 0x10: Rc ReadResponse Only, Aeth, Any;
    RcAcknowledge            = 0x11: Rc Acknowledge Only, Aeth, None;
    RcAtomicAcknowledge      = 0x12: Rc AtomicAcknowledge Only, AethAtomicAck, None;
    RcCompareSwap            = 0x13: Rc CompareSwap Only, Atomic, None;
    RcFetchAdd               = 0x14: Rc FetchAdd Only, Atomic, None;
    RcSendLastInvalidate     = 0x16: Rc Send Last, Ieth, Rest, receive;
    RcSendOnlyInvalidate     = 0x17: Rc Send Only, Ieth, Any, receive;
    UcSendFirst              = 0x20: Uc Send First, None, Mtu, receive;
    UcSendMiddle             = 0x21: Uc Send Middle, None, Mtu, receive;
    UcSendLast               = 0x22: Uc Send Last, None, Rest, receive;
    UcSendLastImmediate      = 0x23: Uc Send Last, Imm, Rest, receive;
    UcSendOnly               = 0x24: Uc Send Only, None, Any, receive;
    UcSendOnlyImmediate      = 0x25: Uc Send Only, Imm, Any, receive;
    UcWriteFirst             = 0x26: Uc Write First, Reth, Mtu;
    UcWriteMiddle            = 0x27: Uc Write Middle, None, Mtu;
    UcWriteLast              = 0x28: Uc Write Last, None, Rest;
    UcWriteLastImmediate     = 0x29: Uc Write Last, Imm, Rest, receive;
    UcWriteOnly              = 0x2A: Uc Write Only, Reth, Any;
    UcWriteOnlyImmediate     = 0x2B: Uc Write Only, RethImm, Any, receive;
    UdSendOnly               = 0x64: Ud Send Only, Deth, Any, receive;
    UdSendOnlyImmediate      = 0x65: Ud Send Only, DethImm, Any, receive;
    Cnp                      = 0x81: Cnp CongestionNotification Only, None, Sixteen;
    RcWriteLastMetadata      = 0xC0: Rc Write Last, Metadata, Rest, receive;
    RcWriteOnlyMetadata      = 0xC1: Rc Write Only, RethMetadata, Any, receive;
    RcAcknowledgeSelective   = 0xC2: Rc Acknowledge Only, AethReport, Any;
    Encrypted                = 0xC3: Rc Encrypted Only, None, Any;
}

impl Opcode {
    /// Returns the opcode of a code on the wire, if the code has a meaning.
    #[inline]
    pub fn from_code(code: u8) -> Option<Self> {
        *BY_CODE.of(code)
    }

    /// Returns the code on the wire.
    #[inline]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the opcode of the unreliable connection service that corresponds to one of the
    /// reliable connection service, if there is one: for sends and writes.
    #[inline]
    pub fn unreliable(self) -> Option<Self> {
        let info = self.info();
        let both = matches!(info.operation, Operation::Send | Operation::Write);
        let class = 0x20;
        BY_CODE.of(self.code() | class).filter(|_| both && self.code() < class)
    }

    /// Returns the opcode's row of the table.
    #[inline]
    pub const fn info(self) -> &'static OpcodeInfo {
        static TABLE: ByByte<OpcodeInfo> = ByByte(INFO);
        TABLE.of(self as u8)
    }

    /// Returns the extension headers that follow the BTH.
    #[inline]
    pub const fn layout(self) -> Layout {
        self.info().layout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_opcode_is_found_by_its_code_and_no_other_code_is() {
        let known = (0..=255).filter_map(Opcode::from_code).collect::<Vec<_>>();
        assert_eq!(known, Opcode::ALL);
        assert!(known.iter().all(|&op| Opcode::from_code(op.code()) == Some(op)));
    }

    #[test]
    fn the_class_is_in_the_top_three_bits() {
        for &op in Opcode::ALL {
            let class = match op.info().service {
                Service::Rc
                    if op == Opcode::Encrypted
                        || matches!(
                            op.layout(),
                            Layout::Metadata | Layout::RethMetadata | Layout::AethReport
                        ) =>
                {
                    0xC0
                }
                Service::Rc => 0x00,
                Service::Uc => 0x20,
                Service::Ud => 0x60,
                Service::Cnp => 0x80,
            };
            assert_eq!(op.code() & 0xE0, class, "{op:?}");
        }
    }

    #[test]
    fn a_payload_obeys_the_place_of_its_packet() {
        let rule = |op: Opcode, len| op.info().payload.allows(len, 1024);
        assert!(rule(Opcode::RcSendFirst, 1024) && !rule(Opcode::RcSendFirst, 1023));
        assert!(rule(Opcode::RcWriteLast, 1) && !rule(Opcode::RcWriteLast, 0));
        assert!(rule(Opcode::UdSendOnly, 0) && !rule(Opcode::UdSendOnly, 1025));
        assert!(!rule(Opcode::RcAcknowledge, 4));
    }
}
