//! Laying packets into frames, and taking the frames apart again.

use std::sync::LazyLock;
use std::sync::atomic::AtomicU64;

use doorbell_core::encap::{Arrival, Opener, Outer, Path, PathId, Run, Segmentation, Version};
use doorbell_core::memory::words;
use doorbell_core::payload::{Payload, WordBytes};
use doorbell_core::wire::{
    EtherType, Ethernet, FlowLabel, Gid, Grh, Headers, InetChecksum, IpId, IpProtocol, Ipv4, Ipv6,
    Mac, Malformed, Opcode, Udp, UdpPort, padding,
};

use super::headers::allow;
use super::input::Input;

const ICRC_LEN: usize = 4;

/// The longest frame whose lengths IPv4 can express, Ethernet header included: a run never grows
/// beyond it, whatever memory it is given.
const LONGEST_FRAME: usize = Ethernet::LEN + u16::MAX as usize;

/// The pattern of which all payloads are stretches, as bytes and as words.
static PATTERN: LazyLock<(Vec<u8>, Vec<AtomicU64>)> = LazyLock::new(|| {
    let bytes: Vec<u8> =
        (0..1u32 << 17).map(|i| (i.wrapping_mul(0x9E37_79B1) >> 21) as u8).collect();
    let memory = bytes.chunks(8).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
    words::copy_in(&memory, 0, &bytes);
    (bytes, memory)
});

/// A packet that was pushed: its headers, and which stretch of the pattern it carries.
type Pushed = (Headers, &'static [u8]);

/// Packets along several paths, laid into frames as long as they fit.
///
/// The input is the length of the frames, how many packets each may have, the first
/// identification, what the outer headers are made of, and then the packets.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let mut memory = vec![FRESH; Outer::MAX_LEN + usize::from(input.u16())];
    let most = u32::from(input.u8());
    let mut id = IpId(input.u16());
    let paths = paths(&mut input);
    let mut opener = Opener::default();

    let mut frame: Option<Frame<'_>> = None;
    while !input.is_empty() {
        let path = &paths[usize::from(input.u8()) % paths.len()];
        let (headers, payload, in_words) = packet(&mut input);
        for attempt in 0..2 {
            let current = frame.get_or_insert_with(|| Frame::begin(path, &mut memory, id, most));
            if current.push(path, &mut memory, headers, payload, in_words) {
                break;
            }
            id.0 = id.0.wrapping_add(current.pushed.len() as u16);
            let was_empty = current.pushed.is_empty();
            let full = frame.take().expect("it was just pushed to");
            full.finish(&mut memory, &mut opener);
            // A packet that an empty frame of its own path refuses goes nowhere.
            assert!(attempt == 0 || was_empty);
        }
    }
    if let Some(last) = frame {
        last.finish(&mut memory, &mut opener);
    }
}

/// The byte that memory holds where nothing was written.
const FRESH: u8 = 0xA5;

/// A frame that is being filled, with the packets that were pushed into it.
struct Frame<'p> {
    path: &'p Path,
    run: Run,
    id: IpId,
    most: u32,
    pushed: Vec<Pushed>,
    filled: usize,
    segment: usize,
    last: usize,
}

impl<'p> Frame<'p> {
    fn begin(path: &'p Path, memory: &mut [u8], id: IpId, most: u32) -> Self {
        let (pushed, filled) = (Vec::new(), path.outer().len());
        memory.fill(FRESH);
        let run = Run::begin(path, memory, id, most);
        // Nothing could cut a run of RoCE v1.
        let most = if path.outer().version() == Version::V1 { most.min(1) } else { most };
        Self { path, run, id, most, pushed, filled, segment: 0, last: 0 }
    }

    /// Pushes a packet, and checks that it is refused when the rules say so and not otherwise.
    fn push(
        &mut self,
        path: &Path,
        memory: &mut [u8],
        headers: Headers,
        payload: &'static [u8],
        in_words: Option<WordBytes<'_>>,
    ) -> bool {
        let pad = padding(payload.len());
        let len = headers.len() + payload.len() + pad + ICRC_LEN;
        let joins = self.pushed.is_empty() || self.last == self.segment && len <= self.segment;
        let fits = joins
            && path.id() == self.path.id()
            && self.pushed.len() < self.most as usize
            && self.filled + len <= memory.len().min(LONGEST_FRAME);
        let pushed = match in_words {
            Some(words) => self.run.push(path, memory, headers, words),
            None => self.run.push(path, memory, headers, payload),
        };
        assert_eq!(pushed.is_ok(), fits);
        if fits {
            let mut headers = headers;
            headers.bth = headers.bth.with_pad(pad as u8);
            if self.pushed.is_empty() {
                self.segment = len;
            }
            self.pushed.push((headers, payload));
            (self.filled, self.last) = (self.filled + len, len);
        }
        let beyond = &memory[self.filled..];
        assert!(untouched(&beyond[..beyond.len().min(64)]), "written beyond the end");
        assert_eq!(self.run.packets() as usize, self.pushed.len());
        fits
    }

    /// Seals the frame and opens it: whole, and as segmentation cuts it.
    fn finish(self, memory: &mut [u8], opener: &mut Opener) {
        let sealed = self.run.seal(memory);
        assert_eq!((sealed.len, sealed.packets as usize), (self.filled, self.pushed.len()));
        assert!(untouched(&memory[sealed.len..]), "written beyond the end");
        let headers = self.path.outer().len();
        let cut = Segmentation { segment: self.segment as u16, headers: headers as u16 };
        assert_eq!(sealed.segmentation, (self.pushed.len() > 1).then_some(cut));
        // Whatever stands behind the frame, as Ethernet pads short ones, is not of it.
        let padded = (sealed.len + 46).min(memory.len());
        for end in [sealed.len, padded] {
            let segment = sealed.segmentation.map(|cut| cut.segment);
            match opener.open(&memory[..end], segment) {
                Ok(arrival) => compare(arrival, &self.pushed),
                Err(error) => {
                    assert!(matches!(error, Malformed::Truncated { .. }), "{error}");
                    assert!(self.pushed.is_empty());
                }
            }
        }
        let (whole, _) = Outer::parse(&memory[..sealed.len]).expect("its own headers");
        let packets = memory[headers..sealed.len].chunks(self.segment.max(1));
        for (index, (packet, pushed)) in packets.zip(&self.pushed).enumerate() {
            let alone = alone(whole.around(packet.len()), self.id.0.wrapping_add(index as u16));
            let mut frame = alone.to_bytes()[..headers].to_vec();
            frame.extend(packet);
            let arrival = opener.open(&frame, None).expect("its own headers");
            compare(arrival, std::slice::from_ref(pushed));
        }
    }
}

fn untouched(memory: &[u8]) -> bool {
    memory.iter().all(|&byte| byte == FRESH)
}

/// The headers of one packet of a run, as segmentation numbers it.
fn alone(outer: Outer, id: u16) -> Outer {
    match outer {
        Outer::V2Ipv4(ethernet, ip, udp) => {
            Outer::V2Ipv4(ethernet, Ipv4 { id: IpId(id), ..ip }, udp)
        }
        other => other,
    }
}

/// Asserts that the packets of a frame are those that were pushed into it.
fn compare(mut arrival: Arrival<'_, '_>, pushed: &[Pushed]) {
    for (headers, payload) in pushed {
        let packet = arrival.next().expect("as many as were pushed").expect("undamaged");
        assert_eq!(packet.headers, *headers);
        assert!(packet.payload == *payload, "another payload");
    }
    assert!(arrival.next().is_none(), "more than were pushed");
}

/// Draws a packet from the input: any opcode, any bits in its headers, any stretch of the pattern.
fn packet(input: &mut Input<'_>) -> (Headers, &'static [u8], Option<WordBytes<'static>>) {
    let opcode = input.choose(Opcode::ALL);
    let mut bytes = [0; Headers::MAX_LEN];
    bytes[..12].copy_from_slice(&input.array::<12>());
    bytes[0] = opcode.code();
    bytes[1] &= 0xF0; // the version
    let extensions = input.bytes(opcode.layout().len());
    bytes[12..][..extensions.len()].copy_from_slice(extensions);
    allow(opcode.layout(), &mut bytes[12..]);
    let (headers, _) = Headers::parse(&bytes)
        .expect("but for the version and what is claimed, every bit has a meaning");

    let len = usize::from(input.u16());
    let start = usize::from(input.u8());
    let (bytes, memory) = &*PATTERN;
    let words = WordBytes::new(memory, start..start + len).expect("the pattern is long enough");
    assert_eq!(words.len(), len);
    (headers, &bytes[start..start + len], (start & 1 == 1).then_some(words))
}

/// Draws a path of each encapsulation, and another that differs from the first in nothing but its
/// number and the bits of its fields.
fn paths(input: &mut Input<'_>) -> [Path; 4] {
    let [a, b] = [input.array(), input.array()];
    let fields = input.u8();
    let label = FlowLabel::new(u32::from_le_bytes(input.array()));
    let ethernet = |ethertype| Ethernet { destination: Mac(a), source: Mac(b), ethertype };
    let ipv4 = |tos| Ipv4 {
        tos,
        total_length: 0xDEAD,
        id: IpId(0xBEEF),
        dont_fragment: fields & 1 == 0,
        ttl: fields,
        protocol: IpProtocol::UDP,
        source: [a[0], a[1], a[2], a[3]].into(),
        destination: [b[0], b[1], b[2], b[3]].into(),
    };
    let ipv6 = |next_header| Ipv6 {
        traffic_class: fields,
        flow_label: label,
        payload_length: 0xDEAD,
        next_header,
        hop_limit: fields,
        source: Gid::from_mac(Mac(b)),
        destination: Gid::from_mac(Mac(a)),
    };
    let udp = Udp {
        source: UdpPort(label.get() as u16),
        destination: UdpPort::ROCE_V2,
        length: 0xDEAD,
        checksum: InetChecksum(0xBEEF),
    };
    let outers = [
        Outer::V2Ipv4(ethernet(EtherType::IPV4), ipv4(fields), udp),
        Outer::V2Ipv6(ethernet(EtherType::IPV6), ipv6(IpProtocol::UDP), udp),
        Outer::V1(ethernet(EtherType::ROCE), Grh(ipv6(IpProtocol::IBA))),
        Outer::V2Ipv4(ethernet(EtherType::IPV4), ipv4(!fields), udp),
    ];
    let mut id = 0;
    outers.map(|outer| {
        id += 1;
        Path::new(PathId(id), outer)
    })
}
