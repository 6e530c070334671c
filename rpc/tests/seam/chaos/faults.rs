//! The fleet of servers, and the faults that they suffer.

use std::path::{Path, PathBuf};
use std::time::Duration;

use doorbell_kit::child::Child;
use doorbell_simulation::Luck;

/// What happens to one of the servers.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// The process is killed, and started again after a time.
    Killed { server: usize, after: Duration },
    /// The process is stopped for a time.
    Stopped { server: usize, time: Duration },
    /// A thread of the runtime is blocked for a time.
    Blocked { server: usize, time: Duration },
    /// The server is shut down, and started again.
    Restarts { server: usize },
}

impl Fault {
    /// Draws the next fault.
    pub fn draw(luck: &mut Luck) -> Self {
        let server = luck.below(3) as usize;
        let mut time = |most| Duration::from_millis(luck.below(most));
        let (short, long) = (time(300), time(1500));
        match luck.below(4) {
            0 => Self::Killed { server, after: short },
            1 => Self::Stopped { server, time: long },
            2 => Self::Blocked { server, time: long },
            _ => Self::Restarts { server },
        }
    }
}

/// Servers in processes of their own.
pub struct Fleet {
    test: &'static str,
    servers: Vec<Running>,
    records: PathBuf,
    /// How many processes were started.
    started: usize,
}

/// A server that runs.
struct Running {
    device: String,
    name: String,
    /// The process, unless it has ended.
    process: Option<Child>,
}

impl Fleet {
    /// Starts a server at each device. The servers write their records into a directory.
    pub fn start(test: &str, devices: &[String], records: &Path) -> Self {
        let test = String::leak(test.to_owned());
        let mut fleet = Self { test, servers: Vec::new(), records: records.to_owned(), started: 0 };
        for device in devices {
            let (name, process) = fleet.open(device);
            fleet.servers.push(Running { device: device.clone(), name, process: Some(process) });
        }
        fleet
    }

    /// The names of the servers, which stay the same.
    pub fn names(&self) -> Vec<String> {
        self.servers.iter().map(|server| server.name.clone()).collect()
    }

    /// Has a server suffer a fault, and waits until it is there again.
    pub fn suffer(&mut self, fault: Fault) {
        match fault {
            Fault::Killed { server, after } => {
                self.servers[server].process().kill();
                std::thread::sleep(after);
                self.again(server);
            }
            Fault::Stopped { server, time } => {
                let process = self.servers[server].process();
                process.stop();
                std::thread::sleep(time);
                process.resume();
            }
            Fault::Blocked { server, time } => {
                self.servers[server].process().say(format_args!("block {}", time.as_millis()));
                std::thread::sleep(time);
            }
            Fault::Restarts { server } => {
                self.servers[server].shut_down();
                self.again(server);
            }
        }
    }

    /// Shuts all servers down, none of which may lose an answer.
    pub fn shut_down(&mut self) {
        self.servers.iter_mut().for_each(Running::shut_down);
    }

    /// Starts a server again whose process has ended.
    fn again(&mut self, server: usize) {
        let device = self.servers[server].device.clone();
        let (name, process) = self.open(&device);
        assert_eq!(name, self.servers[server].name);
        self.servers[server].process = Some(process);
    }

    /// Starts a process with a server, and returns the name of the server.
    fn open(&mut self, device: &str) -> (String, Child) {
        let record = self.records.join(self.started.to_string());
        self.started += 1;
        let part = format!("{device} {}", record.display());
        let mut process = Child::start(self.test, &part, None);
        (process.hear(), process)
    }
}

impl Running {
    fn process(&mut self) -> &mut Child {
        self.process.as_mut().expect("the server runs")
    }

    /// Shuts the server down, which must not lose an answer, and waits until its process has ended.
    fn shut_down(&mut self) {
        let mut process = self.process.take().expect("the server runs");
        process.say("shut down");
        let told = process.hear();
        assert_eq!(told, "shut down", "{} says so at its end", self.name);
        process.end();
    }
}
