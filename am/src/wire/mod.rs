//! What endpoints write to each other: headers, arguments as words, packed messages, greetings.
//!
//! The folder turns values into bytes and bytes into values, and knows nothing of connections,
//! credits or handlers. Bytes that a peer sent come in as slices; each parser returns `None` for
//! bytes that no endpoint writes.

#![deny(clippy::indexing_slicing, clippy::cast_possible_truncation)]
#![cfg_attr(
    test,
    allow(
        clippy::indexing_slicing,
        clippy::cast_possible_truncation,
        reason = "a test that slices wrongly fails"
    )
)]

pub(crate) mod awaits;
mod bytes;
mod challenge;
mod content;
mod header;
mod hello;
mod meeting;
pub(crate) mod pack;
mod parting;
mod question;
mod refusal;
mod size;
mod tag;
mod taken;
mod words;

pub(crate) use challenge::{Challenge, Knock};
pub(crate) use content::Content;
pub(crate) use header::{
    ANSWER, FAILED, Header, Kind, MOST_CREDITS, MOST_HANDLERS, Placement, SYSTEM, WIDE,
};
pub(crate) use hello::{Hello, NOWHERE, Nature, Shown, memory_of_words, words_of_memory};
pub(crate) use meeting::{Meeting, Side};
pub(crate) use parting::Parting;
pub(crate) use question::{Ask, CALLS_ASKED, packed, proof_of_words, unpacked, words_of_proof};
pub(crate) use refusal::Refusal;
pub(crate) use size::{LISTED, SHORT, Size, buffer_len};
pub(crate) use tag::Admission;
pub use tag::{Admits, Tag};
pub(crate) use taken::Taken;
pub use words::{MOST_WORDS, ManyWords, Words};
pub(crate) use words::{each_word, put_words};
