//! The connection manager beside a NIC, and a program that meets its peer by it, as `rping` does.
//!
//! The program asks on customary terms, or takes up what is asked, moves its queue pair as
//! [`doorbell_core::connect`] says, and in the end leaves. What each side draws for itself, its name for
//! the connection, the number of its queue pair and the transaction's, stands in the datagrams in
//! the place of what was recorded. Nothing else is changed.

use std::time::Duration;

use doorbell_core::cm::{
    self, ConnectionId, ConnectionManager, Event, Extensions, Reply, Request, Usage, Why,
};
use doorbell_core::connect::{Agreement, Route};
use doorbell_core::encap::{Path, PathId};
use doorbell_core::nic::{Change, Nic, QueuePairEnds, Rights, Seed};
use doorbell_core::time::Time;
use doorbell_core::wire::cm::{
    self as wire, CmPort, CmTimeout, Drep, Dreq, Mad, Message, Rep, Req, Rtu,
};
use doorbell_core::wire::{CommId, Qpn, ServiceId, TransactionId};

use crate::golden::recording::{Exchange, Recorded};

/// Where `rping`'s server listens.
const PORT: CmPort = CmPort(7174);

/// How many reads it has under way, and takes.
const READS: u8 = 1;

/// The path of management datagrams.
const MANAGERS: PathId = PathId(1);

/// Longer than a connection's time-wait.
const LONG: Duration = Duration::from_secs(100);

/// What an end is called.
#[derive(Clone, Copy)]
struct Names {
    connection: CommId,
    qpn: Qpn,
}

pub struct Managed {
    manager: ConnectionManager<Route>,
    /// Which end of the exchange it stands for, which one asks, and which one leaves.
    end: usize,
    asks: usize,
    leaves: usize,
    names: [Names; 2],
    /// The transaction's number, once somebody has said it.
    transaction: Option<TransactionId>,
    /// The connection, once there is one.
    id: Option<ConnectionId>,
    request: Request,
    reply: Reply,
    /// The ways to the other end, of the manager's datagrams and of data.
    way: Route,
    path: Path,
    ended: Option<Why>,
}

fn parse(datagram: &Recorded) -> Mad<'_> {
    Mad::parse(&datagram.payload).expect("a datagram of a connection manager's")
}

/// What the recorded program asked for: beside what is customary, one read at a time, and patience.
fn request(req: &Req<'_>, qpn: Qpn) -> Request {
    let (addressing, _) = req.ip_cm().expect("a port is asked for with addresses");
    let request = Request::to_port(PORT, qpn, req.psn, addressing);
    Request {
        responder_resources: wire::ResponderResources(READS),
        initiator_depth: wire::InitiatorDepth(READS),
        remote_timeout: CmTimeout::new(20),
        local_timeout: CmTimeout::new(20),
        path: wire::Path { flow_label: req.primary.flow_label, ..request.path },
        ..request
    }
}

impl Managed {
    /// A manager beside a NIC with a queue pair of this number, from which data is to go along this
    /// path.
    pub fn new(exchange: &Exchange, end: usize, qpn: Qpn, path: Path) -> Self {
        let datagrams: Vec<_> = exchange.packets.iter().filter(|p| p.is_management()).collect();
        let [asked, replied, .., left, _] = datagrams[..] else { panic!("{datagrams:?}") };
        let (Mad { transaction, message: Message::Req(req) }, Message::Rep(rep)) =
            (parse(asked), parse(replied).message)
        else {
            panic!("{asked:?} and {replied:?}")
        };
        let (asks, leaves) = (asked.from, left.from);
        let guid = if end == asks { req.ca_guid } else { rep.ca_guid };
        let (config, seed) = (cm::Config::new(guid), Seed::from_number(1));
        let mut manager = ConnectionManager::new(config, seed).unwrap();
        if end != asks {
            manager.listen(ServiceId::from_tcp_port(PORT), 1).unwrap();
        }
        let mut names = [Names { connection: CommId(0), qpn }; 2];
        names[1 - end] = match end == asks {
            true => Names { connection: rep.local, qpn: rep.qpn },
            false => Names { connection: req.local, qpn: req.qpn },
        };
        let request = request(&req, names[asks].qpn);
        let reply = Reply::to(&request, names[1 - asks].qpn, rep.psn, READS);
        let ours = datagrams.iter().find(|datagram| datagram.from == end).expect("both speak");
        let way = Route::along(&Path::new(MANAGERS, ours.outer));
        let (id, ended, transaction) = (None, None, (end != asks).then_some(transaction));
        Self {
            manager,
            end,
            asks,
            leaves,
            names,
            transaction,
            id,
            request,
            reply,
            way,
            path,
            ended,
        }
    }

    /// Does what this end's program did for its manager to say this, if it was of its own accord.
    pub fn speak(&mut self, datagram: &Recorded, nic: &mut Nic) -> Result<(), String> {
        match parse(datagram).message {
            Message::Req(_) => {
                self.change(nic, self.agreed().init(Rights::REMOTE))?;
                let id = self.manager.connect(self.way, &self.request, b"");
                self.named(id.map_err(|why| why.to_string())?);
            }
            Message::Dreq(_) => {
                self.change(nic, Change::Error)?;
                let id = self.id.ok_or("there is no connection")?;
                self.manager.disconnect(id, b"").map_err(|why| why.to_string())?;
            }
            // The others answer what came.
            _ => {}
        }
        Ok(())
    }

    /// Takes what has come to the NIC for the manager, and does what its events say.
    pub fn listen(&mut self, nic: &mut Nic) -> Result<(), String> {
        while let Some(received) = nic.management() {
            self.manager.receive(&Route::back(&received), &received.bytes);
        }
        while let Some(event) = self.manager.event() {
            self.hear(event, nic)?;
        }
        Ok(())
    }

    fn hear(&mut self, event: Event<Route>, nic: &mut Nic) -> Result<(), String> {
        match event {
            Event::Asked { id, request, extensions: Extensions::NONE, private, .. }
                if *request == self.request && private == [0; 56] =>
            {
                self.named(id);
                self.change(nic, self.agreed().init(Rights::REMOTE))?;
                self.ready_to_receive(nic)?;
                let accepted = self.manager.accept(id, &self.reply, b"");
                accepted.map(drop).map_err(|why| why.to_string())
            }
            Event::Replied { id, reply, extensions: Extensions::NONE, private }
                if *reply == self.reply && private == [0; 196] =>
            {
                self.ready_to_receive(nic)?;
                self.ready_to_send(nic)?;
                self.manager.ready(id, b"").map_err(|why| why.to_string())
            }
            Event::Established { .. } => self.ready_to_send(nic),
            Event::Ended { why, .. } => {
                self.ended = Some(why);
                self.change(nic, Change::Error)
            }
            other => Err(format!("told of {other:#?}")),
        }
    }

    /// Hands the NIC what the manager has to say.
    pub fn transmit(&mut self, nic: &mut Nic) -> Result<(), String> {
        while let Some(datagram) = self.manager.transmit() {
            let mad = Mad::parse(&datagram.bytes).map_err(|why| why.to_string())?;
            self.transaction.get_or_insert(mad.transaction);
            let path = datagram.way.path(MANAGERS);
            nic.manage(path, datagram.bytes).map_err(|why| why.to_string())?;
        }
        Ok(())
    }

    /// A recorded datagram with what the ends are called here.
    pub fn renamed(&self, datagram: &Recorded) -> Recorded {
        let [from, to] = [self.names[datagram.from], self.names[1 - datagram.from]];
        let (local, remote) = (from.connection, to.connection);
        let Mad { transaction, message } = parse(datagram);
        let message = match message {
            Message::Req(req) => Req { local, qpn: from.qpn, ..req }.into(),
            Message::Rep(rep) => Rep { local, remote, qpn: from.qpn, ..rep }.into(),
            Message::Rtu(rtu) => Rtu { local, remote, ..rtu }.into(),
            Message::Dreq(dreq) => Dreq { local, remote, remote_qpn: to.qpn, ..dreq }.into(),
            Message::Drep(drep) => Drep { local, remote, ..drep }.into(),
            other => other,
        };
        let mut payload = [0; Mad::LEN];
        Mad { transaction: self.transaction.unwrap_or(transaction), message }.emit(&mut payload);
        Recorded { payload: payload.to_vec(), ..datagram.clone() }
    }

    /// Whether the connection was ended as it was recorded, and leaves nothing behind.
    pub fn check_end(&mut self, nic: &mut Nic, ends: &mut QueuePairEnds) -> Result<(), String> {
        let agreed = match (&self.ended, self.leaves == self.end) {
            (Some(Why::Agreed { private }), true) => *private == [0; 224],
            (Some(Why::PeerLeft { private }), false) => *private == [0; 220],
            _ => false,
        };
        if !agreed {
            return Err(format!("ended for {:?}", self.ended));
        }
        self.manager.advance(Time::ZERO + LONG);
        let id = self.id.ok_or("there was no connection")?;
        let released = Event::Released { id, qpn: Some(ends.qpn) };
        let last = self.manager.event();
        let usage = Usage { services: 0, ..self.manager.usage() };
        if last != Some(released) || usage != Usage::default() {
            return Err(format!("{last:?} was the last, and {usage:?} is left"));
        }
        nic.reset(&mut ends.send, &mut ends.receive).map_err(|why| why.to_string())
    }

    fn named(&mut self, id: ConnectionId) {
        self.id = Some(id);
        self.names[self.end].connection = id.comm_id();
    }

    fn agreed(&self) -> Agreement {
        match self.asks == self.end {
            true => Agreement::requesters(&self.request, &self.reply),
            false => Agreement::responders(&self.request, &self.reply),
        }
    }

    fn ready_to_receive(&self, nic: &mut Nic) -> Result<(), String> {
        let connection = self.agreed().connection(self.path.in_the_clear(), Extensions::NONE);
        self.change(nic, Change::ReadyToReceive(Box::new(connection)))
    }

    fn ready_to_send(&self, nic: &mut Nic) -> Result<(), String> {
        self.change(nic, Change::ReadyToSend(self.agreed().sending(Extensions::NONE)))
    }

    fn change(&self, nic: &mut Nic, change: Change) -> Result<(), String> {
        nic.change(self.names[self.end].qpn, change).map_err(|why| why.to_string())
    }
}
