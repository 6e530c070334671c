//! Which requests are sent in a turn, and in which packets.

use crate::nic::config::state::State;
use crate::nic::device::outbox::Outbox;
use crate::nic::queues::completions::in_use;
use crate::nic::requester::packets::{
    Any, Outgoing, PlainAtomic, PlainRead, PlainWrite, Pushed, Shape, push,
};
use crate::nic::requests::failure::Cause;
use crate::nic::requests::plain::Plain;
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::{Blamed, QueuePair};
use crate::nic::state::turns::{Stop, Turn};
use crate::planted::{Bug, planted};
use crate::wire::{Bth, Opcode, Service};

impl QueuePair {
    /// Sends some of what may be sent.
    #[inline(always)]
    pub fn send<O: Outbox>(&mut self, common: &mut Common, outbox: &mut O, most: u32) -> Turn {
        if !self.state.requests() || self.requester.resume_at.is_some() {
            return Turn::Idle;
        }
        let datagrams = self.service() == Service::Ud;
        // Once a turn: what is posted meanwhile rings.
        self.requester.work.look();
        let (mut turn, mut promised, mut left) = (Turn::More, 0, most as usize);
        while left > 0 {
            let sent = match datagrams {
                true => self.send_datagram(common, outbox).map(|()| 1),
                false => self.send_some(left, &mut promised, common, outbox),
            };
            match sent {
                Ok(sent) => left -= sent,
                Err(stopped) => {
                    turn = stopped;
                    break;
                }
            }
        }
        if promised > 0 {
            common.release_sends(self.send_completions, promised);
        }
        match self.requester.ready {
            true => self.complete_placed(turn, common),
            false => turn,
        }
    }

    /// How a turn ends in which something was not sent.
    #[cold]
    pub(crate) fn stopped(&mut self, stop: Stop, common: &mut Common) -> Turn {
        match stop {
            Stop::Turn(turn) => turn,
            // Those before it come first, and it is looked at again when they are complete.
            Stop::Refused(_) if self.requester.at > 0 => Turn::Idle,
            Stop::Refused(cause) => {
                self.break_with(cause, Blamed::Request(0), common);
                Turn::More
            }
        }
    }

    /// Sends what is at the cursor, if it may be sent: a packet, or several plain sends, at `most`
    /// so many. Completions are `promised` to all requests that wait, as one after another is
    /// begun.
    #[inline(always)]
    fn send_some<O: Outbox>(
        &mut self,
        most: usize,
        promised: &mut usize,
        common: &mut Common,
        outbox: &mut O,
    ) -> Result<usize, Turn> {
        let r = &mut self.requester;
        let Some(posted) = r.work.seen(r.at) else { return Err(Turn::Idle) };
        let sent = match posted.plain {
            Some(Plain::Send | Plain::SendImm) => {
                let sent = match common.lossless {
                    true => self.send_stretch::<true, O>(most, promised, common, outbox),
                    false => self.send_stretch::<false, O>(most, promised, common, outbox),
                }?;
                if sent > 0 {
                    return Ok(sent);
                }
                self.send_apart::<Any, O>(promised, common, outbox)
            }
            Some(Plain::Write)
                if r.is_once(posted.len, self.mtu)
                    && common.mapped.is_empty()
                    && !r.has_placed(posted) =>
            {
                self.send_apart::<PlainWrite, O>(promised, common, outbox)
            }
            _ => return self.send_other(most, promised, common, outbox),
        };
        sent.map(|()| 1)
    }

    /// Apart, so that the way of most is short.
    #[inline(never)]
    fn send_other<O: Outbox>(
        &mut self,
        most: usize,
        promised: &mut usize,
        common: &mut Common,
        outbox: &mut O,
    ) -> Result<usize, Turn> {
        let r = &mut self.requester;
        let Some(posted) = r.work.seen(r.at) else { return Err(Turn::Idle) };
        if r.has_placed(posted) || !common.mapped.is_empty() {
            let written = self.write_mapped(most, promised, common)?;
            if written > 0 {
                return Ok(written);
            }
        }
        let r = &mut self.requester;
        let Some(posted) = r.work.seen(r.at) else { return Err(Turn::Idle) };
        let once = r.is_once(posted.len, self.mtu);
        let sent = match posted.plain {
            Some(Plain::Write) if once => self.send_as::<PlainWrite, O>(promised, common, outbox),
            Some(Plain::Read) if once => self.send_as::<PlainRead, O>(promised, common, outbox),
            Some(Plain::Atomic) if once => self.send_as::<PlainAtomic, O>(promised, common, outbox),
            _ => self.send_apart::<Any, O>(promised, common, outbox),
        };
        sent.map(|()| 1)
    }

    /// Apart, too.
    #[inline(never)]
    fn send_apart<S: Shape, O: Outbox>(
        &mut self,
        promised: &mut usize,
        common: &mut Common,
        outbox: &mut O,
    ) -> Result<(), Turn> {
        self.send_as::<S, O>(promised, common, outbox)
    }

    /// Sends it as what it is. Most packets are plain: the whole of a
    /// [plain](crate::nic::WorkRequest::plain) request, sent for the first time. What follows from
    /// that is not asked then.
    #[inline(always)]
    fn send_as<S: Shape, O: Outbox>(
        &mut self,
        promised: &mut usize,
        common: &mut Common,
        outbox: &mut O,
    ) -> Result<(), Turn> {
        let plain = S::PLAIN.is_some();
        let (r, mtu) = (&mut self.requester, self.mtu.bytes() as u32);
        let under_way = match plain {
            // The cursor is not behind what is acknowledged.
            true => r.next.distance_from(r.oldest) as u32,
            false => r.under_way(),
        };
        if under_way >= r.open {
            return Err(Turn::Idle);
        }
        let (at, again) = (r.at, !plain && r.next != r.top);
        let (Some(path), Some(posted)) = (&self.path, r.work.seen(at)) else {
            return Err(Turn::Idle);
        };
        let request = &posted.request;
        let asks = S::PLAIN.map_or_else(|| posted.asks(), Plain::asks);
        let begins = at == r.begun;
        // What was begun before the peer said how many receives it has, and then refused, has to
        // wait for one as well. But with nothing under way, a request may always go and ask.
        if !(plain && asks)
            && r.credit.is_some()
            && (begins || again)
            && r.packet == 0
            && request.takes_receive()
            && r.is_out_of_receives()
        {
            return Err(Turn::Idle);
        }
        if begins {
            let fenced = !plain && request.fenced && !planted(Bug::IgnoresFences);
            if self.state == State::Draining || fenced && r.asking > 0 {
                return Err(Turn::Idle);
            }
            if asks && r.asking >= r.insists.reads.into() {
                return Err(match r.insists.reads {
                    0 => self.stopped(Stop::Refused(Cause::NoReads), common),
                    _ => Turn::Idle,
                });
            }
            r.begin(promised, in_use(&mut common.completions, self.send_completions))?;
        }
        if asks {
            r.begun += usize::from(begins);
            let asked = match plain {
                true => self.ask::<S, O>(common, outbox),
                false => self.ask_apart(common, outbox),
            };
            return asked.map_err(|stop| self.stopped(stop, common));
        }
        let service = if plain { Service::Rc } else { self.shared.service };
        let bth = Bth::new(Opcode::RcSendOnly, self.peer, r.next).with_pkey(self.pkey);
        let part = if plain { (0, posted.len) } else { r.part_at_cursor(posted.len, mtu) };
        let apart = !plain && common.goes_apart(request, service);
        let reaches = request.reaches_memory();
        let request = Outgoing { r, common, posted, domain: self.domain };
        let pushed = push::<S, O>(request, part, (path, service, bth), outbox);
        r.begun += usize::from(begins);
        let Pushed { ticket, asked, ends } = match pushed {
            Ok(pushed) => pushed,
            Err(stop) => return Err(self.stopped(stop, common)),
        };
        common.counters.sent += 1;
        common.counters.retransmitted += u64::from(again);
        r.sent(1, asked, ends, ticket, common.now);
        if plain || reaches {
            r.reaches = r.next;
        }
        r.parts = r.parts.wrapping_add(u32::from(apart && !again && !ends));
        match service == Service::Rc {
            true => self.watch(common),
            false => self.sent_for_good(ends, common),
        }
        Ok(())
    }

    /// Takes what was sent for arrived: nobody will say.
    #[inline(never)]
    pub(crate) fn sent_for_good(&mut self, ends: bool, common: &mut Common) {
        let r = &mut self.requester;
        (r.oldest, r.acknowledged) = (r.next, r.packet);
        if ends {
            self.complete_front(0, common);
            self.progressed(common);
        }
    }
}
