//! A small Linux that runs commands.

mod config;
mod console;
mod control;
mod machine;
mod running;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::{Error, Image, Link};

pub use config::GuestConfig;
use console::Console;
use control::{Control, Reader};
use machine::Machine;
pub use running::Running;

pub use crate::output::Output;

/// A guest that is up: its device `rxe0` is active, and has a GID for each of its addresses.
///
/// It may be shared between threads. It is gone when this is dropped, with whatever runs there.
#[derive(Debug)]
pub struct Guest {
    control: Arc<Control>,
    console: Arc<Console>,
    /// It has to end before the reader can.
    machine: Option<Machine>,
    reader: Option<Reader>,
    took: Duration,
}

impl Guest {
    /// Boots one at the end of a link, in ten seconds or so. A link takes one guest at a time.
    ///
    /// # Errors
    /// When there is no QEMU, or the guest does not come up; the end of its console is then told.
    pub fn boot(image: &Image, config: &GuestConfig, link: &Link) -> Result<Self, Error> {
        let start = Instant::now();
        let console = Arc::new(Console::default());
        let (machine, socket) = Machine::start(image, config, link, &console)?;
        let (control, reader) = Control::new(socket, Arc::clone(&console))?;
        // From here on it is taken down whatever comes.
        let machine = Some(machine);
        let mut guest =
            Self { control, console, machine, reader: Some(reader), took: Duration::ZERO };
        guest.control.ready(config.patience)?;
        guest.took = start.elapsed();
        Ok(guest)
    }

    /// How long it took to boot.
    pub fn boot_time(&self) -> Duration {
        self.took
    }

    /// Which process it is.
    pub fn process(&self) -> u32 {
        self.machine.as_ref().map_or(0, Machine::process)
    }

    /// All that its console has shown.
    pub fn console(&self) -> String {
        self.console.text()
    }

    /// Runs a shell command to its end.
    ///
    /// # Errors
    /// When it takes longer, and is killed then, or the guest is gone. That it does not succeed is
    /// none.
    pub fn run(&self, command: &str, at_most: Duration) -> Result<Output, Error> {
        self.start(command)?.wait(at_most)
    }

    /// Starts a shell command. Any number may run at a time.
    ///
    /// # Errors
    /// When the guest is gone.
    pub fn start(&self, command: &str) -> Result<Running, Error> {
        Running::start(&self.control, command)
    }

    /// Waits until a shell command succeeds, which is tried again and again.
    ///
    /// # Errors
    /// When it does not in that time, or the guest is gone.
    pub fn until(&self, condition: &str, at_most: Duration) -> Result<(), Error> {
        self.run(&running::repeated(condition), at_most).map(drop)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // The machine first: what is read from it ends with it.
        self.machine = None;
        self.reader = None;
    }
}
