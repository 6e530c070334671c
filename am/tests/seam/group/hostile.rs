//! Peers that are members of nothing, and say what they like.

use bytes::Bytes;
use doorbell_am::group::{Group, GroupConfig, GroupError};
use doorbell_am::{Bundle, BundleConfig, Call, Endpoint, Handlers, Notice};
use doorbell_kit::effort;
use doorbell_verbs::Nic;

use crate::group::common::{in_time, join, names, spmd};
use crate::promises::devices::Devices;

/// The messages between members, as a stranger declares them.
const HELLO: Call<(u32, u32, u64), u64> = Call::new("doorbell.group.hello");
const PIECE: Notice<(u64, u64, u64, u64, Bytes)> = Notice::new("doorbell.group.piece");
const CLEAR: Notice<(u64, u64, u64)> = Notice::new("doorbell.group.clear");
const MORE: Notice<(u64, u64, u64, u64, Bytes)> = Notice::new("doorbell.group.more");
const WAITS: Notice<(u64, u64, u64)> = Notice::new("doorbell.group.waits");
const BROKEN: Notice<(u64, u64, u64, u64, u64, String)> = Notice::new("doorbell.group.broken");
const LEAVE: Call<(u64, u32, u64)> = Call::new("doorbell.group.leave");

struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 16
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A number that may mean something, or any.
    fn number(&mut self) -> u64 {
        match self.below(4) {
            0 => 0,
            1 => self.below(40),
            2 => u64::MAX - self.below(3),
            _ => self.next() << self.below(17),
        }
    }

    /// A label whose parts may all be right.
    fn label(&mut self) -> u64 {
        match self.below(4) {
            0 => self.number(),
            _ => self.below(12) << 60 | self.below(3) << 40 | self.below(3) << 20 | self.below(4),
        }
    }

    fn bytes(&mut self) -> Bytes {
        let len = [0, 1, 100, 4096][self.below(4) as usize];
        Bytes::from(vec![self.0 as u8; len])
    }
}

async fn stranger(members: &[doorbell_am::Name]) -> (Endpoint, doorbell_am::Peer) {
    let nic = Nic::open("shm").await.expect("a name");
    let bundle = Bundle::new(&nic, &BundleConfig::default()).expect("room");
    let endpoint = Endpoint::on_bundle(&bundle, Handlers::new()).await.expect("room");
    let peer = endpoint.connect(&members[0]).await.expect("it is there");
    (endpoint, peer)
}

/// Sends random messages until the member does not take them any more.
async fn says_anything(peer: &doorbell_am::Peer, draw: &mut Draw, messages: usize) {
    for _ in 0..messages {
        let context = draw.number();
        let (sequence, label) = (draw.number(), draw.label());
        let said = match draw.below(8) {
            0 | 1 => {
                let (total, bytes) = (draw.number(), draw.bytes());
                peer.notify(PIECE, (context, sequence, label, total, bytes)).await
            }
            2 => peer.notify(CLEAR, (context, sequence, label)).await,
            3 => {
                let (offset, bytes) = (draw.number(), draw.bytes());
                peer.notify(MORE, (context, sequence, label, offset, bytes)).await
            }
            4 => peer.notify(WAITS, (context, sequence, label)).await,
            5 => {
                let (after, text) = (draw.number(), "x".repeat(draw.below(300) as usize));
                let word = draw.below(10) << 32 | draw.below(4);
                peer.notify(BROKEN, (context, word, after, sequence, label, text)).await
            }
            6 => {
                let _ = peer.call(LEAVE, (context, draw.number() as u32, sequence)).await;
                Ok(())
            }
            _ => {
                let (rank, size) = (draw.number() as u32, draw.number() as u32);
                let _ = peer.call(HELLO, (rank, size, draw.number())).await;
                Ok(())
            }
        };
        said.expect("the member takes it");
    }
}

async fn program(group: Group) -> Result<(), GroupError> {
    for round in 0..20 {
        group.barrier().await?;
        group.broadcast(round % group.size(), Bytes::from(vec![7; 5000])).await?;
        group.all_gather(Bytes::from_static(b"x")).await?;
    }
    Ok(())
}

/// Whatever they say to member 0, nothing panics, and collectives are done or fail with an error.
#[test]
fn strangers_who_say_anything_end_collectives_at_the_worst() {
    for seed in 1..=effort(30, 1000) {
        in_time(1, async {
            let devices = Devices::shm(3);
            let groups = join(&devices.nics, &GroupConfig::default()).await;
            let members = names(&devices.nics);
            let (_endpoint, peer) = stranger(&members).await;
            let says = async {
                let mut draw = Draw(seed);
                says_anything(&peer, &mut draw, 500).await;
            };
            let (outcomes, ()) = tokio::join!(spmd(&groups, program), says);
            let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
            println!("seed {seed}: {failed} failed, {outcomes:?}");
            assert_eq!(groups[0].bundle().statistics().panics, 0, "seed {seed}");
        });
    }
}

#[test]
fn a_message_of_no_rank_or_no_team_is_counted_and_changes_nothing() {
    in_time(1, async {
        let devices = Devices::shm(3);
        let groups = join(&devices.nics, &GroupConfig::default()).await;
        let (_endpoint, peer) = stranger(&names(&devices.nics)).await;
        for number in 0..1000_u64 {
            // Of a member 3 among three; to a member 7; of an operation that is none; for unknown
            // teams.
            let few = Bytes::from_static(b"few");
            peer.notify(PIECE, (0, 1, 3, 3, few.clone())).await.expect("it is taken");
            peer.notify(CLEAR, (0, 1, 7 << 40)).await.expect("it is taken");
            peer.notify(WAITS, (0, 1, 15 << 60)).await.expect("it is taken");
            peer.notify(PIECE, (number + 1, 1, 1, 3, few)).await.expect("it is taken");
        }
        for outcome in spmd(&groups, program).await {
            outcome.expect("nothing has happened");
        }
        // All but the 64 that are held for a team that might be made.
        assert_eq!(groups[0].malformed(), 3000 + 1000 - 64);
    });
}

#[test]
fn a_message_of_no_schedule_ends_collectives_with_an_error_that_names_its_sender() {
    in_time(1, async {
        let devices = Devices::shm(3);
        let groups = join(&devices.nics, &GroupConfig::default()).await;
        let (_endpoint, peer) = stranger(&names(&devices.nics)).await;
        // A thousand collectives ahead, as member 2.
        peer.notify(PIECE, (0, 1000, 2, 0, Bytes::new())).await.expect("it is taken");
        let outcomes = spmd(&groups, |group| async move {
            while group.rank() == 0 && group.bundle().statistics().requests < 1 {
                tokio::task::yield_now().await;
            }
            group.barrier().await?;
            group.barrier().await
        });
        for outcome in outcomes.await {
            let named = matches!(outcome, Err(GroupError::Malformed { rank: 2, .. }));
            assert!(named, "{outcome:?}");
        }
    });
}
