//! What occurred in all runs together.

use std::collections::BTreeMap;
use std::fmt;

use doorbell_core::encap::Version;
use doorbell_core::nic::{Attachment, Cause, Done, Event, Failure, KeyError, PostError, State};
use doorbell_core::pcap::Reader;
use doorbell_core::wire::{Opcode, Syndrome, Verdict};

/// How often each thing occurred, by its name.
pub struct Coverage {
    counts: BTreeMap<String, u64>,
    /// Packets by their opcode, and acknowledgements by their syndrome: too many for names.
    opcodes: [u64; 256],
    syndromes: [u64; 256],
}

/// The name of a variant.
pub fn name(of: &impl fmt::Debug) -> String {
    let whole = format!("{of:?}");
    let end = whole.find(|c: char| !c.is_alphanumeric()).unwrap_or(whole.len());
    whole[..end].to_owned()
}

impl Coverage {
    /// Anything that occurred so often.
    pub fn note(&mut self, what: impl Into<String>, count: u64) {
        *self.counts.entry(what.into()).or_default() += count;
    }

    /// How often something was noted.
    pub fn noted(&self, what: &str) -> u64 {
        self.counts.get(what).copied().unwrap_or(0)
    }

    fn count(&mut self, what: String) {
        self.note(what, 1);
    }

    /// All packets of a capture. Only of networks that corrupt nothing.
    pub fn packets(&mut self, pcap: &[u8], version: Version) {
        let at = match version {
            Version::V1 => 14 + 40,
            Version::V2Ipv4 => 14 + 20 + 8,
            Version::V2Ipv6 => 14 + 40 + 8,
        };
        for record in Reader::new(pcap).expect("a capture") {
            let frame = record.expect("a whole capture").data;
            if let (Some(&opcode), Some(&syndrome)) = (frame.get(at), frame.get(at + 12)) {
                self.packet(opcode, syndrome);
            }
        }
    }

    /// A packet, by its opcode and, if it is an acknowledgement, its syndrome.
    fn packet(&mut self, opcode: u8, syndrome: u8) {
        self.opcodes[usize::from(opcode)] += 1;
        if opcode == Opcode::RcAcknowledge.code() {
            self.syndromes[usize::from(syndrome)] += 1;
        }
    }

    fn named(&self) -> BTreeMap<String, u64> {
        let mut counts = self.counts.clone();
        for code in 0..=u8::MAX {
            let opcode = match Opcode::from_code(code) {
                Some(opcode) => format!("opcode {opcode:?}"),
                None => format!("opcode {code:#04x}"),
            };
            *counts.entry(opcode).or_default() += self.opcodes[usize::from(code)];
            let answer = match Syndrome::from_code(code).verdict() {
                Verdict::Ack(None) => "Ack without credits".to_owned(),
                Verdict::Ack(Some(_)) => "Ack with credits".to_owned(),
                Verdict::ReceiverNotReady(_) => "ReceiverNotReady".to_owned(),
                Verdict::Nak(nak) => name(&nak),
                Verdict::Reserved => "Reserved".to_owned(),
            };
            let answer = format!("answer {answer}");
            *counts.entry(answer).or_default() += self.syndromes[usize::from(code)];
        }
        counts.retain(|_, count| *count > 0);
        counts
    }

    pub fn state(&mut self, state: Option<State>) {
        if let Some(state) = state {
            self.count(format!("state {state:?}"));
        }
    }

    pub fn outcome(&mut self, outcome: Result<Done, Failure>, of_receive: bool) {
        let suffix = if of_receive { " of a receive" } else { "" };
        match outcome {
            Ok(done) => self.count(format!("done {}", name(&done))),
            Err(Failure::Broke(cause)) => self.count(format!("broke {}{suffix}", name(&cause))),
            Err(Failure::Flushed(cause)) => self.count(format!("flushed {}", name(&cause))),
        }
    }

    pub fn attached(&mut self, attached: &Attachment) {
        self.count(format!("attached {}", name(attached)));
    }

    pub fn refused(&mut self, why: &PostError) {
        self.count(format!("refused {}", name(why)));
    }

    /// A message that was posted, and is wrong in some way.
    pub fn wrong(&mut self, how: &impl fmt::Debug) {
        let how = format!("{how:?}");
        let words = how.split(|c: char| !c.is_alphanumeric());
        let words = words.filter(|word| word.starts_with(char::is_alphabetic));
        self.count(format!("wrong {}", words.collect::<Vec<_>>().join(" ")));
    }

    pub fn event(&mut self, event: &Event) {
        self.count(format!("event {}", name(event)));
        let key = |why: &KeyError| name(why);
        match event {
            Event::Broken(_, Cause::LocalProtection { why, .. }) => {
                self.count(format!("own key {}", key(why)));
            }
            Event::Broken(_, Cause::Access(why)) => {
                self.count(format!("peer's key {}", key(why)));
            }
            _ => {}
        }
    }

    pub fn add(&mut self, other: &Self) {
        for (what, count) in &other.counts {
            self.note(what, *count);
        }
        for code in 0..256 {
            self.opcodes[code] += other.opcodes[code];
            self.syndromes[code] += other.syndromes[code];
        }
    }

    /// What never occurred and should have.
    pub fn missing<'e>(&self, expected: &[&'e str]) -> Vec<&'e str> {
        let counts = self.named();
        expected.iter().copied().filter(|&what| !counts.contains_key(what)).collect()
    }

    /// The same, and what occurred and can't.
    pub fn gaps(&self, expected: &[&str]) -> Vec<String> {
        let counts = self.named();
        let missing = self.missing(expected).into_iter().map(|what| format!("never: {what}"));
        let odd = counts.keys().filter(|what| !expected.contains(&what.as_str()));
        missing.chain(odd.map(|what| format!("unexpectedly: {what}"))).collect()
    }
}

impl Default for Coverage {
    fn default() -> Self {
        Self { counts: BTreeMap::new(), opcodes: [0; 256], syndromes: [0; 256] }
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, count) in self.named() {
            writeln!(f, "{count:>9}  {what}")?;
        }
        Ok(())
    }
}
