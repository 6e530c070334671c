//! Tracing spans of connections: each operation that waits has one, which names its queue pairs.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};

use doorbell_verbs::{Name, PathMtu, QueuePairConfig, Side};
use tokio::net::{TcpListener, TcpStream};
use tracing::dispatcher::{DefaultGuard, Dispatch};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::common::{End, Over, Runs, SERVICE, address, brief, connected, nics, run};

/// A span that was opened.
#[derive(Clone, Default, Debug)]
struct Opened {
    name: &'static str,
    fields: BTreeMap<&'static str, String>,
    entered: usize,
}

impl Visit for Opened {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }
}

impl Opened {
    fn is(&self, name: &str, fields: &[(&'static str, &dyn ToString)]) {
        let fields = fields.iter().map(|(name, value)| (*name, value.to_string())).collect();
        assert_eq!((self.name, &self.fields), (name, &fields));
        assert!(self.entered > 0, "{self:?} was never entered");
    }
}

/// A subscriber that keeps all spans of this crate.
#[derive(Clone, Default)]
struct Watcher(Arc<Mutex<Vec<Opened>>>);

impl Watcher {
    /// Keeps the spans of this thread. Whether anybody wants a span is asked once for all threads;
    /// and while there is only one subscriber, only of the thread that comes to the span first,
    /// which may be another test's. So there are always two subscribers.
    fn watch(&self) -> DefaultGuard {
        static OTHER: OnceLock<Dispatch> = OnceLock::new();
        OTHER.get_or_init(|| Dispatch::new(Watcher::default()));
        tracing::subscriber::set_default(self.clone())
    }

    fn at(&self, span: &Id, does: impl FnOnce(&mut Opened)) {
        let mut opened = self.0.lock().expect("nobody panics here");
        does(&mut opened[span.into_u64() as usize - 1]);
    }

    /// Returns the spans of a name, in the order in which they were opened.
    fn named(&self, name: &str) -> Vec<Opened> {
        let opened = self.0.lock().expect("nobody panics here");
        opened.iter().filter(|span| span.name == name).cloned().collect()
    }
}

impl Subscriber for Watcher {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target().starts_with("doorbell_verbs")
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut span = Opened { name: attributes.metadata().name(), ..Opened::default() };
        attributes.record(&mut span);
        let mut opened = self.0.lock().expect("nobody panics here");
        opened.push(span);
        Id::from_u64(opened.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        self.at(span, |opened| values.record(opened));
    }

    fn enter(&self, span: &Id) {
        self.at(span, |opened| opened.entered += 1);
    }

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, _event: &Event<'_>) {}

    fn exit(&self, _span: &Id) {}
}

#[test]
fn connecting_accepting_and_disconnecting_have_spans_that_name_their_queue_pairs() {
    run(Runs::CurrentThread, || async {
        let (here, there) = nics(Over::Shm, &brief());
        let watcher = Watcher::default();
        let watched = watcher.watch();
        let (near, far): (End, End) = connected(&here, &there).await;
        let (one, other) = (near.pair.qpn(), far.pair.qpn());
        near.pair.connection().disconnect(&[]).await.expect("it stands");
        drop(watched);
        let [connect] = &watcher.named("connect")[..] else { panic!("one is") };
        let to = address(&there);
        connect
            .is("connect", &[("to", &to), ("service", &SERVICE), ("qpn", &one), ("peer", &other)]);
        let [accept] = &watcher.named("accept")[..] else { panic!("one is") };
        accept.is("accept", &[("service", &SERVICE), ("qpn", &other), ("peer", &one)]);
        let [disconnect] = &watcher.named("disconnect")[..] else { panic!("one is") };
        disconnect.is("disconnect", &[("qpn", &one), ("peer", &other)]);
    });
}

/// A connection that failed has a span, without a peer that was never heard of.
#[test]
fn a_failed_connect_has_a_span_too() {
    run(Runs::CurrentThread, || async {
        let (here, there) = nics(Over::Shm, &brief());
        let watcher = Watcher::default();
        let watched = watcher.watch();
        let (domain, to) = (here.domain(), address(&there));
        let pair = domain.queue_pair(&QueuePairConfig::default()).expect("room");
        let qpn = pair.qpn();
        let refused = pair.connect(Name::at(&*to, SERVICE.0), &[]).await;
        refused.expect_err("nobody listens");
        drop(watched);
        let [connect] = &watcher.named("connect")[..] else { panic!("one is") };
        connect.is("connect", &[("to", &to), ("service", &SERVICE), ("qpn", &qpn)]);
    });
}

#[test]
fn exchanging_addresses_has_a_span_that_names_its_queue_pairs() {
    run(Runs::CurrentThread, || async {
        let nic = doorbell_verbs::Nic::builder()
            .config(brief())
            .open("udp:127.0.0.1:0")
            .await
            .expect("a port");
        let listener =
            TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("a port");
        let to = listener.local_addr().expect("it is bound");
        let (asks, takes) = tokio::join!(TcpStream::connect(to), listener.accept());
        let (mut asks, mut takes) = (asks.expect("it listens"), takes.expect("it was asked").0);
        let domain = nic.domain();
        let pair = || domain.queue_pair(&QueuePairConfig::default()).expect("room");
        // Two of one NIC: whom a GID names is at the same port.
        let (one, other) = (pair(), pair());
        let (one_qpn, other_qpn) = (one.qpn(), other.qpn());
        let watcher = Watcher::default();
        let watched = watcher.watch();
        let mtu = PathMtu::Mtu1024;
        let (one, other) = tokio::join!(
            one.exchange(&mut asks, Side::Client, mtu),
            other.exchange(&mut takes, Side::Server, mtu)
        );
        drop(watched);
        drop((one.expect("they agree"), other.expect("they agree")));
        let [client, server] = &watcher.named("exchange")[..] else { panic!("two are") };
        let side = |name: &'static str, (qpn, peer)| (name.to_owned(), qpn, peer);
        for (span, (side, qpn, peer)) in [
            (client, side("Client", (one_qpn, other_qpn))),
            (server, side("Server", (other_qpn, one_qpn))),
        ] {
            span.is("exchange", &[("side", &side), ("qpn", &qpn), ("peer", &peer)]);
        }
    });
}
