//! A `doorbell` under way, as a user has one.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A `doorbell` process of the test, which is killed when this is dropped.
pub struct Ours {
    child: Child,
    stderr: BufReader<ChildStderr>,
    heard: String,
}

impl Ours {
    pub fn start(arguments: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_doorbell"));
        command.args(arguments.split(' ')).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command runs");
        let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        Self { child, stderr, heard: String::new() }
    }

    /// The TCP port at which it waits, or what it says instead.
    pub fn port(&mut self) -> Result<u16, String> {
        loop {
            let at = self.heard.len();
            let any = self.stderr.read_line(&mut self.heard).expect("it says text");
            if any == 0 {
                return Err(format!("it does not wait: {}", self.heard));
            }
            if let Some(port) = self.heard[at..].trim().strip_prefix("waiting at TCP port ") {
                return Ok(port.parse().expect("a port"));
            }
        }
    }

    /// Waits for its end, and kills it when that takes too long: whoever waits for another does so
    /// for ever. What it prints must fit into pipes.
    pub fn end(mut self, at_most: Duration) -> Output {
        let start = Instant::now();
        while self.child.try_wait().expect("it is a child").is_none() && start.elapsed() < at_most {
            thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let status = self.child.wait().expect("it is a child");
        let (mut stdout, mut stderr) = (Vec::new(), std::mem::take(&mut self.heard).into_bytes());
        let pipe = self.child.stdout.as_mut().expect("it is piped");
        pipe.read_to_end(&mut stdout).expect("it has ended");
        self.stderr.read_to_end(&mut stderr).expect("it has ended");
        Output { status, stdout, stderr }
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        // Both fail if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
