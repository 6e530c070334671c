//! Joining the processes that share an interface.

use std::io;
use std::time::{Duration, Instant};

use doorbell_transports::Trouble;
use doorbell_transports::sharing::{Event as Shares, Membership};

use crate::error::OpenError;

/// How long the other processes of an interface have to answer.
const SHARING: Duration = Duration::from_secs(3);

/// A NIC that is about to join the processes that share an interface, and gets its numbers from
/// them.
pub(super) struct Joining {
    pub sharing: Membership,
    since: Instant,
}

impl Joining {
    pub fn new(interface: &str) -> Result<Self, OpenError> {
        Ok(Self { sharing: Membership::of_interface(interface)?, since: Instant::now() })
    }

    /// Returns whether the other processes have answered, and pauses for a moment if they have not.
    ///
    /// # Errors
    /// Returns an error when they have not answered for too long.
    pub fn is_welcome(&mut self) -> Result<bool, OpenError> {
        loop {
            match self.sharing.turn() {
                Some(Shares::Welcome) => return Ok(true),
                Some(_) => {}
                None if self.since.elapsed() < SHARING => {
                    std::thread::sleep(Duration::from_micros(100));
                    return Ok(false);
                }
                None => {
                    let found = io::Error::from(io::ErrorKind::TimedOut).to_string();
                    return Err(OpenError::Alone(self.sharing.trouble().unwrap_or(Trouble {
                        what: "sharing an interface".to_owned(),
                        found,
                        advice: "look for processes there that have stopped",
                    })));
                }
            }
        }
    }
}
