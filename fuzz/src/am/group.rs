//! The parsers of the words of a group's messages.

use doorbell_am::parsers;

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
