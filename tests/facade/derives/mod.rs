//! What the derives make of structs and enums: the words and the payload that travel, and what
//! endpoints compare.

mod arguments;
mod hygiene;
mod parameters;
mod plain;
mod shapes;
mod word;

use std::fmt::Debug;

use doorbell::am::{Arguments, Payload};

/// Checks that a value travels as these words and this payload, and is the same value again.
#[track_caller]
fn there_and_back<A: Arguments + PartialEq + Debug>(value: A, words: &[u64], payload: &[u8]) {
    let mut put = vec![u64::MAX; value.count()];
    value.put(&mut put);
    assert_eq!(put, words);
    assert_eq!(value.payload(), payload);
    assert_eq!(take::<A>(words, payload), Some(value));
}

fn take<A: Arguments>(words: &[u64], payload: &[u8]) -> Option<A> {
    A::take(words, &mut Payload::new(payload))
}
