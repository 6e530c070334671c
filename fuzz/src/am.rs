//! The parsers of Active Messages: of a send that several messages share, of the greetings of
//! endpoints, and of the words of a group's messages.

#![forbid(unsafe_code)]

use doorbell::am::parsers;

/// The messages of a send follow each other, and lie within it with their words and payloads.
pub fn am_pack(data: &[u8]) {
    let mut at = 0;
    while let Some(found) = parsers::message(data, at) {
        let within = at < found.data.start && found.data.start <= found.data.end;
        assert!(within && found.data.end <= found.next && found.next <= data.len(), "{found:?}");
        assert!(8 * found.words <= found.data.len(), "{found:?}");
        // What a message has is there, and nothing is between it and the next but zeros' room.
        assert!(found.next - found.data.end < 8, "{found:?}");
        at = found.next;
    }
    // Wherever somebody begins to read.
    for at in [data.len().saturating_sub(1), data.len(), data.len() + 1] {
        if let Some(found) = parsers::message(data, at) {
            assert!(found.next <= data.len(), "{found:?}");
        }
    }
}

/// What was read of a greeting is written and read again as the same, and is as long as private
/// data may be.
pub fn am_hello(data: &[u8]) {
    let Some(written) = parsers::greeting(data) else { return };
    assert!(written.len() <= 148, "{} bytes", written.len());
    assert_eq!(parsers::greeting(&written).as_ref(), Some(&written));
}

/// A label is the word that it was read of, and a failure is written as it was read; neither names
/// a member that there is not.
pub fn am_group(data: &[u8]) {
    let Some((members, rest)) = data.split_first_chunk::<2>() else { return };
    let members = usize::from(u16::from_be_bytes(*members));
    let words = rest.as_chunks::<8>().0.iter().map(|&word| u64::from_be_bytes(word));
    for word in words.clone() {
        if let Some(again) = parsers::label(word, members) {
            assert_eq!(again, word);
            let rank = |at: u32| (word >> (20 * at) & 0xF_FFFF) as usize;
            assert!(rank(0) < members && rank(2) < members, "{word:x} of {members}");
        }
    }
    let mut words = words;
    let four = [(); 4].map(|()| words.next().unwrap_or(0));
    let text = String::from_utf8_lossy(rest.get(32..).unwrap_or_default()).into_owned();
    let Some((read, said)) = parsers::failure(four, text.clone(), members) else { return };
    assert_eq!((read[0], read[1]), (four[0], four[1]));
    assert!((read[0] & u64::from(u32::MAX)) < members as u64);
    assert!(said.len() <= 256 && text.starts_with(&said), "{said:?} of {text:?}");
    let again = parsers::failure(read, said.clone(), members);
    assert_eq!(again, Some((read, said)));
}
