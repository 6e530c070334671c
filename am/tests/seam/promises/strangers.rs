//! Strangers: programs that do not know a tag, at the address of a peer or asking an endpoint. They
//! learn neither tags nor keys of memory, and what they have heard admits them nowhere.

use doorbell_am::{
    Admits, Bundle, BundleConfig, ConnectError, Endpoint, EndpointConfig, Handlers, Name, Tag,
    Unwelcome,
};
use doorbell_verbs::{
    CompletionQueue, Listener, Nic, Private, Queues, QueuesConfig, Region, ServiceId, Unconnected,
};

use crate::promises::devices::Devices;
use crate::promises::hostile::hello;

const SERVICE: u64 = 9;
const TAG: Tag = Tag(0x7A6B_5C4D_3E2F_1908);

/// A tagged endpoint with a segment, by whose service number others have endpoints, too.
async fn tagged(nic: &Nic, tag: Tag) -> Endpoint {
    let bundle = Bundle::new(nic, &BundleConfig::default()).expect("room");
    let config = EndpointConfig {
        service: Some(SERVICE),
        admits: tag.into(),
        shows: Some(tag),
        segment: Some(Region::new(4096).into()),
        ..EndpointConfig::default()
    };
    Endpoint::builder().config(config).on_bundle(&bundle, Handlers::new()).await.expect("room")
}

/// A program with nothing but verbs, which remembers all that it is told.
struct Stranger {
    nic: Nic,
    completions: CompletionQueue,
    listener: Listener,
    heard: Vec<Private>,
}

impl Stranger {
    async fn at(nic: &Nic) -> Self {
        let completions = nic.completion_queue(1024).expect("room");
        let listener = nic.listen(ServiceId(SERVICE)).await.expect("nobody else listens");
        Self { nic: nic.clone(), completions, listener, heard: Vec::new() }
    }

    fn name(&self) -> Name {
        Name::at(self.nic.address().to_string(), SERVICE)
    }

    fn queues(&self) -> Unconnected<Queues> {
        self.nic.domain().queues(&QueuesConfig::new(&self.completions)).expect("room")
    }

    /// Hears a request, and refuses it with that answer.
    async fn refuse(&mut self, answer: &[u8]) -> Private {
        let incoming = self.listener.accept().await.expect("a request");
        let said = incoming.private().clone();
        self.heard.push(said.clone());
        incoming.reject(answer).expect("it is awaited");
        said
    }

    /// Hears a request, and accepts it with that greeting.
    async fn accept(&mut self, answer: &[u8]) -> Private {
        let incoming = self.listener.accept().await.expect("a request");
        let said = incoming.private().clone();
        self.heard.push(said.clone());
        // Whoever asked may have left by the time that it is accepted.
        let _ = self.queues().accept(incoming, answer).await;
        said
    }

    /// Asks an endpoint for a connection, which is refused. Returns the reason.
    async fn is_refused(&mut self, to: &Endpoint, asking: &[u8]) -> Private {
        let (address, service) = (to.name().address(), to.name().service());
        match self.queues().connect(Name::at(address, service.0), asking).await {
            Err(ConnectError::Refused { private, .. }) => {
                self.heard.push(private.clone());
                private
            }
            other => panic!("it is admitted, or not heard: {other:?}"),
        }
    }

    /// Makes sure that nothing of what the stranger has heard is the tag, or a key of memory.
    fn has_learnt_nothing(&self, of: &Endpoint) {
        let memory = of.segment().expect("it has one").remote();
        let (Tag(tag), key) = (TAG, memory.rkey().0);
        for said in &self.heard {
            let has = |what: &[u8]| said.windows(what.len()).any(|window| window == what);
            assert!(!has(&tag.to_be_bytes()) && !has(&tag.to_le_bytes()), "the tag: {said:?}");
            assert!(!has(&key.to_be_bytes()) && !has(&key.to_le_bytes()), "the key: {said:?}");
        }
    }
}

/// Half of the text of a refusal.
fn is_about_tag(private: &Private) -> bool {
    private.starts_with(b"the endpoint does not admit the tag")
}

/// The tag itself was in the first request of whoever connected.
#[tokio::test]
async fn whoever_waits_at_the_address_of_a_peer_learns_neither_the_tag_nor_where_memory_is() {
    for devices in [Devices::shm(2), Devices::udp(2)] {
        let near = tagged(&devices.nics[0], TAG).await;
        let mut stranger = Stranger::at(&devices.nics[1]).await;
        let name = stranger.name();
        let challenge = |flags| [&b"AM\x06\x81"[..], &[flags], &[3; 16], &[4; 16]].concat();
        for (answer, accepts) in [
            (hello(), true),
            (b"none of yours".to_vec(), false),
            // With a proof that is none, and without one.
            (challenge(2), false),
            (challenge(0), false),
        ] {
            let answers = async {
                match accepts {
                    true => stranger.accept(&answer).await,
                    false => stranger.refuse(&answer).await,
                }
            };
            let (connected, said) = tokio::join!(near.connect(&name), answers);
            let why = connected.expect_err("it is a stranger");
            let proves = said[32..].iter().any(|&byte| byte != 0);
            assert!(!proves, "it proves the tag to somebody who does not know it: {said:?}");
            match (&why, answer.get(4)) {
                (ConnectError::Unwelcome { why: Unwelcome::OtherKind(_), .. }, _) if accepts => {}
                (ConnectError::Unwelcome { why: Unwelcome::NotAdmitted { .. }, .. }, Some(2)) => {}
                (ConnectError::Unwelcome { why: Unwelcome::Unproved { .. }, .. }, Some(0)) => {}
                (ConnectError::Refused { .. }, Some(b' ')) => {}
                other => panic!("{other:?}"),
            }
        }
        stranger.has_learnt_nothing(&near);
        assert!(near.peer(0).is_err());
    }
}

#[tokio::test]
async fn a_stranger_who_asks_a_tagged_endpoint_is_refused_and_learns_nothing() {
    for devices in [Devices::shm(2), Devices::udp(2)] {
        let far = tagged(&devices.nics[0], TAG).await;
        let mut stranger = Stranger::at(&devices.nics[1]).await;
        assert!(is_about_tag(&stranger.is_refused(&far, &hello()).await), "it shows none");
        let knock = [&b"AM\x06\x80\0"[..], &SERVICE.to_be_bytes(), &[5; 16]].concat();
        let challenge = stranger.is_refused(&far, &knock).await;
        assert!(challenge.starts_with(b"AM\x06\x81"), "{challenge:?}");
        for proof in [[0; 16], [0xFF; 16], *challenge[21..].first_chunk().expect("a proof")] {
            let mut shows = hello();
            shows[3] |= 16 | (challenge[4] & 1) << 5;
            shows[32..48].fill(5);
            shows[48..64].copy_from_slice(&proof);
            assert!(is_about_tag(&stranger.is_refused(&far, &shows[..64]).await));
        }
        stranger.has_learnt_nothing(&far);
        far.set_admits(Admits::Nobody);
        assert!(is_about_tag(&stranger.is_refused(&far, &knock).await), "it asks for no proof");
    }
}

/// The proofs are about the two queue pairs, too: what one said to another is none of a third's.
#[tokio::test]
async fn whoever_passes_on_or_reflects_what_others_say_is_admitted_by_nobody() {
    for devices in [Devices::shm(3), Devices::udp(3)] {
        let near = tagged(&devices.nics[0], TAG).await;
        let far = tagged(&devices.nics[1], TAG).await;
        let mut stranger = Stranger::at(&devices.nics[2]).await;
        let name = stranger.name();
        // The second has its own challenge and its own greeting before it again.
        for member in [&far, &near] {
            let passes_on = async {
                let incoming = stranger.listener.accept().await.expect("a request");
                let knock = incoming.private().clone();
                let challenge = stranger.is_refused(member, &knock[..29]).await;
                incoming.reject(&challenge[..37]).expect("it is awaited");
                let incoming = stranger.listener.accept().await.expect("a request");
                let greeting = incoming.private().clone();
                stranger.heard.extend([knock, greeting.clone()]);
                assert!(is_about_tag(&stranger.is_refused(member, &greeting[..64]).await));
                let queues = stranger.queues();
                // It repeats the proof that it has got.
                let mut answer = hello();
                answer[3] |= 16;
                answer[48..64].copy_from_slice(&greeting[48..64]);
                let _ = queues.accept(incoming, &answer).await;
            };
            let (connected, ()) = tokio::join!(near.connect(&name), passes_on);
            let why = connected.expect_err("it is a stranger");
            assert!(
                matches!(why, ConnectError::Unwelcome { why: Unwelcome::Unproved { .. }, .. }),
                "{why}"
            );
        }
        stranger.has_learnt_nothing(&near);
        stranger.has_learnt_nothing(&far);
        near.connect(far.name()).await.expect("each knows the tag");
    }
}
