//! A peer that knows the key, and sends operations that nobody checked.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use doorbell_am::{Bundle, BundleConfig, Endpoint, Handlers, Name, Peer, ReplyId, RequestId, Tag};
use doorbell_kit::effort;
use doorbell_simulation::Luck;
use doorbell_splitc::{BoxError, Config, Error, Job, Spread, World};
use doorbell_verbs::Nic;

use crate::common::{KEY, config, in_time};

/// The service by which process 0 of a world takes operations in messages, as `world/join/mod.rs`
/// numbers it.
const SERVICE: u64 = 0x5343_0000_0000_0001;
const OPERATIONS: RequestId<u64> = RequestId::new(0, "operations");
const STORES: RequestId<(u64, u64)> = RequestId::new(1, "stores");
const WAKE: RequestId<u64> = RequestId::new(2, "wake");
const ENDED: RequestId<u64> = RequestId::new(3, "ended");
const ANSWERS: ReplyId<u64> = ReplyId::new(0, "answers");
const REFUSALS: ReplyId<[u64; 9]> = ReplyId::new(1, "refusals");

const HEAP: u64 = 1 << 20;

fn word(code: u64, len: u64, offset: u64) -> u64 {
    code | len << 8 | offset << 20
}

/// Entries that are all to be refused: of no operation, or at no place of the heap that may be
/// accessed.
fn refused(luck: &mut Luck) -> Vec<u8> {
    let mut entries = Vec::new();
    for _ in 0..1 + luck.below(20) {
        let code = [0, 1, 2, 3, 0x40, 0xc0, 4, 0x3f][luck.below(8) as usize] | luck.below(64);
        let beyond = (HEAP + 4096) + luck.below(1 << 30);
        let offset = [luck.below(4096), beyond, (1 << 44) - 1 - luck.below(9)];
        let offset = offset[luck.below(3) as usize];
        let operation = word(code, luck.below(4096), offset);
        entries.extend_from_slice(&operation.to_le_bytes());
        let rest = luck.below(40) as usize;
        // Whatever is behind an entry begins with no place that may be accessed, either.
        (0..rest).for_each(|_| {
            entries.extend_from_slice(&word(code, 8, luck.below(4096)).to_le_bytes());
        });
    }
    entries.truncate(4096);
    entries
}

/// Entries of whatever bytes.
fn anything(luck: &mut Luck) -> Vec<u8> {
    let mut entries: Vec<_> = (0..luck.below(4097)).map(|_| luck.draw() as u8).collect();
    for entry in entries.chunks_exact_mut(8) {
        if luck.below(2) == 0 {
            let codes = [1, 2, 3, 0x40 + luck.below(48), 0xc0 + luck.below(48)];
            let code = codes[luck.below(5) as usize];
            let operation = word(code, luck.below(80), luck.below(HEAP + 8192));
            entry.copy_from_slice(&operation.to_le_bytes());
        }
    }
    entries
}

/// Gets that all ask for the longest answers.
fn greedy() -> Vec<u8> {
    word(2, 4088, 4096).to_le_bytes().repeat(512)
}

async fn connect(nic: &Nic, to: &str) -> (Bundle, Endpoint, Peer) {
    let bundle = Bundle::new(nic, &BundleConfig::default()).expect("room");
    let handlers = Handlers::new()
        .request(OPERATIONS, |request, about| request.reply(ANSWERS, about))
        .request(STORES, |_, _| ())
        .request(WAKE, |_, _| ())
        .request(ENDED, |_, _| ())
        .reply(ANSWERS, |_, _| ())
        .reply(REFUSALS, |_, _| ());
    let endpoint = Endpoint::builder().service(SERVICE).tag(Tag(KEY)).payload(4096);
    let endpoint = endpoint.on_bundle(&bundle, handlers).await.expect("nobody has that name");
    let name = Name::at(to, SERVICE);
    let peer = loop {
        match endpoint.connect(name.clone()).await {
            Ok(peer) => break peer,
            // The world is not there yet.
            Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    };
    (bundle, endpoint, peer)
}

/// Sends messages to a world, each made by a function, and waits until all were handled.
async fn send(to: &str, own: &str, count: u64, mut make: impl FnMut(&mut Luck) -> Vec<u8>) {
    let nic = Nic::open(own).await.expect("a name that nobody has");
    let (bundle, _endpoint, peer) = connect(&nic, to).await;
    let mut luck = Luck::new(count);
    for number in 0..count {
        let entries = make(&mut luck);
        if number % 2 == 0 {
            peer.request_with(OPERATIONS, luck.draw(), &entries).await.expect("it is there");
        } else {
            let turn = luck.draw();
            peer.request_with(STORES, (0, turn), &entries).await.expect("it is there");
        }
        peer.request(WAKE, luck.draw()).await.expect("it is there");
    }
    // Messages are handled in their order.
    let replies = bundle.statistics().replies;
    peer.request_with(OPERATIONS, 0, &[]).await.expect("it is there");
    bundle.wait_until(|| (bundle.statistics().replies > replies).then_some(())).await;
}

/// Puts, gets, additions and calls of a function, all within the first allocation of a heap.
fn within_the_first_array(luck: &mut Luck) -> Vec<u8> {
    const CALL: u64 = 3;
    let mut entries = Vec::new();
    for _ in 0..1 + luck.below(20) {
        let code = [1, 2, CALL, 0x40, 0xc0][luck.below(5) as usize];
        let offset = 4096 + 8 * luck.below(PART);
        let len = if code == CALL { 1 } else { 8 };
        entries.extend_from_slice(&word(code, len, offset).to_le_bytes());
        // The number of the function, its argument, the bytes that are put, or the operand.
        let data = match code {
            2 => 0,
            CALL => 2,
            _ => 1,
        };
        (0..data).for_each(|_| entries.extend_from_slice(&[0; 8]));
    }
    entries
}

/// How many words of the first array a process has.
const PART: u64 = 500;

/// A world of two processes under attack: the program that they run, with the values that the first
/// array has, until the attack is over.
type Program = fn(World, Arc<Attack>) -> Pin<Box<dyn Future<Output = Result<u64, BoxError>>>>;

/// How far an attack has come.
#[derive(Default)]
struct Attack {
    /// Whether the world is ready for it.
    may_begin: AtomicBool,
    is_over: AtomicBool,
}

impl Attack {
    /// Lets the attack begin, and serves peers until it is over.
    async fn is_endured(&self, world: &World) -> Result<(), Error> {
        world.barrier().await?;
        self.may_begin.store(true, Ordering::Release);
        while !self.is_over.load(Ordering::Acquire) {
            world.flush().await?;
            tokio::task::yield_now().await;
        }
        world.barrier().await
    }
}

/// Allocates the first array, and gives each of its elements a value.
async fn first_array(world: &World) -> Result<(Spread<u64>, Vec<usize>, Vec<u64>), Error> {
    world.define(crate::errors::functions::BYTE).await?;
    let array = world.spread::<u64>(2 * PART as usize).await?;
    let all: Vec<_> = (0..array.len()).collect();
    let values: Vec<_> = all.iter().map(|&index| index as u64 + 7).collect();
    array.scatter(&all, &values)?.done().await?;
    world.barrier().await?;
    Ok((array, all, values))
}

/// A program that expects its array to be as it was, if `WHOLE`, when the attack is over.
fn shares<const WHOLE: bool>(
    world: World,
    attack: Arc<Attack>,
) -> Pin<Box<dyn Future<Output = Result<u64, BoxError>>>> {
    Box::pin(async move {
        let (array, all, values) = first_array(&world).await?;
        attack.is_endured(&world).await?;
        if WHOLE {
            assert_eq!(array.gather(&all)?.done().await?, values);
        }
        crate::errors::works(&world).await?;
        Ok(world.refused())
    })
}

/// A program whose processes have their parts as slices during the attack.
fn has_slices(
    world: World,
    attack: Arc<Attack>,
) -> Pin<Box<dyn Future<Output = Result<u64, BoxError>>>> {
    Box::pin(async move {
        let (array, ..) = first_array(&world).await?;
        // SAFETY: the processes of this test use the array by the library alone, and the stranger
        // sends messages, which are refused.
        let mut part = unsafe { array.private_in_place() }.await?;
        part.fill(1);
        attack.is_endured(&world).await?;
        assert!(part.iter().all(|&value| value == 1), "the slice has changed");
        drop(part);
        array.share().await?;
        crate::errors::works(&world).await?;
        Ok(world.refused())
    })
}

/// Runs a world of two processes, of which the first is sent messages, and returns what that has
/// refused.
fn attacked(name: &str, count: u64, make: fn(&mut Luck) -> Vec<u8>, program: Program) -> u64 {
    let name = format!("{name}-{}", std::process::id());
    let addresses: Vec<_> = (0..2).map(|rank| format!("shm:{name}/{rank}")).collect();
    let attack = Arc::new(Attack::default());
    let config = Config { heap: HEAP as usize, ..config() };
    let program = {
        let attack = attack.clone();
        async move |world: World| program(world, attack.clone()).await
    };
    in_time(move || {
        std::thread::scope(|scope| {
            let run = |rank| Job::member(rank, &addresses).config(config.clone()).run(&program);
            let members = [0, 1].map(|rank| scope.spawn(move || run(rank)));
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let own = format!("shm:{name}/hostile");
            while !attack.may_begin.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            runtime.expect("a runtime").block_on(send(&addresses[0], &own, count, make));
            attack.is_over.store(true, Ordering::Release);
            let [first, second] = members.map(|member| member.join().expect("no panic"));
            assert_eq!(second.expect("nobody sent it anything"), 0);
            first.expect("it serves its peer all the same")
        })
    })
}

#[test]
fn operations_outside_the_heap_or_of_no_kind_are_refused_and_change_nothing() {
    let count = effort(500, 20_000);
    let refused = attacked("refused", count, refused, shares::<true>);
    assert!(refused >= count, "{refused}");
}

#[test]
fn whatever_bytes_messages_have_a_process_serves_its_peers() {
    assert!(attacked("anything", effort(500, 20_000), anything, shares::<false>) > 0);
}

#[test]
fn an_answer_that_no_message_holds_is_refused() {
    assert!(attacked("greedy", 40, |_| greedy(), shares::<true>) > 0);
}

#[test]
fn messages_to_a_part_that_a_process_has_as_a_slice_are_refused() {
    // A range of the heap was all that was looked for, so a peer could write into the slice.
    let count = effort(100, 2000);
    let refused = attacked("private", count, within_the_first_array, has_slices);
    assert!(refused >= count, "{refused}");
}
