//! Packets to an endpoint of streams, from an endpoint of Active Messages.

use doorbell_am::{self as am, Handlers, ReplyId, RequestId};
use doorbell_messages::streams::{Endpoint, HandlerError, Incoming, Peer, StreamId};

use super::MOST;
use super::input::Input;
use super::words::{payload, word};

const HELLO: RequestId<[u64; 2]> = RequestId::new(0, "streams hello");
const BEGIN: RequestId<[u64; 2]> = RequestId::new(1, "streams begin");
const PIECE: RequestId<u64> = RequestId::new(2, "streams piece");
const TAKEN: RequestId<[u64; 2]> = RequestId::new(3, "streams taken");
const DONE: RequestId<u64> = RequestId::new(4, "streams done");
const FAILED: RequestId<[u64; 2]> = RequestId::new(5, "streams failed");
const WELCOME: ReplyId<[u64; 2]> = ReplyId::new(0, "streams welcome");

/// A stream whose handler takes all of a message; one whose handler takes some, by several calls;
/// one whose handler returns at once; one whose handler answers.
const ALL: StreamId = StreamId::new("all");
const SOME: StreamId = StreamId::new("some");
const LEAVES: StreamId = StreamId::new("leaves");
const ANSWERS: StreamId = StreamId::new("answers");

/// The limits of the endpoint for the messages of each peer.
const WINDOW: usize = 4096;
const MESSAGES: usize = 4;

async fn takes_all(mut message: Incoming) -> Result<(), HandlerError> {
    while message.receive_some().await?.is_some() {}
    Ok(())
}

async fn takes_some(mut message: Incoming) -> Result<(), HandlerError> {
    let mut place = [0; 3];
    message.receive_into(&mut place).await?;
    let _ = message.receive(10).await?;
    let _ = message.receive_rest(100).await?;
    Ok(())
}

async fn answers(message: Incoming) -> Result<(), HandlerError> {
    let mut answer = message.peer().begin(ALL).await?;
    answer.send_bytes(vec![7; 3000]).await?;
    Ok(answer.end().await?)
}

/// The endpoint that is told nonsense, and a peer that keeps the rules.
pub struct Streams {
    victim: Endpoint,
    _good: Endpoint,
    to_victim: Peer,
}

impl Streams {
    pub async fn open() -> Self {
        let victim = Endpoint::builder()
            .window(WINDOW)
            .messages(MESSAGES)
            .endpoint(|below| below.payload(4096))
            .handler(ALL, takes_all)
            .handler(SOME, takes_some)
            .handler(LEAVES, async |_| Ok(()))
            .handler(ANSWERS, answers);
        let victim = victim.open("shm").await.expect("it opens");
        let good = Endpoint::open("shm").await.expect("it opens");
        let to_victim = good.connect(victim.name()).await.expect("the victim is there");
        Self { victim, _good: good, to_victim }
    }

    /// Sends the packets of an input, over a connection of their own.
    pub async fn hears(&self, input: &mut Input<'_>) {
        let stranger = am::Endpoint::open("shm", handlers()).await.expect("it opens");
        let to_victim = stranger.connect(self.victim.name()).await.expect("it is there");
        if input.u8() < 200 {
            let limits = word(input, &[2048 << 8 | 2, 1 << 28 | 8, 0, u64::MAX]);
            let _ = to_victim.call(HELLO, [1, limits]).await;
        }
        for _ in 0..MOST {
            if input.is_empty() || to_victim.ending().is_some() {
                break;
            }
            say(&to_victim, input).await;
            let held = self.victim.statistics().held;
            assert!(held <= MESSAGES * WINDOW, "{held} bytes are held");
            tokio::task::yield_now().await;
        }
        to_victim.settled().await;
        drop((to_victim, stranger));
        while self.victim.statistics().held > 0 {
            tokio::task::yield_now().await;
        }
        self.is_well().await;
    }

    /// Messages of the peer that keeps the rules are handled, and nothing has panicked.
    async fn is_well(&self) {
        let mut message = self.to_victim.begin(ALL).await.expect("the victim is there");
        message.send_bytes(vec![7; 10_000]).await.expect("it is taken");
        message.end_handled().await.expect("it is handled");
        assert_eq!(self.victim.bundle().statistics().panics, 0, "handlers have panicked");
    }
}

/// The number that stands for a stream on the wire.
fn number_of(stream: StreamId) -> u64 {
    stream.name().bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Sends a packet that is made of the next bytes of the input.
async fn say(peer: &am::Peer, input: &mut Input<'_>) {
    let kind = input.u8();
    let slot = match input.u8() {
        byte @ ..250 => u64::from(byte % 5),
        _ => word(input, &[64, 255]),
    };
    // The bits of a packet's word: that it ends the message, gives it up, or is waited for.
    let packet = slot | u64::from(input.u8() % 16) << 8;
    // What can't be sent is refused by the peer, or too long.
    let _ = match kind % 8 {
        0 => peer.request(HELLO, [word(input, &[1]), word(input, &[1 << 20 | 4])]).await,
        1..4 => {
            let streams = [ALL, SOME, LEAVES, ANSWERS].map(number_of);
            let stream = word(input, &streams);
            peer.request_with(BEGIN, [packet, stream], payload(input)).await
        }
        4 => peer.request(TAKEN, [slot, word(input, &[128, 1128, WINDOW as u64])]).await,
        5 => peer.request(DONE, word(input, &[1, 2, 15])).await,
        6 => peer.request_with(FAILED, [slot, word(input, &[1, 2])], payload(input)).await,
        _ => peer.request_with(PIECE, packet, payload(input)).await,
    };
}

/// Handlers for whatever the victim says, which answer nothing but a greeting.
fn handlers() -> Handlers {
    Handlers::new()
        .request(HELLO, |request, _| request.reply(WELCOME, [1, 2048 << 8 | 2]))
        .request(BEGIN, |_, _| ())
        .request(PIECE, |_, _| ())
        .request(TAKEN, |_, _| ())
        .request(DONE, |_, _| ())
        .request(FAILED, |_, _| ())
}
