//! A byte stream and its listener, told what no end of a byte stream would say.
//!
//! The input is a hello and a list of messages, with lengths and immediates that are often nearly
//! right. They go to a listener and to the stream that it accepts, whose program reads and writes
//! meanwhile, from a queue pair.
//!
//! What is checked: nothing panics, what is read are the bytes that were sent, in their order, the
//! stream comes to an end, and the listener takes the next stream.
//!
//! Messages go over shared memory between NICs of one thread.

#[path = "../input.rs"]
mod input;

use std::cell::RefCell;
use std::time::Duration;

use doorbell_bytestream::{Config, Endpoint, Listener, ServiceId, Stream};
use doorbell_verbs::{Buf, Imm, Nic, QueuePair, QueuePairConfig, work};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use input::Input;

/// How long anything may take. It is the bound of a test that would hang else.
const LONG: Duration = Duration::from_secs(60);

const SERVICE: ServiceId = ServiceId(7);

/// The longest message that the listener's streams take.
const SEGMENT: usize = 1024;

/// The most messages of an input.
const MOST: usize = 64;

/// The bit of an immediate that ends a stream.
const END: u32 = 1 << 31;

/// A runtime with a listener, a peer that keeps the rules, and a NIC, which serve all inputs.
struct World {
    runtime: Runtime,
    listener: Listener,
    good: Endpoint,
    stranger: Nic,
}

impl World {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let (listener, good, stranger) = runtime.block_on(async {
            let nic = || Nic::open("shm");
            let config = Config { segment: SEGMENT, window: 4 * SEGMENT, ..Config::default() };
            let own = nic().await.expect("it opens");
            let endpoint = Endpoint::builder().config(config).on(&own).await;
            let listener = endpoint.expect("there is room").listen(SERVICE).await;
            let good = Endpoint::open("shm").await.expect("it opens");
            (listener.expect("nobody else listens"), good, nic().await.expect("it opens"))
        });
        Self { runtime, listener, good, stranger }
    }
}

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

/// Gives the messages of an input to a listener and its stream.
pub fn byte_stream(data: &[u8]) {
    WORLD.with_borrow_mut(|world| {
        let World { runtime, listener, good, stranger } = world.get_or_insert_with(World::new);
        let mut input = Input(data);
        runtime.block_on(async {
            let all = async {
                hears(listener, stranger, &mut input).await;
                is_well(listener, good).await;
            };
            timeout(LONG, all).await.expect("each end goes on");
        });
    });
}

async fn hears(listener: &mut Listener, stranger: &Nic, input: &mut Input<'_>) {
    let hello = hello(input);
    let Some(pair) = asks(stranger, listener, &hello).await else { return };
    let mut stream = listener.accept().await.expect("a peer asks");
    says(&pair, &mut stream, input).await;
    drop(pair);
    // The stream has come to an end by now, or does so when its peer has gone.
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
}

/// A hello that is often a proper one.
fn hello(input: &mut Input<'_>) -> Vec<u8> {
    let mut hello = b"DB-BYTES\0\x02\0\0\x10\0\0\0\x04\0".to_vec();
    let shape = input.u8();
    if shape < 64 {
        let at = usize::from(input.u8()) % hello.len();
        hello[at] = input.u8();
    }
    if shape < 16 {
        hello.truncate(shape.into());
    }
    hello
}

/// Asks the listener for a stream. Returns `None` if the listener refuses.
async fn asks(stranger: &Nic, listener: &Listener, hello: &[u8]) -> Option<QueuePair> {
    let pair = stranger.domain().queue_pair(&QueuePairConfig::default());
    let pair = pair.expect("there is room");
    for _ in 0..16 {
        pair.post_receive(Buf::with_capacity(4096)).expect("there is room");
    }
    pair.connect(listener.name(), hello).await.ok().map(|(pair, _)| pair)
}

/// Sends the messages of an input, while the stream's program reads and writes.
async fn says(pair: &QueuePair, stream: &mut Stream, input: &mut Input<'_>) {
    let (mut sent, mut read) = (0_usize, 0_usize);
    for _ in 0..MOST {
        if input.is_empty() {
            return;
        }
        let (kind, len) = (input.u8(), usize::from(input.u8()) * input.choose(&[0, 1, 1, 2, 4, 5]));
        let bytes: Vec<u8> = (sent..sent + len).map(|at| at as u8).collect();
        let mut send = work::Send::new(Buf::from(bytes));
        match kind % 8 {
            0 => send = send.imm(Imm(END | u32::from(kind / 8))),
            1 => send = send.imm(Imm((kind / 8).into())),
            2 => send = send.imm(Imm(u32::from(input.u16()) << 16 | u32::from(input.u16()))),
            _ => {}
        }
        // What can't be sent is to a stream that has ended, or has room for no more.
        match timeout(Duration::from_millis(2), pair.perform(send.awaited())).await {
            Ok(Ok(_)) => sent += len,
            _ => return,
        }
        let mut place = [0; 700];
        match input.u8() {
            0..80 => {
                let reading = timeout(Duration::from_millis(1), stream.read(&mut place));
                if let Ok(Ok(count)) = reading.await {
                    let is_next = |(at, byte): (usize, &u8)| *byte == (read + at) as u8;
                    assert!(place[..count].iter().enumerate().all(is_next), "from {read} on");
                    read += count;
                }
            }
            80..120 => {
                let _ = timeout(Duration::from_millis(1), stream.write(&[7; 500])).await;
            }
            120..124 => {
                let _ = timeout(Duration::from_millis(1), stream.shutdown()).await;
            }
            _ => {}
        }
    }
}

/// The listener takes a stream of a peer that keeps the rules, and the two talk.
async fn is_well(listener: &mut Listener, good: &Endpoint) {
    let name = listener.name().clone();
    let (asked, taken) = tokio::join!(good.connect(&name), listener.accept());
    let (mut asked, mut taken) = (asked.expect("it listens"), taken.expect("a peer asks"));
    let (body, mut found) = ([9; 3000], [0; 3000]);
    for _ in 0..2 {
        let (written, read) = tokio::join!(asked.write_all(&body), taken.read_exact(&mut found));
        written.expect("the peer reads");
        read.expect("the peer writes");
        assert!(found == body);
        std::mem::swap(&mut asked, &mut taken);
    }
}
