//! What a flow must have left in its receiver's memory.

use std::ops::Range;

use super::super::memory::{Image, Images};
use super::super::message::{Extra, Kind, Message, What};
use super::{Check, Flow, ensure};

impl Flow {
    /// At the end: the receiver's memory must be as some number of whole messages left it, and some
    /// packets of the next, in agreement with all that was told.
    pub fn effects(&self, images: &mut Images) -> Check {
        let Images { target, landing, words, .. } = images;
        let next = self.takers.get(self.received).copied();
        let wrong = self.wrong.filter(|wrong| !wrong.late);
        let wrong = wrong.map_or(usize::MAX, |wrong| wrong.index);
        let most = self.posted.min(next.unwrap_or(usize::MAX)).min(wrong);
        ensure!(
            self.proven <= most,
            "{} messages arrived, and no more than {most} can have",
            self.proven
        );
        let now = target.now(0, target.region.len());
        let mut memory = Difference::new(&target.expected, &now);
        for index in 0..self.proven {
            self.apply(index, 0..self.message(index).packets(self.mtu), &mut memory);
        }
        let landed = self.landed(landing);
        let (words_now, mut words_then) = (words.words(), self.words_after(self.proven));
        for index in self.proven..=most {
            let mut packets = 0;
            let partial = self.partial(index);
            let overtaken = self.mapped && self.overtaken(index, &memory);
            loop {
                let there = landed.iter().any(|&(taker, count)| match taker {
                    Some(taker) if taker == index => count == packets,
                    _ => count == 0,
                });
                let written = memory.count == 0 || overtaken;
                if written && there && words_now == words_then {
                    target.expected = now;
                    words.expect_words(&words_then);
                    self.adopt(index, packets, landing);
                    return Ok(());
                }
                if packets == partial {
                    break;
                }
                self.apply(index, packets..packets + 1, &mut memory);
                packets += 1;
            }
            if index < most {
                let rest = packets..self.message(index).packets(self.mtu);
                self.apply(index, rest, &mut memory);
                self.change_word(index, &mut words_then);
            }
        }
        let at = now.iter().zip(&memory.expected).position(|(now, expected)| now != expected);
        Err(format!(
            "memory is as no number of messages from {} to {most} leaves it: {} bytes differ, the \
             first at {at:?}, of the receive {:?}, and the words are {words_now:x?}, not \
             {words_then:x?}",
            self.proven, memory.count, landed
        ))
    }

    /// Whether memory is as it would be if a send, and maybe others behind it, were overtaken by
    /// writes into what is mapped.
    fn overtaken(&self, index: usize, memory: &Difference<'_>) -> bool {
        let is_send =
            |message: &Message| message.what == What::Send && message.extra != Extra::Invalidate;
        let mut memory = memory.clone();
        let behind = self.stream.messages[..self.posted].iter().enumerate().skip(index);
        for (index, message) in behind.skip_while(|(_, message)| is_send(message)) {
            let plain = message.writes_to().is_some() && message.extra == Extra::Nothing;
            if is_send(message) {
                continue;
            } else if !plain || memory.count == 0 {
                break;
            }
            let mut packets = 0..message.packets(self.mtu);
            packets.any(|packet| {
                self.apply(index, packet..packet + 1, &mut memory);
                memory.count == 0
            });
        }
        memory.count == 0
    }

    /// How many packets of a message may be there without all of it.
    fn partial(&self, index: usize) -> usize {
        match (self.wrong, self.stream.messages.get(index)) {
            (Some(wrong), _) if wrong.index == index => wrong.packets,
            (_, Some(message)) if index < self.posted && !message.asks() => {
                message.packets(self.mtu) - 1
            }
            _ => 0,
        }
    }

    fn apply(&self, index: usize, packets: Range<usize>, memory: &mut Difference<'_>) {
        let message = self.message(index);
        let (Some(to), mtu) = (message.writes_to(), self.mtu.bytes()) else { return };
        let range = packets.start * mtu..(packets.end * mtu).min(message.len);
        if !range.is_empty() {
            memory.write(to + range.start, &self.content(index)[range]);
        }
    }

    /// Which message's packets may lie in the receive that is next, and how many: every number that
    /// agrees with what is there.
    fn landed(&self, landing: &Image) -> Vec<(Option<usize>, usize)> {
        let posted = self.received < self.receives_posted;
        let taker = self.takers.get(self.received).copied();
        let taker = taker.filter(|&taker| posted && self.message(taker).what == What::Send);
        let Some(taker) = taker else { return vec![(None, 0)] };
        let counts = 0..=self.partial(taker);
        if matches!(self.message(taker).landing, Kind::None | Kind::Buf) {
            return counts.map(|count| (Some(taker), count)).collect();
        }
        let content = self.content(taker);
        let (now, old) = landing.gather(&self.landings[self.received]);
        let agrees = |&count: &usize| {
            let filled = (count * self.mtu.bytes()).min(content.len()).min(now.len());
            now[..filled] == content[..filled] && now[filled..] == old[filled..]
        };
        counts.filter(agrees).map(|count| (Some(taker), count)).collect()
    }

    /// Takes packets of a message that was not received whole for expected.
    fn adopt(&self, index: usize, packets: usize, landing: &mut Image) {
        let here = self.takers.get(self.received) == Some(&index);
        if here && packets > 0 && self.message(index).what == What::Send {
            let content = self.content(index);
            let content = &content[..content.len().min(packets * self.mtu.bytes())];
            landing.expect(&self.landings[self.received], content);
        }
    }
}

/// What memory should be, and in how many bytes it is not.
#[derive(Clone)]
struct Difference<'a> {
    expected: Vec<u8>,
    now: &'a [u8],
    count: usize,
}

fn differing(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).filter(|(a, b)| a != b).count()
}

impl<'a> Difference<'a> {
    fn new(expected: &[u8], now: &'a [u8]) -> Self {
        Self { expected: expected.to_vec(), now, count: differing(expected, now) }
    }

    fn write(&mut self, at: usize, bytes: &[u8]) {
        let range = at..at + bytes.len();
        let now = &self.now[range.clone()];
        self.count -= differing(&self.expected[range.clone()], now);
        self.expected[range].copy_from_slice(bytes);
        self.count += differing(bytes, now);
    }
}
