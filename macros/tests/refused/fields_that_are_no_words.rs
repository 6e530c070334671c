extern crate self as doorbell;
#[path = "../stand_in/am.rs"]
#[allow(unused_imports)]
mod am;

use std::collections::HashMap;

use doorbell::am::Arguments;

#[derive(Arguments)]
struct Put {
    name: String,
    seen: HashMap<u64, u64>,
    tag: &'static str,
    sum: u128,
    value: u64,
}

fn main() {}
