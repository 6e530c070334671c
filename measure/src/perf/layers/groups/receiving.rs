//! The time that a processor takes to receive long messages one after the other, while the program
//! sleeps in between.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bytes::Bytes;
use doorbell_messages::collectives::Group;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde_json::json;

use super::ping_pong::budget;
use crate::perf::Plan;
use crate::perf::figures::Row;

/// The sizes of messages, unless one is given.
const SIZES: [usize; 4] = [32 << 10, 256 << 10, 1 << 20, 4 << 20];
/// The tags of messages, of the last one, and of what the receiver tells.
const TAG: u32 = 1;
const TOLD: u32 = 2;

fn sizes(plan: &Plan) -> &[usize] {
    if plan.size == 0 { &SIZES } else { std::slice::from_ref(&plan.size) }
}

/// The receiver's counts of the messages of one size, and of its time.
struct Seen {
    began: Instant,
    used: [Duration; 2],
    messages: u64,
}

/// How many numbers the receiver tells: messages, and seconds of the user, of the system, and of
/// all.
const NUMBERS: usize = 4;

impl Seen {
    fn begin() -> anyhow::Result<Self> {
        Ok(Self { began: Instant::now(), used: used()?, messages: 0 })
    }

    fn end(&self) -> anyhow::Result<[f64; NUMBERS]> {
        let [user, system] = used()?;
        let seconds = [user - self.used[0], system - self.used[1], self.began.elapsed()];
        let [user, system, all] = seconds.map(|time| time.as_secs_f64());
        Ok([self.messages as f64, user, system, all])
    }
}

/// The time that this process has spent on processors: its own, and the kernel's for it.
fn used() -> anyhow::Result<[Duration; 2]> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).context("asking for the processor time")?;
    let duration = |time: TimeVal| {
        Duration::new(time.tv_sec() as u64, 0) + Duration::from_micros(time.tv_usec() as u64)
    };
    Ok([usage.user_time(), usage.system_time()].map(duration))
}

fn row(size: usize, [messages, user, system, all]: [f64; NUMBERS]) -> Row {
    let share = |time: f64| json!(time / all.max(1e-9));
    vec![
        ("size", json!(size)),
        ("messages", json!(messages)),
        ("user_share", share(user)),
        ("system_share", share(system)),
        ("mib_per_s", json!(messages * size as f64 / all.max(1e-9) / f64::from(1 << 20))),
    ]
}

/// Measures messages of a group, which the receiver pulls.
pub async fn by_messages(group: &Group, plan: &Plan) -> anyhow::Result<Vec<Row>> {
    let (sizes, mut rows) = (sizes(plan), Vec::new());
    let budget = budget(plan, sizes.len())?;
    for &size in sizes {
        if group.rank() == 0 {
            let (body, began) = (Bytes::from(vec![7; size]), Instant::now());
            while began.elapsed() < budget {
                group.send(1, TAG, body.clone()).await?;
            }
            group.send(1, TAG, Bytes::new()).await?;
            let told = group.receive(1, TOLD).await?;
            let numbers = told.as_chunks::<8>().0.iter().map(|number| f64::from_le_bytes(*number));
            let numbers: Vec<_> = numbers.collect();
            rows.push(row(size, numbers.try_into().ok().context("the receiver's numbers")?));
        } else {
            let mut seen = Seen::begin()?;
            loop {
                let body = group.receive(0, TAG).await?;
                if body.is_empty() {
                    break;
                }
                ensure!(body.len() == size && body[size - 1] == 7, "a message is not right");
                seen.messages += 1;
            }
            let numbers = seen.end()?.into_iter().flat_map(f64::to_le_bytes);
            group.send(0, TOLD, numbers.collect()).await?;
        }
    }
    Ok(rows)
}

/// Measures the same over a socket that blocks.
pub fn by_sockets(mut stream: TcpStream, leads: bool, plan: &Plan) -> anyhow::Result<Vec<Row>> {
    stream.set_nonblocking(false).context("a socket that blocks")?;
    let (sizes, mut rows) = (sizes(plan), Vec::new());
    let budget = budget(plan, sizes.len())?;
    for &size in sizes {
        let mut body = vec![7; size];
        if leads {
            let began = Instant::now();
            while began.elapsed() < budget {
                stream.write_all(&[1]).context("sending")?;
                stream.write_all(&body).context("sending")?;
            }
            stream.write_all(&[0]).context("sending")?;
            let mut numbers = [0.0; NUMBERS];
            for number in &mut numbers {
                let mut bytes = [0; 8];
                stream.read_exact(&mut bytes).context("receiving")?;
                *number = f64::from_le_bytes(bytes);
            }
            rows.push(row(size, numbers));
        } else {
            let (mut seen, mut follows) = (Seen::begin()?, [0]);
            loop {
                stream.read_exact(&mut follows).context("receiving")?;
                if follows == [0] {
                    break;
                }
                stream.read_exact(&mut body).context("receiving")?;
                ensure!(body[size - 1] == 7, "a message is not right");
                seen.messages += 1;
            }
            for number in seen.end()? {
                stream.write_all(&number.to_le_bytes()).context("telling")?;
            }
        }
    }
    Ok(rows)
}
