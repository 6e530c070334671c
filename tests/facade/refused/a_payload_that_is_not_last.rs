use bytes::Bytes;
use doorbell::am::Arguments;

#[derive(Arguments)]
struct Put {
    value: Bytes,
    key: u64,
}

fn main() {}
