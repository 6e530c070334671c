//! What the guest's kernel, its first processes and QEMU itself say.

use std::io::Read;
use std::sync::Mutex;

/// How many lines are told when something goes wrong.
const TOLD: usize = 40;

/// All that was said so far.
#[derive(Default, Debug)]
pub struct Console {
    said: Mutex<Vec<u8>>,
}

impl Console {
    /// Keeps what is said until nobody can say any more.
    pub fn listen(&self, mut from: impl Read) {
        let mut buffer = [0; 4096];
        while let Ok(len @ 1..) = from.read(&mut buffer) {
            self.said.lock().expect("nothing panics with it").extend(&buffer[..len]);
        }
    }

    pub fn text(&self) -> String {
        let said = self.said.lock().expect("nothing panics with it");
        String::from_utf8_lossy(&said).replace('\r', "")
    }

    /// The last lines.
    pub fn tail(&self) -> String {
        let text = self.text();
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(TOLD)..].join("\n")
    }
}
