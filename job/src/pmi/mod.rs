//! PMI-1, the protocol by which launchers of MPI programs let processes exchange a few words.
//!
//! Hydra, which MPICH brings, and Slurm with `--mpi=pmi2` start processes with a socket in
//! `PMI_FD`. Questions and answers are lines of `key=value`. All that is asked here is the job's
//! name, and that one value of process 0 gets to all others: where they meet, and the secret.

mod line;

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::error::JobError;
use line::Line;

/// The longest line of an answer.
const LONGEST: u64 = 8192;

/// A connection to a launcher.
#[derive(Debug)]
pub struct Pmi<S = UnixStream> {
    reader: BufReader<S>,
    writer: S,
    /// The name of the launcher's table of keys and values.
    table: String,
    longest_value: usize,
    /// How long the launcher may take for an answer.
    within: Duration,
}

impl Pmi {
    /// Begins to speak with a launcher over a connection, for each of whose answers it has a time.
    ///
    /// # Errors
    /// When nobody is there, or does not speak PMI-1.
    pub fn over(stream: UnixStream, within: Duration) -> Result<Self, JobError> {
        let system = |why| JobError::System { what: "using the connection of PMI_FD", why };
        stream.set_read_timeout(Some(within)).map_err(system)?;
        let writer = stream.try_clone().map_err(system)?;
        Self::new(stream, writer, within)
    }
}

impl<S: Read + Write> Pmi<S> {
    fn new(reader: S, writer: S, within: Duration) -> Result<Self, JobError> {
        let (table, longest_value) = (String::new(), 0);
        let reader = BufReader::new(reader);
        let mut pmi = Self { reader, writer, table, longest_value, within };
        let init = pmi.ask("init", &[("pmi_version", "1"), ("pmi_subversion", "1")])?;
        if init.get("pmi_version") != Some("1") {
            let found = format!("version {}", init.get("pmi_version").unwrap_or("unknown"));
            return Err(JobError::Pmi { asked: "cmd=init pmi_version=1".into(), found });
        }
        let most = pmi.ask("get_maxes", &[])?;
        pmi.longest_value = most.get("vallen_max").and_then(|n| n.parse().ok()).unwrap_or(256);
        let name = pmi.ask("get_my_kvsname", &[])?;
        pmi.table = name.get("kvsname").unwrap_or_default().to_owned();
        Ok(pmi)
    }

    /// Puts a value of process 0 where the others get it. Values have no spaces.
    ///
    /// # Errors
    /// When the launcher does not take it.
    pub fn put(&mut self, key: &str, value: &str) -> Result<(), JobError> {
        if value.len() > self.longest_value {
            let found = format!(
                "the value has {} bytes, and the launcher takes {}",
                value.len(),
                self.longest_value
            );
            return Err(JobError::Pmi { asked: format!("cmd=put key={key}"), found });
        }
        let table = self.table.clone();
        self.ask("put", &[("kvsname", &table), ("key", key), ("value", value)]).map(drop)
    }

    /// Gets a value that was put before the last barrier.
    ///
    /// # Errors
    /// When there is none.
    pub fn get(&mut self, key: &str) -> Result<String, JobError> {
        let table = self.table.clone();
        let answer = self.ask("get", &[("kvsname", &table), ("key", key)])?;
        let value = answer.get("value").map(str::to_owned);
        value.ok_or_else(|| JobError::Pmi {
            asked: format!("cmd=get key={key}"),
            found: format!("no value: `{answer}`"),
        })
    }

    /// Waits until all processes are here.
    ///
    /// # Errors
    /// When they do not come in time.
    pub fn barrier(&mut self) -> Result<(), JobError> {
        self.ask("barrier_in", &[]).map(drop)
    }

    /// Tells the launcher that this process will end by itself. A launcher takes one that ends
    /// without saying so for one that has failed.
    ///
    /// # Errors
    /// When the launcher does not answer.
    pub fn finalize(mut self) -> Result<(), JobError> {
        self.ask("finalize", &[]).map(drop)
    }

    fn ask(&mut self, command: &str, words: &[(&str, &str)]) -> Result<Line, JobError> {
        let mut asked = format!("cmd={command}");
        for (key, value) in words {
            asked.push_str(&format!(" {key}={value}"));
        }
        let wrong = |found: String| JobError::Pmi { asked: asked.clone(), found };
        let written = self.writer.write_all(format!("{asked}\n").as_bytes());
        let written = written.and_then(|()| self.writer.flush());
        let ended = || wrong("the launcher has ended the connection".to_owned());
        let is_end = |why: &io::Error| {
            matches!(why.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset)
        };
        written.map_err(|why| if is_end(&why) { ended() } else { wrong(why.to_string()) })?;
        let mut answer = Vec::new();
        let read = (&mut self.reader).take(LONGEST).read_until(b'\n', &mut answer);
        match read {
            Ok(0) => return Err(ended()),
            Ok(_) => {}
            Err(why) if is_end(&why) => return Err(ended()),
            Err(why) if why.kind() == ErrorKind::WouldBlock => {
                let within = self.within;
                return Err(wrong(match command {
                    "barrier_in" => format!("not all processes have come within {within:?}"),
                    _ => format!("no answer within {within:?}"),
                }));
            }
            Err(why) => return Err(wrong(why.to_string())),
        }
        let text = String::from_utf8_lossy(&answer);
        let line = Line::parse(&text).ok_or_else(|| wrong(format!("`{}`", text.trim_end())))?;
        let expected = match command {
            "init" => "response_to_init",
            "get_maxes" => "maxes",
            "get_my_kvsname" => "my_kvsname",
            "put" => "put_result",
            "get" => "get_result",
            "barrier_in" => "barrier_out",
            _ => "finalize_ack",
        };
        let is_answer = line.get("cmd") == Some(expected);
        if !is_answer || line.get("rc").is_some_and(|code| code != "0") {
            return Err(wrong(format!("`{line}`")));
        }
        Ok(line)
    }
}
