//! A process of Split-C, given messages that no process of its world would send.
//!
//! The input is a list of messages, each a list of entries: puts, gets, atomic changes and calls of
//! functions, nearly right or not at all, at places within the heap, at its ends, and far beyond.
//!
//! What is checked: nothing panics; neither the words that the library keeps for itself, nor what
//! the process has as a private slice, nor what no entry has named changes; and an answer has no
//! more bytes than its entries may ask for.

#[path = "input.rs"]
mod input;

use doorbell_splitc::Apply;
use doorbell_splitc::fuzz::Server;
use input::Input;

/// How many bytes the heap has for the program, and which of them are private.
const HEAP: usize = 4096;
const PRIVATE: std::ops::Range<usize> = 1024..2048;

/// The most bytes that the answer to an entry has.
const LONGEST: usize = 4096;

const WORD: Apply<u64, u64, u64> = Apply::new("word", |value, by| {
    *value = value.wrapping_add(by);
    *value
});
const LONG: Apply<[u8; 24], [u8; 3], [u8; 40]> = Apply::new("long", |value, by| {
    value[..3].copy_from_slice(&by);
    [by[0]; 40]
});

/// Gives a process the messages of an input.
pub fn splitc(input: &[u8]) {
    let mut input = Input(input);
    let server = Server::new(HEAP);
    server.define(WORD);
    server.define(LONG);
    let own = words(&server, 0..Server::OWN);
    let private = Server::OWN + PRIVATE.start..Server::OWN + PRIVATE.end;
    let guarded = server.guard(private.start as u64, PRIVATE.len() as u64);
    let before = words(&server, private.clone());
    while !input.is_empty() {
        let entries = message(&mut input);
        let (values, _) = server.serve(&entries);
        assert!(values.len() <= entries.len() / 8 * LONGEST, "{} bytes of answers", values.len());
        assert_eq!(words(&server, 0..Server::OWN), own, "the library's own words have changed");
        assert_eq!(words(&server, private.clone()), before, "a private part has changed");
    }
    drop(guarded);
}

fn words(server: &Server, range: std::ops::Range<usize>) -> Vec<u8> {
    let mut bytes = vec![0; range.len()];
    server.region().read_at(range.start, &mut bytes).expect("it is within the heap");
    bytes
}

/// Takes the entries of a message from the input. Each begins with a word that is mostly one of an
/// operation, at a place that is mostly near the heap.
fn message(input: &mut Input<'_>) -> Vec<u8> {
    let mut entries = Vec::new();
    for _ in 0..1 + input.u8() % 8 {
        let code = match input.u8() {
            kind @ 0..128 => [1, 2, 3, 0x40, 0xc0][usize::from(kind) % 5] | (input.u8() % 48),
            any => any,
        };
        let len = u64::from(input.choose(&[0_u16, 1, 7, 8, 9, 24, 64, 1024, 4088, 4095]));
        let place = match input.u8() % 4 {
            0 => u64::from(input.u16()) % (2 * HEAP as u64),
            1 => (Server::OWN + HEAP) as u64 - u64::from(input.u8()),
            2 => (Server::OWN + PRIVATE.start) as u64 + u64::from(input.u8()) - 64,
            _ => u64::from_le_bytes(input.array()) >> 20,
        };
        entries.extend_from_slice(&(u64::from(code) | len << 8 | place << 20).to_le_bytes());
        let behind = usize::from(input.u8());
        entries.extend_from_slice(input.bytes(behind));
    }
    entries.truncate(4096);
    entries
}
