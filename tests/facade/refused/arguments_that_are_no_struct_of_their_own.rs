use doorbell::am::Arguments;

#[derive(Arguments)]
enum Command {
    Stop,
    Go(u64),
}

#[derive(Arguments)]
union Either {
    whole: u64,
    half: u32,
}

#[derive(Arguments)]
struct Borrowed<'message> {
    value: &'message [u8],
}

#[derive(Arguments)]
#[doorbell(path = "am")]
struct Elsewhere(u64);

#[derive(Arguments)]
struct Marked {
    #[doorbell(crate = "am")]
    key: u64,
}

fn main() {}
