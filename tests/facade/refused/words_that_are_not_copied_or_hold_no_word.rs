use doorbell::am::Word;

#[derive(Word)]
struct Key(u64);

#[derive(Word)]
enum Colour {
    Red,
    Green,
}

#[derive(Word, Clone, Copy)]
struct Name(&'static str);

fn main() {}
