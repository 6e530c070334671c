//! What a short request and its reply cost, both sides on one thread, beside the two sends of verbs
//! that carry them: in nanoseconds, and in instructions as callgrind counts.
//!
//! `cargo bench -p doorbell-am --bench messages` needs valgrind for the second. The program runs
//! itself under it, once for each case, and only what the case repeats is counted.

use std::env;
use std::io;
use std::process::{Command, Output};
use std::time::Instant;

use doorbell_verbs::work::Send;
use doorbell_verbs::{Buf, CompletionQueue, Memory, Name, Nic, Queues, QueuesConfig, ServiceId};
use tokio::runtime::{Builder, Runtime};

use cases::{Calls, Case, Messages, ROUNDS, TypedCalls, counted, nics};

mod cases;

/// A send of 16 bytes there, and one back.
struct Sends {
    ends: [(Queues, CompletionQueue); 2],
}

impl Sends {
    async fn new() -> Self {
        let (near, far) = nics();
        let mut listener = far.listen(ServiceId(7)).await.expect("nobody else listens");
        let prepare = |nic: &Nic| {
            let completions = nic.completion_queue(256).expect("room");
            let config = QueuesConfig::new(&completions);
            let mut queues = nic.domain().queues(&config).expect("room");
            (0..16).for_each(|_| queues.post_receive(0, Buf::with_capacity(64)).expect("room"));
            (queues, completions)
        };
        let ((near, here), (far, there)) = (prepare(&near), prepare(&far));
        let address = there.nic().address().to_string();
        let asks = near.connect(Name::at(&*address, 7), &[]);
        let takes = async { far.accept(listener.accept().await.expect("a request"), &[]).await };
        let (near, far) = tokio::join!(asks, takes);
        let (near, far) = (near.expect("it listens").0, far.expect("it waits").0);
        Self { ends: [(near, here), (far, there)] }
    }

    fn send(&mut self, from: usize) {
        let data = Send::inline(&[7; 16]).expect("few bytes").unsignalled();
        self.ends[from].0.send.post(data).expect("room");
        let (queues, completions) = &mut self.ends[1 - from];
        let Some(completion) = completions.poll() else { panic!("it has come") };
        let Memory::Buf(buffer) = completion.memory else { panic!("a buffer was posted") };
        queues.receive.post(0, buffer).expect("room");
    }
}

impl Case for Sends {
    const NAME: &'static str = "two sends of verbs, 16 bytes";

    #[inline(never)]
    fn once(&mut self) {
        self.send(0);
        self.send(1);
    }
}

/// A ping-pong of sends by a task that holds the NIC: answers leave at once, acknowledgements
/// later.
struct InHand(Sends);

impl InHand {
    /// Takes what has come to an end, and has it answered if that is to be.
    fn take(&mut self, end: usize, answers: bool) {
        let (queues, completions) = &mut self.0.ends[end];
        let nic = completions.nic().clone();
        let found = nic.turn_and_find(|mut nic| {
            let mut completion = completions.look()?;
            let Memory::Buf(buffer) = std::mem::take(&mut completion.memory) else { return None };
            drop(completion);
            if answers {
                let data = Send::inline(&[7; 16]).expect("few bytes").unsignalled();
                nic.post(&mut queues.send, data).expect("room");
            }
            queues.receive.post(0, buffer).expect("room");
            Some(())
        });
        found.expect("it has come");
    }
}

impl Case for InHand {
    const NAME: &'static str = "the same, answered with the NIC in hand";

    #[inline(never)]
    fn once(&mut self) {
        let data = Send::inline(&[7; 16]).expect("few bytes").unsignalled();
        self.0.ends[0].0.send.post(data).expect("room");
        self.take(1, true);
        self.take(0, false);
    }
}

/// Nanoseconds of the best of ten.
fn timed<C: Case>(case: &mut C) -> f64 {
    let time = |_| {
        let start = Instant::now();
        counted(case);
        start.elapsed().as_nanos() as f64 / ROUNDS as f64
    };
    (0..10).map(time).fold(f64::MAX, f64::min)
}

/// The line `Collected : N` that callgrind ends with.
fn collected(output: &Output) -> io::Result<u64> {
    let said = String::from_utf8_lossy(&output.stderr);
    let found = said.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    found.ok_or_else(|| io::Error::other(format!("callgrind counted nothing; it said:\n{said}")))
}

fn instructions(which: &str) -> io::Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg("--toggle-collect=*cases::counted*")
        .arg(env::current_exe()?)
        .env("DOORBELL_COUNTED", which)
        .output()
        .map_err(|why| {
            io::Error::other(format!("running valgrind, from Debian's package: {why}"))
        })?;
    Ok(collected(&output)? / ROUNDS)
}

/// Of each case, the time and the instructions.
fn measure<C: Case>(
    runtime: &Runtime,
    case: impl Future<Output = C>,
    which: &str,
) -> io::Result<()> {
    let nanos = timed(&mut runtime.block_on(case));
    println!("  {:<48}{nanos:>8.0} ns{:>8} instructions", C::NAME, instructions(which)?);
    Ok(())
}

fn main() -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    match env::var("DOORBELL_COUNTED").as_deref() {
        Ok("sends") => counted(&mut runtime.block_on(Sends::new())),
        Ok("in hand") => counted(&mut InHand(runtime.block_on(Sends::new()))),
        Ok("calls") => counted(&mut runtime.block_on(Calls::new())),
        Ok("typed calls") => counted(&mut runtime.block_on(TypedCalls::new())),
        Ok(_) => counted(&mut runtime.block_on(Messages::new())),
        Err(_) => {
            measure(&runtime, Sends::new(), "sends")?;
            measure(&runtime, async { InHand(Sends::new().await) }, "in hand")?;
            measure(&runtime, Messages::new(), "messages")?;
            measure(&runtime, Calls::new(), "calls")?;
            measure(&runtime, TypedCalls::new(), "typed calls")?;
        }
    }
    Ok(())
}
