//! The requester's fast path: plain sends in a row, each of them one packet that is sent for the
//! first time. Most packets that are sent are of this kind.
//!
//! What holds for all of the sends is checked once. Where anything else stands in the way, the row
//! ends, or does not begin, and what comes then is sent in the [general way](super::sending).

use crate::encap::{Full, Path};
use crate::nic::config::queue_pair_state::State;
use crate::nic::device::outbox::Outbox;
use crate::nic::requester::headers::send_headers;
use crate::nic::requests::plain::Plain;
use crate::nic::requests::work_request::WorkRequest;
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::QueuePair;
use crate::nic::state::requester::Requester;
use crate::nic::state::turns::RequesterTurn;
use crate::wire::{Bth, Extensions, Headers, Opcode, Pkey, Psn, Qpn};

impl Requester {
    /// Returns how many requests from the cursor on the window has room for and the peer has
    /// receives for, and how many receives the peer has, as far as it said. Returns zeros if no new
    /// request is to be begun now.
    #[inline(always)]
    fn fast_path_limit(&self, most: usize) -> (usize, usize) {
        if self.cursor != self.begun || self.next_psn != self.unsent_psn {
            return (0, 0);
        }
        let window = self.window_left(self.under_way()) as usize;
        let receives = match self.receives_left().map(|receives| receives.max(0) as usize) {
            // With nothing under way, one message may always be sent to ask.
            Some(receives) if self.cursor == 0 => receives.max(1),
            Some(receives) => receives.saturating_sub(self.cursor),
            None => usize::MAX,
        };
        (most.min(window).min(self.work.seen_behind(self.cursor)).min(receives), receives)
    }
}

/// The fields of the BTH of a send with immediate data.
struct BthFields {
    peer: Qpn,
    pkey: Pkey,
    psn: Psn,
    /// Whether the packet asks for an acknowledgement.
    ask: bool,
}

/// Gives a send with immediate data to the device. This is a function of its own, so that what most
/// sends are made of stays in registers.
#[inline(never)]
fn push_immediate<O: Outbox>(
    request: &WorkRequest,
    bytes: &[u8],
    fields: BthFields,
    path: &Path,
    outbox: &mut O,
) -> Result<u64, Full> {
    let (opcode, extensions) = send_headers(true, Some(request.attached));
    let BthFields { peer, pkey, psn, ask } = fields;
    let bth = Bth::new(opcode, peer, psn).with_pkey(pkey);
    let bth = bth.with_ack_request(ask).with_solicited(request.solicited);
    outbox.push(path, Headers { bth, extensions }, bytes)
}

impl QueuePair {
    /// Sends the plain sends at the cursor, as many as there are and may be sent. Returns how many,
    /// if the device had room for all of them.
    #[inline(always)]
    pub(crate) fn send_fast_path<const LOSSLESS: bool, O: Outbox>(
        &mut self,
        most: usize,
        promised: &mut usize,
        common: &mut Common,
        outbox: &mut O,
    ) -> Result<usize, RequesterTurn> {
        let (r, mtu) = (&mut self.requester, self.mtu.bytes());
        let Some(path) = self.path.as_ref().filter(|_| self.state != State::Draining) else {
            return Ok(0);
        };
        let (most, receives) = r.fast_path_limit(most);
        if *promised < most {
            *promised += common.reserve_up_to(self.send_completions, most - *promised);
        }
        let began = r.begins_to_send(outbox, common.now);
        let bth = Bth::new(Opcode::RcSendOnly, self.peer_qpn, Psn::new(0)).with_pkey(self.pkey);
        let (each, half) = (r.policy.ask_each, r.open_window.div_ceil(2) as usize);
        let (mut sent, mut payload, mut next, mut full) = (0, 0, r.next_psn, false);
        // `due` is the send with which an acknowledgement is asked for at the latest, `asked` is
        // how many sends there were when one was last asked for, and `before` how many packets had
        // been sent without asking before these sends.
        let last = receives.saturating_sub(1);
        let mut due = last
            .min(r.requests_until_full(r.cursor))
            .min((half - 1).saturating_sub(r.unasked as usize));
        let (mut asked, mut before) = (0, r.unasked);
        for posted in r.work.seen_range(r.cursor..r.cursor + most.min(*promised)) {
            let request = &posted.request;
            let Some(plain @ (Plain::Send | Plain::SendImm)) = posted.plain else { break };
            let Some(bytes) = request.data.bytes().filter(|bytes| bytes.len() <= mtu) else {
                break;
            };
            let ask = !LOSSLESS && (each | request.awaited | (sent >= due));
            let pushed = if plain == Plain::Send {
                let bth =
                    bth.with_psn(next).with_ack_request(ask).with_solicited(request.solicited);
                outbox.push(path, Headers { bth, extensions: Extensions::None }, bytes)
            } else {
                let (peer, pkey) = (self.peer_qpn, self.pkey);
                let fields = BthFields { peer, pkey, psn: next, ask };
                push_immediate(request, bytes, fields, path, outbox)
            };
            let Ok(ticket) = pushed else {
                full = true;
                break;
            };
            if ask {
                r.rto.start_sample(next, common.now);
                due = last.min(sent + half);
                (asked, before) = (sent + 1, 0);
            }
            next = next.add(1);
            payload += bytes.len();
            if LOSSLESS {
                posted.sent(ticket, next);
            }
            sent += 1;
        }
        if sent > 0 {
            *promised -= sent;
            r.note_sent(r.next_psn, payload, began);
            (r.next_psn, r.unsent_psn) = (next, next);
            if !LOSSLESS {
                r.unasked = before + (sent - asked) as u32;
            }
            (r.cursor, r.begun) = (r.cursor + sent, r.begun + sent);
            common.counters.sent += sent as u64;
            self.start_response_timer(common);
        }
        if full { Err(RequesterTurn::DeviceFull) } else { Ok(sent) }
    }
}
