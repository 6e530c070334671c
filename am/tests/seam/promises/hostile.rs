//! A peer that says whatever comes to its mind.

use doorbell_am::{
    Bundle, BundleConfig, ConnectError, Endpoint, EndpointConfig, Event, Handlers, Name, Policy,
    ReplyId, RequestId, Tag, Unwelcome, Words,
};
use doorbell_verbs::work::Send;
use doorbell_verbs::{Buf, Imm, Nic, QueuesConfig, Region, ServiceId};

use crate::promises::devices::Devices;

const ASK: RequestId<u64> = RequestId::new(0, "ask");
const ANY: RequestId<Words> = RequestId::new(1, "any");
const TOLD: ReplyId<u64> = ReplyId::new(0, "told");

/// Makes the greeting of an endpoint that asks for a connection, as any program can.
pub fn hello() -> Vec<u8> {
    let mut hello = b"AM\x06\x02".to_vec();
    hello.extend(1_u64.to_be_bytes()); // its service
    hello.extend(8_u16.to_be_bytes()); // credits
    hello.extend(8_u16.to_be_bytes()); // how many of the other's it uses
    hello.extend(4096_u32.to_be_bytes()); // the longest payload
    hello.extend(0_u64.to_be_bytes()); // its handlers
    hello.extend(1000_u32.to_be_bytes()); // its patience
    hello.extend([7; 16]); // the number that it has drawn
    hello.extend([0; 16]); // the proof of a tag, which it does not show
    hello.extend([0; 20]); // its segment
    hello
}

struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 20
    }

    /// Bytes of which the first look like a header, more often than not.
    fn bytes(&mut self) -> Vec<u8> {
        let len = [0, 8, 16, 64, 200, 4096, 4240][self.next() as usize % 7];
        let mut bytes: Vec<u8> = (0..len).map(|_| self.next() as u8).collect();
        if len >= 8 && !self.next().is_multiple_of(4) {
            let kind = self.next() as u32 % 8;
            let words = [self.next() as u32 % 20, 31][usize::from(self.next().is_multiple_of(8))];
            let handler = [0, 1, 2, 4094, 4095][self.next() as usize % 5];
            let call = [0, 1, 7, 4095][self.next() as usize % 4];
            let imm = kind << 29 | words << 24 | handler << 12 | call;
            let payload = [0, 8, 56, len as u32, u32::MAX][self.next() as usize % 5];
            bytes[..4].copy_from_slice(&imm.to_le_bytes());
            bytes[4..8].copy_from_slice(&payload.to_le_bytes());
            if words == 31 && len > 8 {
                let count = [0, 30, 31, 100, len as u64 / 8, u64::MAX / 8, u64::MAX];
                let count = count[self.next() as usize % count.len()];
                bytes[8..16].copy_from_slice(&count.to_le_bytes());
            }
        }
        bytes
    }
}

/// Sends such messages, each on a connection that stands, until `count` were sent.
async fn babble(nic: &Nic, service: doorbell_verbs::ServiceId, to: &str, seed: u64, count: usize) {
    let (mut draw, mut sent) = (Draw(seed), 0);
    while sent < count {
        let mut completions = nic.completion_queue(1024).expect("room");
        let config = QueuesConfig { receive_depth: 256, ..QueuesConfig::new(&completions) };
        let mut own = nic.domain().queues(&config).expect("room");
        (0..256).for_each(|_| own.post_receive(1, Buf::with_capacity(8192)).expect("room"));
        let connected = own.connect(Name::at(to, service.0), &hello()).await;
        let (mut queues, _) = connected.expect("whoever says hello is let in");
        for _ in 0..16 {
            let bytes = draw.bytes();
            let message = Send::new(Buf::from(bytes));
            let message = if draw.next().is_multiple_of(3) {
                message.imm(Imm(draw.next() as u32))
            } else {
                message
            };
            if queues.send.post(message).is_err() {
                break;
            }
            sent += 1;
            // Its own end first, or an answer to something before it.
            while completions.completion().await.id == 1 {}
        }
        drop(queues);
    }
}

#[tokio::test]
async fn a_peer_that_sends_anything_causes_no_panic_and_others_are_served() {
    let devices = Devices::shm(3);
    let segment = Region::new(4096);
    let bundle = |number: usize| Bundle::new(&devices.nics[number], &BundleConfig::default());
    let (server, client) = (bundle(0).expect("room"), bundle(1).expect("room"));
    let handlers = Handlers::new()
        .request(ASK, |request, number| request.reply(TOLD, number + 1))
        .request(ANY, |request, _| assert!(request.payload().len() <= 4096))
        .reply(TOLD, |_, _| {});
    let config = EndpointConfig { segment: Some(segment.into()), ..EndpointConfig::default() };
    let server_end =
        Endpoint::builder().config(config).on_bundle(&server, handlers).await.expect("room");
    let client = Endpoint::on_bundle(&client, Handlers::new()).await.expect("room");
    let peer = client.map(0, server_end.name(), Tag(1)).await.expect("it is there");
    let (address, service) = (server_end.name().address(), server_end.name().service());
    for seed in 0..20 {
        babble(&devices.nics[2], service, address, seed, 100).await;
        for number in 0..20 {
            let told = peer.call(ASK, number).await.expect("others are served");
            assert_eq!(told.arguments(TOLD), Ok(number + 1));
        }
    }
    let counted = server.statistics();
    assert!(counted.malformed > 0 && counted.undelivered > 0, "{counted:?}");
    assert_eq!(counted.panics, 0, "{counted:?}");
}

/// A hello that would have no message fit, and one for other messages than were asked for.
#[tokio::test]
async fn a_peer_that_answers_without_a_sound_greeting_is_not_mapped() {
    let devices = Devices::shm(2);
    let bundle = Bundle::new(&devices.nics[0], &BundleConfig::default()).expect("room");
    let config = EndpointConfig { policy: Policy::PerSize, ..EndpointConfig::default() };
    let per_size =
        Endpoint::builder().config(config).on_bundle(&bundle, Handlers::new()).await.expect("room");
    let config = EndpointConfig::default();
    let together =
        Endpoint::builder().config(config).on_bundle(&bundle, Handlers::new()).await.expect("room");
    let nic = &devices.nics[1];
    let mut listener = nic.listen(ServiceId(9)).await.expect("nobody else listens");
    let name = Name::at(nic.address().to_string(), 9);
    let mut short = hello();
    short[16..20].fill(0);
    for (endpoint, hello) in [(&together, &short), (&per_size, &short), (&per_size, &hello())] {
        let completions = nic.completion_queue(64).expect("room");
        let own = nic.domain().queues(&QueuesConfig::new(&completions)).expect("room");
        let answers =
            async { own.accept(listener.accept().await.expect("a request"), hello).await };
        let (mapped, _stands) = tokio::join!(endpoint.map(0, &name, Tag(1)), answers);
        assert!(matches!(
            mapped,
            Err(ConnectError::Unwelcome { why: Unwelcome::OtherKind(_), .. })
        ));
    }
}

/// Eight requests are allowed, and kept. The ninth would take a receive that others were promised,
/// and what it shares a send with is of no use either.
#[tokio::test]
async fn a_peer_that_sends_more_than_it_may_is_cut_off() {
    let devices = Devices::shm(2);
    let server = Bundle::new(&devices.nics[0], &BundleConfig::default()).expect("room");
    let (keeps, mut kept) = tokio::sync::mpsc::unbounded_channel();
    let handlers = Handlers::new().request(ASK, move |request, _| {
        keeps.send(request.keep()).unwrap_or_else(|_| panic!("it is awaited"));
    });
    let far = Endpoint::on_bundle(&server, handlers).await.expect("room");
    let mut events = far.events();
    let completions = devices.nics[1].completion_queue(64).expect("room");
    let own = devices.nics[1].domain().queues(&QueuesConfig::new(&completions)).expect("room");
    let (address, service) = (far.name().address(), far.name().service());
    let (mut queues, _) =
        own.connect(Name::at(address, service.0), &hello()).await.expect("it is let in");
    let mut request = [0; 16];
    request[..4].copy_from_slice(&(1_u32 << 24).to_le_bytes());
    for _ in 0..8 {
        queues.send.post(Send::inline(&request).expect("few")).expect("room");
    }
    let mut all = Vec::new();
    for _ in 0..8 {
        all.extend(kept.recv().await);
    }
    assert_eq!(server.statistics().malformed, 0);
    queues.send.post(Send::inline(&request.repeat(3)).expect("few")).expect("room");
    queues.connection.ended().await;
    assert_eq!((all.len(), server.statistics().malformed), (8, 1));
    assert!(kept.try_recv().is_err(), "none of the three was handled");
    let told: Vec<_> = std::iter::from_fn(|| events.try_recv().ok()).collect();
    assert!(matches!(told[..], [Event::Linked(_), Event::Overrun(_), Event::Gone(..)]));
}
