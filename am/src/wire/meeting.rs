//! The meeting of two endpoints by one connection, to which what is proved there is bound.

use doorbell_verbs::Qpn;

use crate::proof::{Proof, Statement};
use crate::wire::{Hello, Shown};

/// The side of a connection: a proof of one side is none of the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    Connects,
    Accepts,
}

impl Side {
    pub fn other(self) -> Self {
        match self {
            Self::Connects => Self::Accepts,
            Self::Accepts => Self::Connects,
        }
    }
}

/// The meeting of two endpoints by one connection, as one side sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meeting {
    /// The side that this endpoint is on.
    own: Side,
    /// Half of a hash of both greetings, each of which has a number that its side has drawn, and of
    /// the numbers of the queue pairs. Half, since each link has such a hash.
    greetings: [u8; 16],
}

impl Meeting {
    /// Makes the meeting in which the connecting side has sent the first greeting, by the first
    /// queue pair, and the accepting side the second. A proof in the second is left out, since it
    /// is about the meeting.
    pub fn of(own: Side, [connects, accepts]: [Hello; 2], [from, to]: [Qpn; 2]) -> Self {
        let shows = accepts.shows.map(|shown| Shown { proof: Proof::default(), ..shown });
        let accepts = Hello { shows, ..accepts }.to_bytes();
        let (from, to) = (from.get().to_be_bytes(), to.get().to_be_bytes());
        let parts: [&[u8]; 4] = [&connects.to_bytes(), &accepts, &from, &to];
        Self { own, greetings: Statement::of("doorbell am: greetings", &parts).half() }
    }

    /// Returns what the accepting side proves by its greeting, if it demands a tag: that it knows
    /// the tag, too.
    pub fn accepted(&self) -> Statement {
        Statement::of("doorbell am: the accepting side", &[&self.greetings])
    }

    /// Returns what this side proves when it shows another tag by the connection.
    pub fn shown_here(&self) -> Statement {
        self.shown_by(self.own)
    }

    /// Returns what the peer proves when it shows another tag by the connection.
    pub fn shown_there(&self) -> Statement {
        self.shown_by(self.own.other())
    }

    fn shown_by(&self, side: Side) -> Statement {
        let side: &[u8] = match side {
            Side::Connects => b"connects",
            Side::Accepts => b"accepts",
        };
        Statement::of("doorbell am: another tag", &[side, &self.greetings])
    }
}
