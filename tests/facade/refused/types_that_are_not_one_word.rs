use doorbell::am::Word;

#[derive(Word, Clone, Copy)]
struct Two(u32, u32);

#[derive(Word, Clone, Copy)]
struct Nothing;

#[derive(Word, Clone, Copy)]
struct Any<T>(T);

#[derive(Word, Clone, Copy)]
enum Never {}

#[derive(Word, Clone, Copy)]
enum Command {
    Stop,
    Go(u64),
    Turn { degrees: f64 },
}

fn main() {}
