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
