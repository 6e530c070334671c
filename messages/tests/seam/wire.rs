//! The protocol between endpoints of tagged messages, for peers that speak it on their own.

use bytes::Bytes;
use doorbell_am::{Call, RequestId, Words};

pub const EAGER: u16 = 0;
pub const TAKEN: u16 = 1;
pub const MORE: u16 = 2;
pub const HOLDS: u16 = 3;
pub const OFFER: u16 = 4;
pub const FREED: u16 = 5;
pub const SEARCH: u16 = 6;
pub const GIVEN_UP: u16 = 7;
pub const TAKE: u16 = 8;
pub const LEAVE: u16 = 9;
pub const DONE: u16 = 10;
pub const PASSED: u16 = 11;
pub const BACK: u16 = 12;
pub const AGAIN: u16 = 13;
pub const BROWSE: u16 = 14;
pub const SEEN: u16 = 15;
pub const CONNECT: u16 = 16;

/// The names of all kinds of packets, in the order of their numbers.
const NAMES: [&str; 17] = [
    "messages: eager",
    "messages: taken",
    "messages: more",
    "messages: holds",
    "messages: offer",
    "messages: freed",
    "messages: search",
    "messages: given up",
    "messages: take",
    "messages: leave",
    "messages: done",
    "messages: passed",
    "messages: back",
    "messages: again",
    "messages: browse",
    "messages: seen",
    "messages: connect",
];

/// All kinds of packets, each with the handler that it runs.
pub fn kinds() -> impl Iterator<Item = (u16, RequestId<[u64; 3]>)> {
    (0..).zip(NAMES).map(|(kind, name)| (kind, RequestId::new(kind, name)))
}

/// Returns the handler of a kind of packets.
pub fn id(kind: u16) -> RequestId<[u64; 3]> {
    RequestId::new(kind, NAMES[usize::from(kind)])
}

/// A message of few bytes, whose words are its bits, its length, and its body.
pub const SHORT: RequestId<Words> = RequestId::new(22, "messages: short");

/// How endpoints of tagged messages meet.
pub const GREET: Call<Bytes, Bytes> = Call::new("doorbell messages: greet");

/// The length of a greeting before the name.
pub const GREETING: usize = 80;

/// Makes the greeting of an endpoint with one device, a window and a name.
pub fn greeting(window: u64, name: &str) -> Bytes {
    let words = [3, window, 32 << 10, 0, 0, 1, 7, 0, 0, 0];
    let words = words.into_iter().flat_map(u64::to_be_bytes);
    words.chain(name.bytes()).collect()
}

/// Where in a greeting an endpoint tells where its secret number is; the number follows.
const ADDRESS: usize = 56;

/// Returns where an endpoint says that its secret number is, and the number.
pub fn whereabouts(greeting: &[u8]) -> (u64, &[u8]) {
    let (address, rest) = greeting[ADDRESS..].split_first_chunk().expect("it is a greeting");
    (u64::from_be_bytes(*address), &rest[..16])
}

/// Returns the service at which an endpoint takes connections for long messages, and the token that
/// it has given the peer whose greeting it answers.
pub fn pulls(greeting: &[u8]) -> (u64, [u8; 8]) {
    let (words, _) = greeting.as_chunks();
    (u64::from_be_bytes(words[3]), words[4])
}

/// Makes a greeting that tells, by another name, what the greeting of another endpoint tells.
pub fn tells_as_its_own(greeting: &[u8], name: &str) -> Bytes {
    greeting[..GREETING].iter().copied().chain(name.bytes()).collect()
}

/// Makes the word of a message's length and properties.
pub const fn heading(len: usize, is_last: bool, is_long: bool) -> u64 {
    (len as u64) << 8 | is_last as u64 | (is_long as u64) << 1
}
