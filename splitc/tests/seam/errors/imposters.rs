//! Programs that are no processes of a world, at the address of one or asking one: without the key,
//! and with it.

use std::sync::Arc;
use std::time::Duration;

use doorbell_am::proof::{Nonce, Proof, Statement};
use doorbell_splitc::{Config, Job, JoinError, RunError};
use doorbell_verbs::{
    CompletionQueue, ConnectError, Connection, Name, Nic, Private, Qpn, Queues, QueuesConfig,
    Region, RemoteMemory, Rights, ServiceId, SharedMemory, Unconnected,
};

use crate::common::{KEY, config, in_time};
use crate::errors::strangers::addresses;

const MAGIC: [u8; 8] = *if cfg!(target_endian = "little") { b"SplitC2l" } else { b"SplitC2b" };
const HEAP: usize = 1 << 20;
/// The length of a heap with the library's own page.
const WHOLE: u64 = HEAP as u64 + 4096;

/// The number of the service that takes one-sided requests, of messages and of collectives.
fn services(rank: u64) -> [ServiceId; 3] {
    [3, 1, 2].map(|purpose| ServiceId(0x5343 << 48 | rank << 8 | purpose))
}

/// A program with nothing but verbs.
struct Imposter {
    nic: Nic,
    completions: CompletionQueue,
}

impl Imposter {
    fn at(address: &str) -> Self {
        let nic = Nic::builder().open_blocking(address).expect("nobody has it");
        let completions = nic.completion_queue(4096).expect("room");
        Self { nic, completions }
    }

    fn queues(&self) -> Unconnected<Queues> {
        self.nic.domain().queues(&QueuesConfig::new(&self.completions)).expect("room")
    }
}

/// What process 1 says to process 0 when it joins, with a key.
struct Speech {
    key: u64,
    nonces: [Nonce; 2],
}

impl Speech {
    fn knock(nonce: Nonce) -> Vec<u8> {
        [&MAGIC[..], &[1], &1_u32.to_be_bytes(), &nonce.0].concat()
    }

    fn statement(&self, label: &str, parts: &[&[u8]]) -> Statement {
        let (asks, asked) = (1_u32.to_be_bytes(), 0_u32.to_be_bytes());
        let own: [&[u8]; 4] = [&asks, &asked, &self.nonces[0].0, &self.nonces[1].0];
        Statement::of(label, &[&own, parts].concat())
    }

    fn told(&self, heap: RemoteMemory, qpn: Qpn, odd: bool) -> Vec<u8> {
        let hides = self.statement("doorbell split-c: the heap", &[&1_u32.to_be_bytes()]);
        let heap = hides.hide(self.key, heap.to_bytes());
        let told = |proof: Proof| {
            let (kind, nonce) = ([3 | u8::from(odd) << 7], self.nonces[0]);
            let (rank, size) = (1_u32.to_be_bytes(), 2_u32.to_be_bytes());
            [&MAGIC[..], &kind, &rank, &size, &heap, &nonce.0, &proof.0].concat()
        };
        let (unproven, qpn) = (told(Proof::default()), qpn.get().to_be_bytes());
        let statement = self.statement("doorbell split-c: the asking side", &[&unproven, &qpn]);
        told(statement.proven_by(self.key))
    }
}

/// Why a member that is no process of a world that anybody has was not let in.
fn refused(ended: Result<(), RunError>) -> JoinError {
    match ended {
        Err(RunError::Join { why, .. }) => why,
        other => panic!("{other:?}"),
    }
}

fn member(rank: usize, all: &[String]) -> Result<(), RunError> {
    let config = Config { heap: HEAP, start: Duration::from_secs(20), ..config() };
    Job::member(rank, all).config(config).run(async |_| Ok(()))
}

fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

/// The first request had the key, and the place of the heap with its key.
#[test]
fn whoever_waits_at_the_address_of_a_process_learns_neither_the_key_nor_where_a_heap_is() {
    for device in ["shm", "udp"] {
        let all = addresses(device, 2);
        let (heard, ended) = in_time(move || {
            let own = all[0].clone();
            let joins = std::thread::spawn(move || member(1, &all));
            let heard = block_on(hears(&Imposter::at(&own), || joins.is_finished()));
            (heard, joins.join().expect("no panic"))
        });
        let why = refused(ended);
        assert!(matches!(why, JoinError::Stranger { rank: 0, .. }), "{why:?}");
        assert!(why.to_string().contains("key"), "{why}");
        assert!(heard.len() > 1, "{heard:?}");
        for said in heard {
            let has = |what: [u8; 8]| said.windows(8).any(|window| window == what);
            assert!(!has(KEY.to_be_bytes()) && !has(KEY.to_le_bytes()), "{said:?}");
            // Only what knocks, and says that the key is another.
            let kind = said.starts_with(&MAGIC).then(|| said[8]);
            assert!(matches!(kind, None | Some(1 | 4)), "{said:?}");
        }
    }
}

/// Hears all that is asked of the services of process 0, until that is over, and answers each
/// request with a challenge that has some proof.
async fn hears(imposter: &Imposter, is_over: impl Fn() -> bool) -> Vec<Private> {
    let mut listeners = Vec::new();
    for service in services(0) {
        listeners.push(imposter.nic.listen(service).await.expect("nobody else listens"));
    }
    let mut heard = Vec::new();
    while !is_over() {
        for listener in &mut listeners {
            let patience = Duration::from_millis(5);
            let Ok(Ok(incoming)) = tokio::time::timeout(patience, listener.accept()).await else {
                continue;
            };
            heard.push(incoming.private().clone());
            let answer = match incoming.private().starts_with(&MAGIC) {
                true => [&MAGIC[..], &[2], &[5; 32]].concat(),
                false => [&b"AM\x06\x81\x02"[..], &[5; 32]].concat(),
            };
            let _ = incoming.reject(&answer);
        }
    }
    heard
}

/// Asks process 0 for a challenge, and tells it something as process 1.
async fn tells(
    imposter: &Imposter,
    to: &str,
    key: u64,
    heap: RemoteMemory,
) -> Result<(Queues, Private), ConnectError> {
    let (service, nonce) = (services(0)[0], Nonce::draw());
    let challenge = loop {
        let knocked =
            imposter.queues().connect(Name::at(to, service.0), &Speech::knock(nonce)).await;
        match knocked {
            Err(ConnectError::Refused { private, .. }) if private.starts_with(&MAGIC) => {
                break private;
            }
            // The process is not there yet.
            _ => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    };
    let posed = Nonce(*challenge[9..].first_chunk().expect("a challenge"));
    let speech = Speech { key, nonces: [nonce, posed] };
    let queues = imposter.queues();
    let told = speech.told(heap, queues.qpn(), challenge[8] & 0x80 != 0);
    queues.connect(Name::at(to, service.0), &told).await
}

#[test]
fn whoever_asks_a_process_without_the_key_learns_nothing_but_that() {
    for device in ["shm", "udp"] {
        let all = addresses(device, 2);
        let (private, ended) = in_time(move || {
            let (own, to) = (all[1].clone(), all[0].clone());
            let joins = std::thread::spawn(move || member(0, &all));
            let imposter = Imposter::at(&own);
            let heap = RemoteMemory::from_bytes([0; 20]);
            let answer = block_on(tells(&imposter, &to, KEY ^ 1, heap));
            (answer, joins.join().expect("no panic"))
        });
        let Err(ConnectError::Refused { private, .. }) = private else { panic!("{private:?}") };
        let said = [&MAGIC[..], b"it has another key"].concat();
        assert!(private.starts_with(&said), "{private:?}");
        assert!(private[said.len()..].iter().all(|&byte| byte == 0), "{private:?}");
        let why = refused(ended);
        assert!(matches!(why, JoinError::Stranger { rank: 1, .. }), "{why:?}");
    }
}

/// The first such stranger ended the start.
#[test]
fn whoever_asks_without_the_key_from_another_address_keeps_nobody_from_starting() {
    let all = addresses("udp", 2);
    let ended = in_time(move || {
        let (first, to) = (all.clone(), all[0].clone());
        let joins = std::thread::spawn(move || member(0, &first));
        let imposter = Imposter::at("udp:127.0.0.1:0");
        let heap = RemoteMemory::from_bytes([0; 20]);
        let answer = block_on(tells(&imposter, &to, KEY ^ 1, heap));
        assert!(matches!(answer, Err(ConnectError::Refused { .. })), "{answer:?}");
        let says = [&MAGIC[..], &[4], &1_u32.to_be_bytes()].concat();
        let answer = block_on(imposter.queues().connect(Name::at(&*to, services(0)[0].0), &says));
        assert!(matches!(answer, Err(ConnectError::Refused { .. })), "{answer:?}");
        [member(1, &all), joins.join().expect("no panic")]
    });
    assert!(ended.iter().all(Result::is_ok), "{ended:?}");
}

#[test]
fn a_process_that_is_missing_and_was_said_to_be_elsewhere_is_reported_so() {
    let all = addresses("udp", 2);
    let ended = in_time(move || {
        let to = all[0].clone();
        let config = Config { start: Duration::from_secs(2), ..config() };
        let joins = Job::member(0, &all).config(config);
        let joins = std::thread::spawn(move || joins.run(async |_| Ok(())));
        let imposter = Imposter::at("udp:127.0.0.1:0");
        let answer = block_on(tells(&imposter, &to, KEY ^ 1, RemoteMemory::from_bytes([0; 20])));
        assert!(matches!(answer, Err(ConnectError::Refused { .. })), "{answer:?}");
        joins.join().expect("no panic")
    });
    let why = refused(ended);
    assert!(matches!(why, JoinError::Missing { rank: 1, .. }), "{why:?}");
    assert!(why.to_string().contains("somebody at another address"), "{why}");
}

/// A process that told a whole heap and granted a part was let in, and an access beyond the part
/// panicked.
#[test]
fn a_process_that_grants_less_than_the_heap_that_it_tells_is_refused() {
    let all = addresses("shm", 2);
    let ended = in_time(move || {
        let (own, to) = (all[1].clone(), all[0].clone());
        let joins = std::thread::spawn(move || member(0, &all));
        let imposter = Imposter::at(&own);
        let part = Arc::new(SharedMemory::reserve(4096).expect("memory"));
        let domain = imposter.nic.domain();
        let part = domain.register_shared(part, Rights::REMOTE).expect("room");
        let whole = RemoteMemory::new(part.remote().address(), part.remote().rkey(), WHOLE);
        block_on(async {
            let (queues, _) = tells(&imposter, &to, KEY, whole).await.expect("it knows the key");
            let connection: &Connection = &queues.connection;
            connection.grant(&part).expect("it is there");
            while !joins.is_finished() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        joins.join().expect("no panic")
    });
    let why = refused(ended);
    assert!(matches!(why, JoinError::Stranger { rank: 1, .. }), "{why:?}");
    let text = why.to_string();
    assert!(text.contains("granted 4096 bytes") && text.contains(&WHOLE.to_string()), "{text}");
}

/// A heap that was shorter than the page of the library's own was taken for one without bytes.
#[test]
fn a_process_that_tells_a_heap_of_another_length_is_refused() {
    for len in [0, 4095, WHOLE - 1, WHOLE + 1, u64::MAX] {
        let all = addresses("shm", 2);
        let (answer, ended) = in_time(move || {
            let (own, to) = (all[1].clone(), all[0].clone());
            let joins = std::thread::spawn(move || member(0, &all));
            let imposter = Imposter::at(&own);
            let region = Region::new(64);
            let memory = imposter.nic.domain().register(region, Rights::REMOTE).expect("room");
            let remote = memory.remote();
            let heap = RemoteMemory::new(remote.address(), remote.rkey(), len);
            let answer = block_on(tells(&imposter, &to, KEY, heap));
            (answer.map(drop), joins.join().expect("no panic"))
        });
        assert!(matches!(answer, Err(ConnectError::Refused { .. })), "{len}: {answer:?}");
        let why = refused(ended);
        assert!(matches!(why, JoinError::Stranger { rank: 1, .. }), "{len}: {why:?}");
    }
}
