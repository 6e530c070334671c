//! How much memory messages take, of floods, of peers that have gone, and of streams.

mod floods;
mod peers;
mod streams;
