//! The steps of a program, each of which checks what it finds.

use std::sync::Arc;

use bytes::Bytes;
use doorbell_verbs::{Buf, Failed, MapError, Registered, RemoteMemory, Rights, SharedMemory};

use crate::regions::model::{CELL, CELLS, place};
use crate::regions::plan::{Over, Step};
use crate::regions::world::{Node, World};

/// The two NICs of a step: the first does something with the second.
#[derive(Clone, Copy)]
pub struct Ends<'w> {
    pub world: &'w World,
    pub from: usize,
    pub to: usize,
}

/// Notes that a connection may break, unless the step has ended: memory is taken from requests that
/// are under way when their futures are dropped.
struct Unfinished<'w>(Ends<'w>, bool);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if !self.1 {
            self.0.world.excuse(self.0.from, self.0.to);
        }
    }
}

/// Lets others go on for so many polls.
pub async fn waits(polls: u8) {
    for _ in 0..polls {
        tokio::task::yield_now().await;
    }
}

/// Reads all words of a region, and the counter behind them.
pub fn words(memory: &Registered) -> (Vec<u64>, u64) {
    let all = (0..memory.len() / 8).map(|word| memory.load(8 * word).expect("within"));
    let mut all: Vec<_> = all.collect();
    let counter = all.pop().expect("the counter");
    (all, counter)
}

fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// Bytes that tell one message from another, the number of which they begin with.
fn message(number: u64, len: usize) -> Vec<u8> {
    let mut bytes: Vec<_> = (0..len.max(8)).map(|at| (at as u64 * 7 + number) as u8).collect();
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes
}

impl<'w> Ends<'w> {
    fn own(self) -> &'w Node {
        &self.world.nodes[self.from]
    }

    fn peer(self) -> &'w Node {
        &self.world.nodes[self.to]
    }

    /// The whole memory of the peer, unless the peer has it to itself.
    fn remote(self) -> Option<RemoteMemory> {
        self.peer().memory.borrow().as_ref().map(Registered::remote)
    }

    fn part(self, first: usize, words: usize) -> Option<RemoteMemory> {
        Some(self.remote()?.at(8 * first as u64, 8 * words as u64).expect("within"))
    }

    /// Checks that a request did not fail that may not.
    fn judge<T>(self, done: Result<T, Failed>) -> Option<T> {
        match done {
            Ok(done) => Some(done),
            Err(_) if self.world.is_excused(self.from, self.to) => None,
            Err(why) => panic!("NIC {} to {}: {why}", self.from, self.to),
        }
    }

    pub async fn does(self, step: Step) {
        match step {
            Step::Write { cell, words, inline } => self.writes(cell, words, inline).await,
            Step::Read { first, words } => self.reads(first, words).await,
            Step::Add => self.adds(None).await,
            Step::Swap => self.adds(Some(())).await,
            Step::Send { len } => self.sends(len).await,
            Step::Receive => self.receives().await,
            Step::Own { wait, change } => self.owns(wait, change).await,
            Step::Renew => self.renews(),
            Step::Lend { len, wait } => self.lends(len, wait).await,
            Step::Map => self.maps().await,
            Step::Pool { len, wait } => self.pools(len, wait).await,
        }
    }

    async fn writes(self, cell: u8, words: u8, inline: bool) {
        let (first, count) = (place(self.from, usize::from(cell) % CELLS), usize::from(words));
        let count = count.min(CELL);
        let Some(part) = self.part(first, count) else { return };
        let pair = self.world.pair(self.from, self.to);
        let values = self.peer().model.borrow_mut().begins(first, count);
        let bytes = bytes_of(&values);
        let done = match inline {
            true => pair.write_inline(&bytes, part).await,
            false => pair.write(bytes, part).await.map(drop),
        };
        if self.judge(done).is_some() {
            self.peer().model.borrow_mut().written(first, &values);
        }
    }

    async fn reads(self, first: u8, words: u8) {
        let all = self.peer().model.borrow().len();
        let first = usize::from(first) % all;
        let count = usize::from(words).min(all - first);
        let Some(part) = self.part(first, count) else { return };
        let pair = self.world.pair(self.from, self.to);
        let sight = self.peer().model.borrow().looks(first, count);
        if let Some(read) = self.judge(pair.read(Buf::with_capacity(8 * count), part).await) {
            let (found, []) = read.as_chunks::<8>() else { panic!("{} bytes", read.len()) };
            let found: Vec<_> = found.iter().map(|word| u64::from_ne_bytes(*word)).collect();
            self.peer().model.borrow().saw(&sight, &found);
        }
    }

    /// Adds one to the peer's counter: by a swap that may find something else, or for sure.
    async fn adds(self, swaps: Option<()>) {
        let counter = self.peer().model.borrow().len();
        let Some(word) = self.part(counter, 1) else { return };
        let pair = self.world.pair(self.from, self.to);
        let expected = self.peer().model.borrow().counted();
        let epoch = self.peer().model.borrow_mut().adds();
        let done = match swaps {
            Some(()) => pair.compare_swap(word, expected, expected + 1).await,
            None => pair.fetch_add(word, 1).await,
        };
        match self.judge(done) {
            Some(found) if swaps.is_none() || found == expected => {
                self.peer().model.borrow_mut().added(found, epoch);
            }
            _ => {}
        }
    }

    async fn sends(self, len: u16) {
        let pair = self.world.pair(self.from, self.to);
        let receives = self.world.pair(self.to, self.from);
        // A message without a receive waits for one.
        let room = usize::from(len).max(8);
        if receives.post_receive(Vec::with_capacity(room)).is_err() {
            return;
        }
        let number = self.world.number();
        let mail = &self.world.mail[&(self.from, self.to)].sent;
        mail.borrow_mut().push_back((number, false));
        let done = pair.send(message(number, usize::from(len))).await;
        if self.judge(done).is_some() {
            let mut mail = mail.borrow_mut();
            let sent = mail.iter_mut().find(|(other, _)| *other == number);
            sent.into_iter().for_each(|(_, sure)| *sure = true);
        }
    }

    async fn receives(self) {
        let pair = self.world.pair(self.from, self.to);
        tokio::select! {
            biased;
            received = pair.receive() => {
                if let Some(received) = self.judge(received) {
                    self.received(&received.data);
                }
            }
            () = waits(20) => {}
        }
    }

    /// Checks that a message is the next of those that were sent, but for such as may not have left.
    pub fn received(self, data: &[u8]) {
        let number = u64::from_le_bytes(*data.first_chunk().expect("a number"));
        assert!(*data == message(number, data.len()), "message {number} is not what was sent");
        let mut mail = self.world.mail[&(self.to, self.from)].sent.borrow_mut();
        while let Some((sent, sure)) = mail.pop_front() {
            if sent == number {
                return;
            }
            assert!(!sure, "message {sent} was sent, and {number} received first");
        }
        panic!("message {number} was received, and not sent, or received before");
    }

    async fn owns(self, wait: u8, change: bool) {
        let node = self.own();
        let Some(memory) = node.memory.take() else { return };
        self.world.excuse_all(self.from);
        let region = memory.revoke().await.expect("it was not before");
        let mut private = region.try_private().expect("nobody else has a handle");
        let all = private.as_slice_of::<u64>().expect("whole words").to_vec();
        let (counter, found) = all.split_last().expect("the counter");
        node.model.borrow_mut().settles(found, *counter);
        let mut expected = all;
        if change {
            let (first, count) = (usize::from(wait), 2 * CELL);
            let first = first % (expected.len() - count);
            let value = node.model.borrow_mut().owned(first, count);
            expected[first..][..count].fill(value);
            private.as_mut_slice_of::<u64>().expect("whole words").copy_from_slice(&expected);
        }
        // Peers are still writing, by the key that was.
        for _ in 0..=wait {
            let now = private.as_slice_of::<u64>().expect("whole words");
            assert_eq!(now, expected, "private memory has changed");
            tokio::task::yield_now().await;
        }
        let region = private.open();
        waits(wait).await;
        let memory = self.world.register(node, region);
        let (now, counter) = words(&memory);
        assert_eq!([&now[..], &[counter]].concat(), expected, "revoked memory has changed");
        node.memory.replace(Some(memory));
    }

    fn renews(self) {
        if let Some(memory) = &*self.own().memory.borrow() {
            self.world.excuse_all(self.from);
            memory.renew().expect("it was not revoked");
        }
    }

    async fn lends(self, len: u16, wait: u8) {
        let mut unfinished = Unfinished(self, false);
        let content = message(self.world.number(), usize::from(len));
        let bytes = Bytes::from(content.clone()).slice(usize::from(wait) % 8..);
        let lent = self.own().domain.lend(bytes.clone()).expect("room");
        let reader = self.world.pair(self.to, self.from);
        let read = reader.read(Buf::with_capacity(bytes.len()), lent.remote()).await;
        if let Some(read) = self.judge(read) {
            assert_eq!(read, bytes, "what was lent was read otherwise");
        }
        waits(wait).await;
        assert!(content.ends_with(&bytes), "what was lent has changed");
        drop(lent);
        unfinished.1 = true;
    }

    async fn maps(self) {
        if self.world.over != Over::Shm {
            return;
        }
        let mut unfinished = Unfinished(self, false);
        let memory = Arc::new(SharedMemory::new(64).expect("memory"));
        let memory = self.peer().domain.register_shared(memory, Rights::REMOTE).expect("room");
        let grants = self.world.pair(self.to, self.from);
        if grants.connection().grant(&memory).is_err() {
            // Too many wait, or the connection has just ended.
            return;
        }
        let pair = self.world.pair(self.from, self.to);
        let mapped = match pair.connection().map(memory.remote()).await {
            Ok(mapped) => mapped,
            Err(MapError::Ended(_)) if self.world.is_excused(self.from, self.to) => return,
            Err(why) => panic!("{why}"),
        };
        let value = self.world.number();
        mapped.store(0, value).expect("within");
        assert_eq!(memory.load(0), Ok(value));
        let word = memory.remote().at(8, 8).expect("within");
        if self.judge(pair.write_inline(&value.to_ne_bytes(), word).await).is_some() {
            assert_eq!((memory.load(8), mapped.load(8)), (Ok(value), Ok(value)));
        }
        let region = memory.revoke().await.expect("it was not before");
        assert!(region.try_private().is_err(), "the peer maps it");
        unfinished.1 = true;
    }

    async fn pools(self, len: u16, wait: u8) {
        let mut unfinished = Unfinished(self, false);
        let pooled = self.own().pool.take(usize::from(len));
        let memory = self.world.register(self.own(), pooled.region());
        let content = message(self.world.number(), usize::from(len));
        let to = memory.remote().at(0, content.len() as u64).expect("within");
        let writer = self.world.pair(self.to, self.from);
        let written = self.judge(writer.write(content.clone(), to).await);
        drop(memory.revoke().await.expect("it was not before"));
        let frozen = pooled.freeze().expect("nobody else has a handle");
        let before = frozen.as_ref().to_vec();
        if written.is_some() {
            assert!(before.starts_with(&content), "what was written is not there");
        }
        waits(wait).await;
        assert!(frozen.as_ref() == before, "frozen memory has changed");
        unfinished.1 = true;
    }
}
