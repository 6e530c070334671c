//! What the two ends say to each other beside what is measured: JSON, a value a line.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A line to the other end, which blocks whoever waits for something on it.
pub struct Line {
    from: BufReader<UnixStream>,
    to: UnixStream,
}

impl Line {
    pub fn over(stream: UnixStream) -> anyhow::Result<Self> {
        let to = stream.try_clone().context("a second handle of the line to the other end")?;
        Ok(Self { from: BufReader::new(stream), to })
    }

    /// Bounds how long [`hear`](Self::hear) waits.
    pub fn set_patience(&self, patience: Option<Duration>) -> anyhow::Result<()> {
        let set = self.from.get_ref().set_read_timeout(patience);
        set.context("a limit to waiting for the other end")
    }

    pub fn tell(&mut self, what: &impl Serialize) -> anyhow::Result<()> {
        let mut text = serde_json::to_string(what).context("what is to be told")?;
        text.push('\n');
        self.to.write_all(text.as_bytes()).context("telling the other end")
    }

    pub fn hear<T: DeserializeOwned>(&mut self) -> anyhow::Result<T> {
        let mut text = String::new();
        let read = self.from.read_line(&mut text).context("hearing the other end")?;
        if read == 0 {
            bail!("the other end has gone; what it printed says why");
        }
        serde_json::from_str(&text).with_context(|| format!("the other end said `{}`", text.trim()))
    }

    /// Waits until the other end has come as far as this end.
    pub fn meet(&mut self, whither: &str) -> anyhow::Result<()> {
        self.tell(&whither)?;
        let theirs: String = self.hear()?;
        if theirs != whither {
            bail!("the other end has come to `{theirs}`, and this end to `{whither}`");
        }
        Ok(())
    }
}
