use doorbell::am::Plain;

#[derive(Plain)]
struct Pair<T> {
    left: T,
    right: T,
}

#[derive(Plain)]
struct Sizes {
    size: usize,
}

#[derive(Plain)]
struct Nothing;

#[derive(Plain)]
enum Colour {
    Red,
}

fn main() {}
