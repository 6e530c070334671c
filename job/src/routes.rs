//! The choice of a device for each pair of processes.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::aside::aside;
use crate::card::{Card, escaped, unescaped};
use crate::devices::{Candidate, Devices, kind};
use crate::error::JobError;
use crate::members::Members;

/// The longest reason that a process tells the others why it has not opened a device.
const LONGEST_REASON: usize = 600;

/// How one process reaches all processes of its job.
///
/// Its text is a table, one line for all processes that are reached in the same way, with the
/// reasons why devices that were preferred do not reach them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Routes {
    rank: usize,
    routes: Vec<Route>,
}

/// How a process reaches another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Route {
    /// The place of the device among those that this process has opened.
    pub device: usize,
    /// The address of the other process; for this process itself, that of its own first device.
    pub address: String,
    /// The devices that were preferred, and why each does not reach the other process.
    pub refused: Vec<(String, String)>,
}

impl Route {
    /// The way to a process at an address by the first device of this process.
    pub fn by_first(address: impl Into<String>) -> Self {
        Self { device: 0, address: address.into(), refused: Vec::new() }
    }
}

impl Routes {
    /// The routes to all processes, in the order of their ranks.
    pub fn all(&self) -> &[Route] {
        &self.routes
    }
}

impl fmt::Display for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let others = || self.routes.iter().enumerate().filter(|(rank, _)| *rank != self.rank);
        let same = |a: &Route, b: &Route| (a.device, &a.refused) == (b.device, &b.refused);
        let mut shown: Vec<&Route> = Vec::new();
        for (_, route) in others() {
            if shown.iter().any(|before| same(before, route)) {
                continue;
            }
            shown.push(route);
            let ranks = others().filter(|(_, other)| same(other, route)).map(|(rank, _)| rank);
            let (device, ranks) = (kind(&route.address), ranges(ranks));
            write!(f, "process {} reaches {ranks} by {device}", self.rank)?;
            for (name, why) in &route.refused {
                write!(f, "; not by {name}: {why}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// Numbers that rise as text, such as `1-3,7`.
fn ranges(numbers: impl Iterator<Item = usize>) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let text = ranges.into_iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    text.collect::<Vec<_>>().join(",")
}

/// A process's offer for a device: the address by which it is reached, or the reason why it has
/// not opened the device.
type Offer = Result<String, String>;

impl Members {
    /// Tells all processes what this one has opened, and chooses the device of each pair: the first
    /// that both have opened and that reaches the one from the other. `opened` has, for each of the
    /// candidates, the address of the NIC, or the reason why the device could not be opened.
    ///
    /// # Errors
    /// When two processes have no device by which they reach each other, or were told to use
    /// different devices; and as [`exchange`](Members::exchange).
    pub fn routes(
        &self,
        candidates: &[Candidate],
        opened: &[Result<String, String>],
    ) -> Result<Routes, JobError> {
        let named: Vec<_> = candidates.iter().map(|candidate| candidate.named.clone()).collect();
        let told = self.exchange(&text_of(&named, opened))?;
        let all = told.iter().enumerate().map(|(rank, text)| {
            let (names, offers) =
                offers(text).ok_or_else(|| JobError::Card { rank, found: text.clone() })?;
            let same = names == named;
            let (found, own) = (names.join(","), named.join(","));
            let differ = JobError::Devices { rank, found, own_rank: self.rank(), own };
            if same { Ok(offers) } else { Err(differ) }
        });
        let all: Vec<Vec<Offer>> = all.collect::<Result<_, _>>()?;
        chosen(self.rank(), self.cards(), &named, &all)
    }

    /// How many other processes are on this machine.
    pub(crate) fn neighbours(&self) -> usize {
        let own = &self.cards()[self.rank()].machine;
        let here = self.cards().iter().filter(|card| !own.is_empty() && card.machine == *own);
        here.count().saturating_sub(1)
    }
}

/// Opens the devices by which a process reaches the others, and agrees with them on one for each
/// pair: `open` opens a device, and returns what was opened and its address. The processes tell
/// each other of their devices on a thread, for a NIC that is open may have to serve another
/// process of this machine that shares its interface.
///
/// # Errors
/// As [`Devices::candidates`] and [`Members::routes`].
pub async fn open<N, E: fmt::Display>(
    devices: &Devices,
    members: &Arc<Members>,
    mut open: impl AsyncFnMut(&str) -> Result<(N, String), E>,
) -> Result<(Vec<N>, Routes), JobError> {
    let candidates = devices.candidates(members)?;
    let (mut all, mut offers) = (Vec::new(), Vec::new());
    for candidate in &candidates {
        offers.push(match &candidate.opens {
            Err(why) => Err(why.clone()),
            Ok(device) => match open(device).await {
                Ok((opened, address)) => {
                    all.push(opened);
                    Ok(address)
                }
                Err(why) => Err(why.to_string()),
            },
        });
    }
    let told = members.clone();
    let routes = aside(move || told.routes(&candidates, &offers)).await;
    let routes = routes.map_err(|why| {
        let what = "starting a thread that tells the others of this process's devices";
        JobError::System { what, why }
    })?;
    Ok((all, routes?))
}

/// The device of each process, as the process `rank` sees them.
fn chosen(
    rank: usize,
    cards: &[Card],
    named: &[String],
    all: &[Vec<Offer>],
) -> Result<Routes, JobError> {
    let own = &all[rank];
    let own_address = own.iter().find_map(|offer| offer.as_ref().ok());
    let own_address = own_address.ok_or_else(|| {
        let reasons = own.iter().filter_map(|offer| offer.clone().err()).collect::<Vec<_>>();
        JobError::NothingOpened { rank, reasons: reasons.join("; ") }
    })?;
    let routes = all.iter().enumerate().map(|(other, offers)| {
        if other == rank {
            return Ok(Route::by_first(own_address.as_str()));
        }
        let mut refused = Vec::new();
        for (at, name) in named.iter().enumerate() {
            // Both processes look at the offers in the same order, and so give the same reasons.
            let (low, high) = (rank.min(other), rank.max(other));
            let offers_of_both = (&all[low][at], &all[high][at]);
            let found = reaches(name, offers_of_both, (&cards[low], &cards[high]));
            match (found, &offers[at]) {
                (Ok(()), Ok(address)) => {
                    let device = own[..at].iter().filter(|offer| offer.is_ok()).count();
                    return Ok(Route { device, address: address.clone(), refused });
                }
                (Err(why), _) => refused.push((name.clone(), why)),
                (Ok(()), Err(why)) => refused.push((name.clone(), why.clone())),
            }
        }
        let reasons = refused.iter().map(|(name, why)| format!("{name}: {why}"));
        let reasons = reasons.collect::<Vec<_>>().join("; ");
        Err(JobError::NoDevice { rank, other, reasons })
    });
    Ok(Routes { rank, routes: routes.collect::<Result<_, _>>()? })
}

/// Checks whether two processes reach each other by the device of a name, of which each has made an
/// offer. The error says why they do not.
fn reaches(name: &str, offers: (&Offer, &Offer), cards: (&Card, &Card)) -> Result<(), String> {
    let (first, second) = (offers.0.as_ref()?, offers.1.as_ref()?);
    let is_one_machine = cards.0.machine == cards.1.machine;
    if is_one_machine && are_on_one_interface(name, first, second) {
        return Err("both processes use one interface, which does not hear itself".to_owned());
    }
    if kind(first) == "shm" && !is_one_machine {
        return Err("the other process is on another machine".to_owned());
    }
    let local = [first, second].into_iter().find(|address| is_loopback(address));
    match local {
        Some(address) if !is_one_machine => {
            Err(format!("{address} is reached from its own machine only"))
        }
        _ => Ok(()),
    }
}

/// Whether two processes of one machine send Ethernet frames by one interface, of which neither
/// hears the frames of the other. The loopback interface, whose own address is zero, is none of
/// those.
fn are_on_one_interface(name: &str, first: &str, second: &str) -> bool {
    match kind(first) {
        "packet" => first == second && first != "packet:00:00:00:00:00:00",
        // Each process has an IP address of its own there.
        "packet-v2" => {
            let interface = name.split([':', ',']).nth(1);
            interface != Some("lo")
        }
        _ => false,
    }
}

fn is_loopback(address: &str) -> bool {
    let socket = address.strip_prefix("udp:").and_then(|text| text.parse::<SocketAddr>().ok());
    socket.is_some_and(|socket| socket.ip().is_loopback())
}

/// Devices and offers as the text that processes tell each other.
fn text_of(named: &[String], offers: &[Offer]) -> String {
    let fields = named.iter().zip(offers).map(|(name, offer)| match offer {
        Ok(address) => format!("{} at{}", escaped(name), escaped(address)),
        Err(why) => {
            let short: String = why.chars().take(LONGEST_REASON).collect();
            format!("{} no{}", escaped(name), escaped(&short))
        }
    });
    fields.collect::<Vec<_>>().join(" ")
}

/// Reads what another process has told.
fn offers(text: &str) -> Option<(Vec<String>, Vec<Offer>)> {
    let words: Vec<_> = text.split(' ').collect();
    let pairs = words.chunks(2).map(|pair| {
        let [name, offer] = pair else { return None };
        let offer = match (offer.strip_prefix("at"), offer.strip_prefix("no")) {
            (Some(address), _) => Ok(unescaped(address)?),
            (_, Some(why)) => Err(unescaped(why)?),
            _ => return None,
        };
        Some((unescaped(name)?, offer))
    });
    let pairs: Option<Vec<_>> = pairs.collect();
    Some(pairs?.into_iter().unzip())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(machines: &[&str]) -> Vec<Card> {
        let card = |machine: &&str| Card { machine: (*machine).to_owned(), ..Card::default() };
        machines.iter().map(card).collect()
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn at(address: &str) -> Offer {
        Ok(address.to_owned())
    }

    fn not(why: &str) -> Offer {
        Err(why.to_owned())
    }

    #[test]
    fn what_is_told_is_read_as_it_was_meant() {
        let named = names(&["shm", "packet:eth 0", "udp"]);
        let told = [at("shm:a b/1"), not("not = allowed\nhere"), at("udp:127.0.0.1:5")];
        let (read, offers) = offers(&text_of(&named, &told)).expect("offers");
        assert_eq!((read, offers), (named, told.to_vec()));
        for wrong in ["", "=a", "=a at=b =c", "=a =b", "a at=b", "=a by=b"] {
            assert!(super::offers(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn both_processes_of_a_pair_choose_the_same_device() {
        let cards = on(&["a", "a", "b", "b"]);
        let named = names(&["shm", "packet:eth0", "udp"]);
        let all: Vec<Vec<Offer>> = (0..4)
            .map(|rank| {
                let packet = match rank {
                    1 => not("process 1 can't open it: no right"),
                    _ => at(&format!("packet:02:00:00:00:00:0{rank}")),
                };
                vec![at(&format!("shm:{rank}")), packet, at(&format!("udp:10.0.0.{rank}:9"))]
            })
            .collect();
        let routes: Vec<_> =
            (0..4).map(|rank| chosen(rank, &cards, &named, &all).expect("routes")).collect();
        let kinds: Vec<Vec<&str>> = routes
            .iter()
            .map(|routes| routes.all().iter().map(|route| kind(&route.address)).collect())
            .collect();
        for (rank, row) in kinds.iter().enumerate() {
            for other in (0..4).filter(|other| *other != rank) {
                assert_eq!(row[other], kinds[other][rank], "{rank} and {other}");
            }
        }
        assert_eq!(kinds[0][1..], ["shm", "packet", "packet"]);
        assert_eq!(kinds[1][2..], ["udp", "udp"]);
        // Process 1 has not opened the second device, and so `udp` is the second of its NICs.
        assert_eq!((routes[1].all()[2].device, routes[0].all()[3].device), (1, 1));
        let table = routes[1].to_string();
        assert!(table.contains("process 1 reaches 0 by shm\n"), "{table}");
        let to_others = "process 1 reaches 2-3 by udp; not by shm: the other process is on another \
                         machine; not by packet:eth0: process 1 can't open it";
        assert!(table.contains(to_others), "{table}");
    }

    /// Two processes of a host chose the interface that they shared, and heard nothing.
    #[test]
    fn processes_on_one_interface_of_a_machine_choose_the_next_device() {
        let udp = |rank: usize| at(&format!("udp:127.0.0.1:{rank}"));
        for (name, first, second, expected) in [
            ("packet:eth0", "packet:02:00:00:00:00:01", "packet:02:00:00:00:00:01", "udp"),
            ("packet", "packet:02:00:00:00:00:01", "packet:02:00:00:00:00:02", "packet"),
            ("packet:lo", "packet:00:00:00:00:00:00", "packet:00:00:00:00:00:00", "packet"),
            ("packet-v2:eth0,10.0.0.1/8", "packet-v2:fe80::1", "packet-v2:fe80::2", "udp"),
            ("packet-v2:lo", "packet-v2:fe80::1", "packet-v2:fe80::2", "packet-v2"),
        ] {
            let all = vec![vec![at(first), udp(1)], vec![at(second), udp(2)]];
            for rank in 0..2 {
                let named = names(&[name, "udp"]);
                let routes = chosen(rank, &on(&["a", "a"]), &named, &all).expect("routes");
                assert_eq!(kind(&routes.all()[1 - rank].address), expected, "{name}");
                let elsewhere = chosen(rank, &on(&["a", "b"]), &named, &all[..]);
                let told = elsewhere.map_or_else(|why| why.to_string(), |all| all.to_string());
                assert!(!told.contains("one interface"), "{name}: {told}");
            }
        }
    }

    #[test]
    fn processes_that_no_device_joins_are_told_why() {
        let named = names(&["shm", "udp:127.0.0.1:0"]);
        let all = vec![
            vec![at("shm:0"), at("udp:127.0.0.1:7")],
            vec![at("shm:1"), at("udp:127.0.0.1:8")],
        ];
        for rank in 0..2 {
            let why = chosen(rank, &on(&["a", "b"]), &named, &all).unwrap_err().to_string();
            for part in ["another machine", "udp:127.0.0.1:7 is reached from its own machine only"]
            {
                assert!(why.contains(part), "{why}");
            }
        }
    }
}
