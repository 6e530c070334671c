//! What a stand-in did beside what the recorded end did.
//!
//! Frames are compared to the last byte, but for what is left to whoever sends them:
//!
//! * the identification of IPv4, which the device gives;
//! * UDP's checksum, which may be left out: ours is, and the sockets of the peer in user space that
//!   one capture has put it there;
//! * the migration bit, which the kernel's driver does not set and everybody ignores;
//! * of a reliable connection, which packets within a message ask for an acknowledgement; reads and
//!   atomic operations are answered whether they ask or not, and ours do not;
//! * whether a management datagram asks for one, as the kernel's do: no datagram is acknowledged;
//! * the number of the queue pair that a datagram comes from, which a NIC of ours draws;
//! * credits, of which the kernel's driver counts none;
//! * in management datagrams, the [names](crate::golden::managed) that each side draws.
//!
//! What depends on these, ICRC and checksums, must be right for what was sent. Either side may
//! leave out an acknowledgement that a later answer contains. The headers around a packet are the
//! path's that the program gave, which is the recorded one.

use doorbell_core::encap::Outer;
use doorbell_core::nic::{Attachment, Cause, Completion, Done, Failure};
use doorbell_core::wire::{
    Aeth, Deth, Extensions, Headers, InetChecksum, Ipv4, Nak, Operation, Psn, Qpn, Service,
    Syndrome, Udp, Verdict,
};

use crate::golden::recording::{Brought, Exchange, Fate, Message, Recorded, deth, frame};
use crate::golden::stand_in::{BadReceive, IDENTIFICATION, Reading, StandIn};

/// How many of the recorded packets were compared.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    /// Datagrams of managers.
    pub management: usize,
    pub requests: usize,
    pub answers: usize,
    /// Recorded acknowledgements that ours contain.
    pub passed_over: usize,
    /// Bytes that were read where peers had written before.
    pub recognised: usize,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.management += other.management;
        self.requests += other.requests;
        self.answers += other.answers;
        self.passed_over += other.passed_over;
        self.recognised += other.recognised;
    }
}

/// Has a NIC of ours stand in for one end of an exchange.
pub fn compare(
    exchanges: &[Exchange],
    exchange: &Exchange,
    end: usize,
    reading: Reading,
) -> Result<Tally, String> {
    let mut stand_in = StandIn::new(exchanges, exchange, end, reading);
    stand_in.replay()?;
    let (requests, answers): (Vec<Recorded>, Vec<_>) =
        stand_in.sent.drain(..).partition(Recorded::is_request);
    let mut tally = Tally::default();
    compare_requests(&requests, exchange, end, &stand_in, &mut tally)?;
    compare_answers(&answers, exchange, end, &stand_in, reading, &mut tally)?;
    check_completions(&mut stand_in, reading)?;
    stand_in.check_counters()?;
    stand_in.check_end()?;
    stand_in.registered.check()?;
    tally.recognised += stand_in.registered.recognised;
    Ok(tally)
}

fn compare_requests(
    ours: &[Recorded],
    exchange: &Exchange,
    end: usize,
    stand_in: &StandIn<'_>,
    tally: &mut Tally,
) -> Result<(), String> {
    let renamed = |packet: &Recorded| match &stand_in.managed {
        Some(managed) if packet.is_management() => managed.renamed(packet),
        _ => packet.clone(),
    };
    let recorded: Vec<_> = exchange.requests(end).map(|(_, packet)| renamed(packet)).collect();
    for (ours, recorded) in ours.iter().zip(&recorded) {
        same(ours, expected(recorded, ours, stand_in.ends.qpn))
            .map_err(|why| format!("sent {ours:?}\nand not {recorded:?}: {why}"))?;
        match recorded.is_management() {
            true => tally.management += 1,
            false => tally.requests += 1,
        }
    }
    match ours.len() == recorded.len() {
        true => Ok(()),
        false => Err(format!("sent {} requests and not {}", ours.len(), recorded.len())),
    }
}

/// The frame that was recorded, with what is left to ours as ours has it.
fn expected(recorded: &Recorded, ours: &Recorded, qpn: Qpn) -> Vec<u8> {
    let (bth, mut extensions) = (recorded.headers.bth, recorded.headers.extensions);
    match (&mut extensions, ours.aeth()) {
        (Extensions::Deth(deth) | Extensions::DethImm(deth, _), _) if deth.source != Qpn::GSI => {
            deth.source = qpn;
        }
        (Extensions::Aeth(aeth) | Extensions::AethAtomicAck(aeth, _), Some(our)) => {
            let acks = |aeth: Aeth| matches!(aeth.syndrome.verdict(), Verdict::Ack(_));
            if acks(*aeth) && acks(our) {
                aeth.syndrome = our.syndrome;
            }
        }
        _ => {}
    }
    let bare = |udp| Udp { checksum: InetChecksum(0), ..udp };
    let outer = match recorded.outer {
        Outer::V2Ipv4(e, ip, udp) => Outer::V2Ipv4(e, Ipv4 { id: IDENTIFICATION, ..ip }, bare(udp)),
        Outer::V2Ipv6(e, ip, udp) => Outer::V2Ipv6(e, ip, bare(udp)),
        other => other,
    };
    let asks = if may_ask(recorded) { ours.headers.bth } else { bth }.ack_request();
    let bth = bth.with_migrated(true).with_ack_request(asks);
    frame(&outer, Headers { bth, extensions }, &recorded.payload)
}

/// Whether a packet is this frame, or where it is another.
fn same(packet: &Recorded, frame: Vec<u8>) -> Result<(), String> {
    let differs = packet.frame.iter().zip(&frame).position(|(a, b)| a != b);
    match packet.frame == frame {
        true => Ok(()),
        false => Err(format!("byte {} differs", differs.unwrap_or(frame.len()))),
    }
}

/// Whether a requester may ask for an acknowledgement of this packet or not, as it likes.
fn may_ask(packet: &Recorded) -> bool {
    let data = matches!(packet.operation(), Operation::Send | Operation::Write);
    let ends = data && packet.headers.bth.opcode().info().ends();
    packet.is_management() || packet.service() == Service::Rc && packet.is_request() && !ends
}

fn compare_answers(
    ours: &[Recorded],
    exchange: &Exchange,
    end: usize,
    stand_in: &StandIn<'_>,
    reading: Reading,
    tally: &mut Tally,
) -> Result<(), String> {
    let recorded: Vec<Recorded> = exchange.answers(end).cloned().collect();
    for answer in ours.iter().chain(&recorded) {
        check_msn(answer, &stand_in.theirs)?;
    }
    let (mut ours, mut recorded) = (ours.iter().peekable(), recorded.iter().peekable());
    loop {
        let (here, there) = match (ours.peek(), recorded.peek()) {
            (None, None) => return Ok(()),
            (Some(&here), Some(&there)) => (here, there),
            other => return Err(format!("answered and recorded: {other:#?}")),
        };
        let ahead = here.psn().distance_from(there.psn());
        let must_be = as_ours_must_be(there, &stand_in.theirs, reading);
        let same = same(here, expected(&must_be, here, stand_in.ends.qpn));
        if same.is_ok() {
            tally.answers += 1;
            ours.next();
            recorded.next();
        } else if ahead < 0 && acknowledges(here) {
            ours.next();
        } else if ahead > 0 && acknowledges(there) {
            tally.passed_over += 1;
            recorded.next();
        } else {
            return Err(format!("answered {here:?}\nand not {there:?}: {same:?}"));
        }
    }
}

/// Whether this is an acknowledgement, and nothing else, so that one further on contains it.
fn acknowledges(answer: &Recorded) -> bool {
    let ack = matches!(answer.verdict(), Some(Verdict::Ack(_)));
    ack && answer.operation() == Operation::Acknowledge
}

/// The recorded answer, or the one that the specification asks for where the kernel's driver gives
/// another.
///
/// A send that is too long for its receive is an invalid request, says the specification. The
/// driver has a way to say that, but takes the length for a fault of the receive (its `copy_data`
/// returns `EINVAL` where the caller expects `ENOSPC`), and says that it could not carry the
/// operation out. Ours does as the specification says, so that the requester is told what to look
/// for. Where the fault is the receive's, ours says what the driver does.
fn as_ours_must_be(recorded: &Recorded, theirs: &[Message], reading: Reading) -> Recorded {
    let mut answer = recorded.clone();
    let too_long = theirs.iter().any(|message| {
        let refused = Fate::Refused { at: recorded.psn(), why: Nak::RemoteOperation };
        message.is_send() && message.fate == refused
    });
    if let Extensions::Aeth(aeth) = &mut answer.headers.extensions
        && aeth.syndrome.verdict() == Verdict::Nak(Nak::RemoteOperation)
        && too_long
        && reading.bad_receive == BadReceive::TooShort
    {
        aeth.syndrome = Syndrome::nak(Nak::InvalidRequest);
    }
    answer
}

/// Whether an answer counts the messages that were complete: which these are, its number says.
fn check_msn(answer: &Recorded, asked: &[Message]) -> Result<(), String> {
    let Some(aeth) = answer.aeth() else { return Ok(()) };
    let reached = |psn: Psn| match aeth.syndrome.verdict() {
        Verdict::Ack(_) => answer.psn().distance_from(psn) >= 0,
        _ => answer.psn().distance_from(psn) > 0,
    };
    let complete = asked.iter().filter(|message| reached(message.counted_at())).count();
    match aeth.msn.get() as usize == complete {
        true => Ok(()),
        false => Err(format!("{answer:#?} counts other messages than the {complete} complete")),
    }
}

/// Whether requests and receives became what the recorded packets say.
fn check_completions(stand_in: &mut StandIn<'_>, reading: Reading) -> Result<(), String> {
    let done: Vec<Completion> = std::iter::from_fn(|| stand_in.done.poll()).collect();
    let received: Vec<Completion> = std::iter::from_fn(|| stand_in.received.poll()).collect();
    let requests: Vec<_> = (0..).zip(&stand_in.ours).collect();
    let receives = (0..).zip(&stand_in.theirs).filter(|(_, message)| message.takes_receive());
    let receives: Vec<_> = receives.collect();
    if done.len() != requests.len() || received.len() != receives.len() {
        let (done, received) = (done.len(), received.len());
        return Err(format!("{done} requests and {received} receives complete"));
    }
    for ((id, message), completion) in requests.into_iter().zip(&done) {
        if completion.id != id || !became(message, completion) {
            return Err(format!("request {id} became {completion:#?}"));
        }
    }
    for ((id, message), completion) in receives.into_iter().zip(&received) {
        if completion.id != id || !brought(message, completion, reading) {
            return Err(format!("receive {id} became {completion:#?}"));
        }
    }
    Ok(())
}

/// Whether a request became what the answers say.
fn became(message: &Message, completion: &Completion) -> bool {
    match message.fate {
        Fate::Unanswered => false,
        Fate::Refused { why, .. } => {
            let cause = match why {
                Nak::RemoteAccess => Cause::PeerAccess,
                Nak::RemoteOperation => Cause::PeerOperation,
                _ => Cause::PeerInvalidRequest,
            };
            completion.outcome == Err(Failure::Broke(cause))
        }
        Fate::Done => match &message.brought {
            Brought::Data(data) => {
                completion.outcome == Ok(Done::Read) && bytes(completion) == data
            }
            &Brought::Word(before) => completion.outcome == Ok(Done::Atomic { before }),
            Brought::Nothing if message.is_send() => completion.outcome == Ok(Done::Sent),
            Brought::Nothing => completion.outcome == Ok(Done::Written),
        },
    }
}

/// Whether a receive brought what was sent.
fn brought(message: &Message, completion: &Completion, reading: Reading) -> bool {
    if let Fate::Refused { .. } = message.fate {
        return match completion.outcome {
            Err(Failure::Broke(Cause::TooLong { .. })) => {
                reading.bad_receive == BadReceive::TooShort
            }
            Err(Failure::Broke(Cause::LocalProtection { .. })) => {
                reading.bad_receive == BadReceive::Revoked
            }
            _ => false,
        };
    }
    let attached = message.imm.map_or(Attachment::Nothing, Attachment::Imm);
    let outcome = match deth(&message.headers) {
        Some(Deth { source, .. }) => Done::ReceivedDatagram { source },
        None if message.is_send() => Done::Received,
        None => Done::ReceivedWrite,
    };
    let content = [&message.in_front[..], &message.content].concat();
    completion.outcome == Ok(outcome)
        && completion.attached == attached
        && completion.len as usize == content.len()
        && (!message.is_send() || bytes(completion) == content)
}

fn bytes(completion: &Completion) -> &[u8] {
    match &completion.memory {
        doorbell_core::nic::Memory::Buf(buf) => buf,
        _ => &[],
    }
}
