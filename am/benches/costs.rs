//! What the time of a short request and its reply is spent on, both sides on one thread:
//! `cargo bench -p doorbell-am --features costs --bench costs`.

use cases::{Case, Messages, ROUNDS, counted};
use doorbell_am::costs::{Cost, taken};
use tokio::runtime::Builder;

mod cases;

const KINDS: [(Cost, &str); 5] = [
    (Cost::Base, "verbs, and the NIC"),
    (Cost::Notification, "event notification"),
    (Cost::FlowControl, "flow control"),
    (Cost::Semantics, "semantics"),
    (Cost::Handlers, "handlers"),
];

fn main() -> std::io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut case = runtime.block_on(Messages::new());
    // What is slow at first is not counted.
    counted(&mut case);
    taken();
    counted(&mut case);
    let costs = taken();
    let each = |cost| costs.on(cost).as_nanos() as f64 / ROUNDS as f64;
    let all: f64 = KINDS.iter().map(|&(cost, _)| each(cost)).sum();
    println!("{}: {all:.0} ns of both sides", Messages::NAME);
    for (cost, name) in KINDS {
        println!("  {name:<24}{:>6.0} ns{:>6.0} %", each(cost), 100.0 * each(cost) / all);
    }
    Ok(())
}
