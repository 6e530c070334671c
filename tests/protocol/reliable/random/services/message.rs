//! Messages of any service, and how they are drawn.

use doorbell_core::nic::Transport;
use doorbell_core::wire::PathMtu;

use super::super::dice::Dice;
use super::super::message::{Kind, SMALL};
use super::super::spoil::BadKey;

/// One end of a pair: which pair, and which of its two.
pub type Place = (usize, usize);

/// What a message does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    Send,
    /// Writes to a place of its own in the peer's memory.
    Write,
    /// Goes to whom it names.
    Datagram(Place),
}

/// What is wrong with a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// A segment of what is sent: that breaks the sender.
    Source(BadKey),
    /// It does not go into a packet: that breaks the sender.
    Long,
    /// Its address was dropped: that breaks the sender.
    NoAddress,
    /// What is written to: nobody is told.
    Remote(BadKey),
    /// The queue pair over there allows no writes: nobody is told.
    NotGranted,
    /// It names another key than its receiver's: nobody is told.
    Qkey,
    /// It is for a queue pair that there is not: nobody is told.
    Nobody,
}

#[derive(Clone, Debug)]
pub struct Message {
    /// From what its bytes are made.
    pub number: u64,
    pub what: What,
    pub len: usize,
    pub imm: Option<u32>,
    pub signalled: bool,
    pub awaited: bool,
    pub solicited: bool,
    /// Where its bytes come from.
    pub source: Kind,
    pub wrong: Option<Wrong>,
}

/// Who sends, and what may be sent.
pub struct Sender<'a> {
    pub transport: Transport,
    pub mtu: PathMtu,
    /// To whom datagrams may go.
    pub others: &'a [Place],
    /// How many of a hundred messages are wrong.
    pub wrong: usize,
}

impl Message {
    pub fn takes_receive(&self) -> bool {
        self.what != What::Write || self.imm.is_some()
    }

    pub fn packets(&self, mtu: PathMtu) -> usize {
        self.len.div_ceil(mtu.bytes()).max(1)
    }

    fn draw(dice: &mut Dice, sender: &Sender<'_>) -> Self {
        let mtu = sender.mtu.bytes();
        let len = match dice.below(20) {
            0 | 1 => 0,
            2..7 => dice.between(1, SMALL),
            _ if sender.transport == Transport::Datagram => dice.between(1, mtu),
            7..11 => dice.between(1, mtu),
            11..16 => (dice.between(1, 4) * mtu + dice.below(3)).saturating_sub(1),
            _ => dice.between(mtu, 5 * mtu),
        };
        let what = match sender.transport {
            Transport::Datagram => What::Datagram(dice.pick(sender.others)),
            _ if dice.percent(50) => What::Send,
            _ => What::Write,
        };
        let mut message = Self {
            number: dice.u64(),
            what,
            len,
            imm: dice.percent(50).then(|| dice.u64() as u32),
            signalled: dice.percent(70),
            awaited: dice.percent(20),
            solicited: dice.percent(20),
            source: dice.pick(&[Kind::None, Kind::Buf, Kind::Segment, Kind::List]),
            wrong: None,
        };
        if sender.transport != Transport::Reliable && dice.percent(sender.wrong) {
            message.spoil(dice, mtu);
        }
        if message.source == Kind::None && message.len > SMALL {
            message.source = Kind::Buf;
        }
        message.settled()
    }

    /// The same asking for no event, if it can be taken for another.
    pub fn settled(self) -> Self {
        let distinct = self.imm.is_some() || self.len >= 8;
        Self { solicited: self.solicited && distinct, ..self }
    }

    fn spoil(&mut self, dice: &mut Dice, mtu: usize) {
        self.len = self.len.max(1);
        let wrong = match (self.what, dice.below(10)) {
            (_, 0 | 1) => Wrong::Source(BadKey::of_range(dice)),
            (What::Write, _) => Wrong::Remote(BadKey::of_access(dice)),
            (What::Datagram(_), 2) => Wrong::Long,
            (What::Datagram(_), 3) => Wrong::NoAddress,
            (What::Datagram(_), 4 | 5) => Wrong::Nobody,
            (What::Datagram(_), _) => Wrong::Qkey,
            (What::Send, _) => return,
        };
        match wrong {
            Wrong::Source(_) => self.source = dice.pick(&[Kind::Segment, Kind::List]),
            Wrong::Long => self.len = mtu + dice.between(1, 100),
            _ => {}
        }
        self.wrong = Some(wrong);
    }

    /// What an end sends in one life of its connection.
    pub fn stream(dice: &mut Dice, sender: &Sender<'_>) -> Vec<Self> {
        let count = match dice.below(10) {
            0 => 0,
            1..6 => dice.between(1, 6),
            _ => dice.between(4, 20),
        };
        (0..count).map(|_| Self::draw(dice, sender)).collect()
    }
}
