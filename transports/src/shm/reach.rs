//! Looking after all sockets of a device, and finding the way to a peer.

use doorbell_core::encap::PathId;
use doorbell_core::nic::Way;

use super::handshakes::{CallError, LISTENER, NotCalled, OTHERS, listening};
use super::link::{Link, Segment};
use super::message::is_name;
use super::state::Shm;
use crate::address::{Address, ReachError};
use crate::sys::epoll::Epoll;
use crate::sys::unix;

/// How often at once the kernel is asked which sockets have something. Each time it tells of a few.
const MOST_ROUNDS: u32 = 16;

impl Shm {
    /// Looks at all sockets, and handles what has come by them.
    #[cold]
    pub(super) fn attend(&mut self) {
        self.turns = 0;
        if self.handshakes.shut {
            self.resume_accepting();
        }
        self.see_who_dozes();
        for round in 0..MOST_ROUNDS {
            let (numbers, found) = self.watch.ready();
            for &number in &numbers[..found] {
                match number {
                    LISTENER => self.accept(),
                    ..OTHERS => self.listen_to(PathId(number as u32)),
                    _ if self.handshakes.calls.iter().any(|call| call.number == number) => {
                        self.answered(number);
                    }
                    _ => self.hear(number),
                }
            }
            if found > 0 && round == 0 {
                // This may have taken a message that was to wake a driver that sleeps.
                self.call_back();
            }
            if found < Epoll::MOST {
                return;
            }
        }
    }

    /// Finds the way to the device that joined by a name, and calls the device if there is no link.
    pub(super) fn way_to(&mut self, address: &Address) -> Result<Option<Way>, ReachError> {
        let Address::Shm(name) = address else {
            let (address, takes) = (address.clone(), "shm:NAME");
            return Err(ReachError::Kind { address, device: "shm", takes });
        };
        self.attend();
        if let Some(link) = self.links.named(name) {
            return Ok(Some(Way::Link(link.id)));
        }
        let system = |source| ReachError::System { address: address.clone(), source };
        let most = self.links.most();
        let full = || ReachError::TooMany { address: address.clone(), most };
        if **name == *self.handshakes.name {
            let segment = Segment::new(self.handshakes.lines).map_err(system)?;
            let made = self.link_at_once(|id| Link::to_self(id, &segment, name)).map_err(system)?;
            return made.map(|id| Some(Way::Link(id))).ok_or_else(full);
        }
        let nobody = |why| ReachError::Nobody { address: address.clone(), why };
        let stranger = |holder| {
            let (address, own) = (address.clone(), unix::own_user());
            ReachError::Stranger { address, holder, own }
        };
        if !is_name(name) {
            let why = "a name has 1 to 90 bytes, without control characters";
            return Err(ReachError::NoPeers { address: address.clone(), why });
        }
        if self.handshakes.listener.is_none() {
            return Err(nobody("this device is one of a pair, and reaches no other"));
        }
        let now = self.clock.now();
        let since = match self.handshakes.calls.iter().position(|call| call.name == *name) {
            Some(at) if self.handshakes.calls[at].again => self.handshakes.calls.remove(at).since,
            Some(at) => {
                return self.handshakes.outcome(at, now).map_err(|failed| match failed {
                    CallError::There(why) => nobody(why),
                    CallError::Refused(why) => {
                        ReachError::Refused { address: address.clone(), why }
                    }
                    CallError::Stranger(holder) => stranger(holder),
                    CallError::Here(why) => system(why),
                });
            }
            None if self.links.count() + self.handshakes.calls.len() >= most => return Err(full()),
            None => now,
        };
        self.call(name, since, now).map_err(|why| match why {
            NotCalled::Nobody => nobody("no process has joined by this name"),
            NotCalled::Stranger(holder) => stranger(holder),
            NotCalled::Busy if unix::is_anothers(&listening(name)) => {
                stranger(unix::holder(&listening(name)))
            }
            NotCalled::Busy => nobody("others have called before, and were not heard for 5 s"),
            NotCalled::System(error) => system(error),
        })
    }
}
