extern crate self as doorbell;
#[path = "../stand_in/am.rs"]
#[allow(unused_imports)]
mod am;

use bytes::Bytes;
use doorbell::am::Arguments;

#[derive(Arguments)]
struct Put {
    value: Bytes,
    key: u64,
}

fn main() {}
