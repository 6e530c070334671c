use std::collections::HashMap;

use doorbell::am::Arguments;

#[derive(Arguments)]
struct Put {
    key: u64,
    values: HashMap<u64, u64>,
}

fn main() {}
