//! The other end: what the two say to each other beside what is measured.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use anyhow::{Context, Error, anyhow, bail};
use nix::poll::{PollFd, PollFlags, PollTimeout};
use serde_json::{Value, json};

use crate::perf::plan::Plan;
use crate::perf::plan::amount::Amount;

/// How long the other end may take for its part: opening a device, reaching this one.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The most bytes of a line: whatever connects to an end that listens may say anything.
const LONGEST: u64 = 16 << 20;

/// A stream of the kernel's to the other end, on which each line is a JSON value.
pub struct Peer {
    from: BufReader<Box<dyn Stream>>,
    to: Box<dyn Stream>,
    leads: bool,
}

/// The traits that a stream to the other end must have.
pub trait Stream: io::Read + io::Write + AsFd + Send {}
impl<T: io::Read + io::Write + AsFd + Send> Stream for T {}

impl Peer {
    /// Makes the other end of a stream, of which two handles are taken.
    pub fn over<S: Stream + TwoHandles + 'static>(stream: S, leads: bool) -> anyhow::Result<Self> {
        let to = stream.second(PATIENCE).context("the stream to the other end")?;
        Ok(Self { from: BufReader::new(Box::new(stream)), to: Box::new(to), leads })
    }

    /// Returns whether this end is the one that begins, measures and prints.
    pub fn leads(&self) -> bool {
        self.leads
    }

    /// Tells the other end something, and hears the same of it.
    pub fn swap(&mut self, mine: &Value) -> anyhow::Result<Value> {
        self.tell(mine)?;
        self.hear()
    }

    /// Tells the other end something.
    pub fn tell(&mut self, mine: &Value) -> anyhow::Result<()> {
        writeln!(self.to, "{mine}").map_err(|why| lost(why, "telling the other end"))
    }

    /// Hears what the other end tells.
    pub fn hear(&mut self) -> anyhow::Result<Value> {
        let mut line = String::new();
        let read = (&mut self.from).take(LONGEST).read_line(&mut line);
        let read = read.map_err(|why| lost(why, "hearing the other end"))?;
        if read == 0 {
            bail!(GONE);
        }
        serde_json::from_str(&line).context("what the other end said")
    }

    /// Waits until the other end is here, too; meanwhile does something again and again, which
    /// that may need.
    pub fn meet(&mut self, meanwhile: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<()> {
        match self.swap_while(&json!("here"), meanwhile)? {
            here if here == json!("here") => Ok(()),
            other => bail!("the other end was expected to be ready, and said {other}"),
        }
    }

    /// Tells the other end something, and hears the same of it, as [`swap`](Self::swap); meanwhile
    /// does something again and again, which that may need.
    pub fn swap_while(
        &mut self,
        mine: &Value,
        mut meanwhile: impl FnMut() -> anyhow::Result<()>,
    ) -> anyhow::Result<Value> {
        self.tell(mine)?;
        let since = Instant::now();
        while !self.has_spoken()? {
            meanwhile()?;
            if since.elapsed() > PATIENCE {
                bail!(SILENT);
            }
        }
        self.hear()
    }

    /// Tells the other end something, and hears the same of it, as
    /// [`swap_while`](Self::swap_while), and lets tasks of this thread run meanwhile.
    pub async fn swap_beside_tasks(
        &mut self,
        mine: &Value,
        mut meanwhile: impl FnMut(),
    ) -> anyhow::Result<Value> {
        self.tell(mine)?;
        let since = Instant::now();
        while !self.has_spoken()? {
            meanwhile();
            tokio::task::yield_now().await;
            if since.elapsed() > PATIENCE {
                bail!(SILENT);
            }
        }
        self.hear()
    }

    /// Whether something can be heard: on the stream, or behind what was heard before.
    fn has_spoken(&self) -> anyhow::Result<bool> {
        if !self.from.buffer().is_empty() {
            return Ok(true);
        }
        let mut fds = [PollFd::new(self.from.get_ref().as_fd(), PollFlags::POLLIN)];
        Ok(nix::poll::poll(&mut fds, PollTimeout::ZERO)? > 0)
    }

    /// The stream from the other end, to be watched.
    pub fn line(&self) -> io::Result<OwnedFd> {
        self.from.get_ref().as_fd().try_clone_to_owned()
    }

    /// Makes sure that both ends are to do the same.
    pub fn agree(&mut self, plan: &Plan) -> anyhow::Result<()> {
        let mine = agreed(plan);
        let theirs = self.swap(&mine)?;
        match differences(&mine, &theirs)? {
            all if all.is_empty() => Ok(()),
            all => bail!("the two ends differ: {}; give both the same", all.join("; ")),
        }
    }
}

/// The parts of a plan on which both ends must agree, each under the argument that sets it.
fn agreed(plan: &Plan) -> Value {
    let (iters, seconds) = match plan.amount {
        Amount::Times(times) => (json!(times), Value::Null),
        Amount::For(time) => (Value::Null, json!(time.as_secs_f64())),
    };
    json!({
        "the version of doorbell": env!("CARGO_PKG_VERSION"),
        "the test": plan.test.name(),
        "--size": plan.size,
        "--iters": iters,
        "--seconds": seconds,
        "--no-offload": !plan.offload,
        "--loss": (plan.loss > 0.0).then_some(plan.loss),
        "--no-map": !plan.map,
        "--others": plan.others,
        "--connections": plan.connections,
        "--credits": plan.credits,
        "--policy": plan.policy.name(),
        "--nic-credits": plan.nic_credits,
        "--both-ways": plan.both_ways,
        "--block": plan.block,
        "--blocks": plan.blocks,
        "--posted": plan.posted,
        "--carrier": plan.carrier.map(|carrier| carrier.to_string()),
    })
}

/// Returns what differs between the plans of the two ends, a piece of a sentence for each.
fn differences(mine: &Value, theirs: &Value) -> anyhow::Result<Vec<String>> {
    let (Some(here), Some(there)) = (mine.as_object(), theirs.as_object()) else {
        bail!("the other end is not `doorbell perf`: it said {theirs}");
    };
    let shown = |value: Option<&Value>| match value {
        None | Some(Value::Null | Value::Bool(false)) => "not given".to_owned(),
        Some(Value::Bool(true)) => "given".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let mut names: Vec<_> = here.keys().chain(there.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let differing = names.into_iter().filter(|name| here.get(*name) != there.get(*name));
    let told = |name: &String| {
        format!("{name} is {} here and {} there", shown(here.get(name)), shown(there.get(name)))
    };
    Ok(differing.map(told).collect())
}

pub const GONE: &str = "the other end has gone: the output of its process says why";

const SILENT: &str = "the other end has said nothing for too long";

/// Explains an error of the stream to the other end.
fn lost(why: io::Error, what: &'static str) -> Error {
    match why.kind() {
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => anyhow!(GONE),
        ErrorKind::WouldBlock => anyhow!(SILENT),
        _ => Error::new(why).context(what),
    }
}

/// A stream that can be held twice, to read from the one and write to the other.
pub trait TwoHandles: Sized {
    /// Makes the second handle. Reading gives up after the time `patience`.
    fn second(&self, patience: Duration) -> io::Result<Self>;
}

impl TwoHandles for std::net::TcpStream {
    fn second(&self, patience: Duration) -> io::Result<Self> {
        self.set_nodelay(true)?;
        self.set_read_timeout(Some(patience))?;
        self.try_clone()
    }
}

impl TwoHandles for std::os::unix::net::UnixStream {
    fn second(&self, patience: Duration) -> io::Result<Self> {
        self.set_read_timeout(Some(patience))?;
        self.try_clone()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    /// The stream alone was looked at, which had nothing any more, and both ends waited.
    #[test]
    fn what_came_along_with_something_else_is_heard_without_waiting() {
        let (near, mut far) = UnixStream::pair().expect("a pair of sockets");
        far.write_all(b"1\n2\n").expect("room for a few bytes");
        let mut peer = Peer::over(near, true).expect("two handles");
        assert_eq!(peer.hear().expect("the first"), 1);
        let second = peer.swap_while(&json!(0), || bail!("it is there already"));
        assert_eq!(second.expect("the second"), 2);
    }
}
