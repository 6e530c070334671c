//! The devices by which the processes of a job reach each other.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use crate::environment::Environment;
use crate::error::JobError;
use crate::members::Members;
use crate::place::{addresses_of, own_addresses};

/// The devices that every process of a job may open, in the order in which they are preferred.
/// Each pair of processes uses the first device that reaches the one from the other.
///
/// ```
/// use doorbell_job::Devices;
///
/// let devices: Devices = "shm,packet:eth0,udp".parse()?;
/// assert_eq!(devices.to_string(), "shm,packet:eth0,udp");
/// assert_eq!(Devices::default().to_string(), "shm,udp");
/// # Ok::<(), doorbell_job::JobError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Devices {
    names: Vec<String>,
    interface: Option<String>,
}

/// A device that a process may open, and whether it needs to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// The device as it was named, such as `udp` or `packet:eth0`.
    pub named: String,
    /// The device as it is to be opened, such as `udp:192.0.2.7:0`; or the reason why it is not to
    /// be opened.
    pub opens: Result<String, String>,
}

impl Default for Devices {
    /// Shared memory for processes on one machine, and UDP for others.
    fn default() -> Self {
        Self { names: vec!["shm".to_owned(), "udp".to_owned()], interface: None }
    }
}

impl FromStr for Devices {
    type Err = JobError;

    /// Reads names of devices with commas between them.
    fn from_str(text: &str) -> Result<Self, JobError> {
        let names: Vec<_> = text.split(',').map(|name| name.trim().to_owned()).collect();
        if names.iter().any(String::is_empty) {
            let expected = "names of devices with commas between, such as shm,udp";
            let (variable, found) = ("DOORBELL_DEVICE", text.to_owned());
            return Err(JobError::Environment { variable, found, expected });
        }
        Ok(Self { names, interface: None })
    }
}

impl fmt::Display for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names.join(","))
    }
}

impl Devices {
    /// The devices that a program names, with commas between them; if it names none, those of the
    /// variable `DOORBELL_DEVICE`; and otherwise the usual ones. The variable
    /// `DOORBELL_INTERFACE` has the network interface of those that are named without one.
    ///
    /// # Errors
    /// When a name is empty, or a variable is no text.
    pub fn of_process(named: Option<&str>) -> Result<Self, JobError> {
        let environment = Environment::of_process();
        environment.check()?;
        let named = named.or(environment.get("DOORBELL_DEVICE"));
        let devices = named.map_or(Ok(Self::default()), str::parse)?;
        let interface = environment.get("DOORBELL_INTERFACE").map(str::to_owned);
        Ok(Self { interface, ..devices })
    }

    /// Has devices that are named without an interface or an address use this network interface.
    pub fn on(self, interface: impl Into<String>) -> Self {
        Self { interface: Some(interface.into()), ..self }
    }

    /// The devices with what this process is to open for each, in the order in which they are
    /// preferred. A device is opened only if it can reach a process that no device before it
    /// reaches; if that fails at one process, the devices behind serve instead.
    ///
    /// # Errors
    /// When the named interface has no address, or needs to be named.
    pub fn candidates(&self, members: &Members) -> Result<Vec<Candidate>, JobError> {
        let all_here = members.are_on_one_machine();
        let any_here = members.cards().len() == 1 || members.neighbours() > 0;
        let candidate = |named: &String| {
            let opens = match kind(named) {
                "shm" if !any_here && self.names.len() > 1 => {
                    Err("no other process is on this machine".to_owned())
                }
                "udp" | "packet" | "packet-v2" if all_here && self.is_behind_shm(named) => {
                    Err("all processes are on one machine".to_owned())
                }
                _ => Ok(self.opened(named, members)?),
            };
            Ok(Candidate { named: named.clone(), opens })
        };
        self.names.iter().map(candidate).collect()
    }

    fn is_behind_shm(&self, name: &str) -> bool {
        let before = self.names.iter().take_while(|other| *other != name);
        before.map(String::as_str).any(|other| kind(other) == "shm")
    }

    /// The device of a name with the interface or the address that is not in the name.
    fn opened(&self, named: &str, members: &Members) -> Result<String, JobError> {
        match (named, &self.interface) {
            ("udp", _) => Ok(udp(self.own_ip(members)?)),
            ("packet" | "packet-v2", Some(interface)) => Ok(format!("{named}:{interface}")),
            ("packet" | "packet-v2", None) => {
                let (variable, found) = ("DOORBELL_DEVICE", named.to_owned());
                let expected = "this device needs an interface: name it, as in packet:eth0, or set \
                                DOORBELL_INTERFACE";
                Err(JobError::Environment { variable, found, expected })
            }
            _ => Ok(named.to_owned()),
        }
    }

    /// The address of this host by which the other processes reach it.
    fn own_ip(&self, members: &Members) -> Result<IpAddr, JobError> {
        let system = |why| JobError::System { what: "asking for this host's addresses", why };
        let localhost = IpAddr::from([127, 0, 0, 1]);
        let Some(interface) = &self.interface else {
            if members.are_on_one_machine() {
                return Ok(localhost);
            }
            let own = own_addresses().map_err(system)?;
            return Ok(members.own_ip().or(own.first().copied()).unwrap_or(localhost));
        };
        let found = addresses_of(interface).map_err(system)?;
        found.first().copied().ok_or_else(|| JobError::Environment {
            variable: "DOORBELL_INTERFACE",
            found: interface.clone(),
            expected: "an interface with an IP address: `ip address` lists what there is",
        })
    }
}

/// The kind of a device: what stands before the first colon of its name or address.
pub(crate) fn kind(name: &str) -> &str {
    name.split(':').next().unwrap_or_default()
}

fn udp(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => format!("udp:{ip}:0"),
        IpAddr::V6(ip) => format!("udp:[{ip}]:0"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::card::Card;

    /// The members of a job, process 0 of which is this one: each on a machine.
    fn on(machines: &[&str]) -> Members {
        let card = |machine: &&str| Card { machine: (*machine).to_owned(), ..Card::default() };
        Members { cards: machines.iter().map(card).collect(), ..Members::known(0, Vec::new()) }
    }

    fn opened(devices: &str, machines: &[&str]) -> Vec<String> {
        let devices: Devices = devices.parse().expect("devices");
        let all = devices.candidates(&on(machines)).expect("candidates");
        all.into_iter().filter_map(|candidate| candidate.opens.ok()).collect()
    }

    #[test]
    fn processes_of_one_machine_open_shared_memory_alone() {
        assert_eq!(opened("shm,udp", &["a", "a", "a"]), ["shm"]);
        assert_eq!(opened("shm,packet:eth0,udp", &["a", "a"]), ["shm"]);
        assert_eq!(opened("shm,udp", &["a"]), ["shm"]);
    }

    #[test]
    fn a_process_with_nobody_beside_it_opens_no_shared_memory() {
        let opened = opened("shm,udp", &["a", "b", "b"]);
        assert!(opened.len() == 1 && opened[0].starts_with("udp:"), "{opened:?}");
    }

    #[test]
    fn a_process_with_some_beside_it_opens_shared_memory_and_a_network() {
        let opened = opened("shm,udp", &["a", "a", "b"]);
        assert!(opened.len() == 2 && opened[0] == "shm", "{opened:?}");
    }

    #[test]
    fn devices_that_were_named_alone_are_opened_whoever_is_where() {
        assert_eq!(opened("udp:127.0.0.1:0", &["a", "a"]), ["udp:127.0.0.1:0"]);
        assert_eq!(opened("shm", &["a", "b"]), ["shm"]);
        assert_eq!(opened("packet:eth0", &["a", "b"]), ["packet:eth0"]);
    }

    #[test]
    fn an_interface_completes_what_is_named_without_one() {
        let devices: Devices = "packet-v2,udp".parse().expect("devices");
        let all = devices.clone().on("lo").candidates(&on(&["a", "b"])).expect("candidates");
        assert_eq!(all[0].opens.as_deref(), Ok("packet-v2:lo"));
        assert_eq!(all[1].opens.as_deref(), Ok("udp:127.0.0.1:0"));
        let why = devices.candidates(&on(&["a", "b"])).unwrap_err().to_string();
        assert!(why.contains("needs an interface"), "{why}");
        let why = devices.on("nosuch0").candidates(&on(&["a", "b"])).unwrap_err().to_string();
        assert!(why.contains("DOORBELL_INTERFACE is `nosuch0`") || why.contains("needs"), "{why}");
    }

    #[test]
    fn an_empty_name_is_refused() {
        for wrong in ["", "shm,", ",udp", "shm,,udp"] {
            assert!(wrong.parse::<Devices>().is_err(), "{wrong}");
        }
    }
}
