//! The place of a process in its job, and how it meets the others.

use std::io;
use std::net::{IpAddr, TcpListener};
use std::time::Duration;

use crate::card::{Card, check_builds};
use crate::environment::{Environment, SECRET, SECRET_FILE};
use crate::error::JobError;
use crate::limits::named;
use crate::members::{Members, Way as Met};
use crate::pmi::Pmi;
use crate::rendezvous::{LONGEST, Service, Terms, join, nonce};
use crate::report::warn;
use crate::secret::{checked, key_of};
use crate::start::{By, Meeting, Seat, Secret, Start};
use crate::sys::NoSuccess;

/// The key of PMI's table by which process 0 tells where the processes meet.
const KEY: &str = "doorbell-rendezvous";

/// A process of a job that has not met the others yet.
///
/// ```no_run
/// use doorbell_job::Place;
///
/// # fn open_nic() -> String { String::new() }
/// // None if this program was started by itself.
/// if let Some(place) = Place::find(std::time::Duration::from_secs(30))? {
///     println!("process {} of {}, started by {}", place.rank(), place.size(), place.starter());
///     let members = place.meet()?;
///     let addresses = members.exchange(&open_nic())?;
///     println!("process 0, on {}, is at {}", members.cards()[0].host, addresses[0]);
///     members.finish()?;
/// }
/// # Ok::<(), doorbell_job::JobError>(())
/// ```
#[derive(Debug)]
pub struct Place {
    seat: Seat,
    starter: String,
    within: Duration,
    way: Way,
}

/// How the processes meet.
#[derive(Debug)]
enum Way {
    /// Their addresses are known.
    Known(Vec<String>),
    Pmi(Pmi),
    Meeting(Meeting, Vec<u8>),
}

impl Place {
    /// The place that the environment of this process gives it; none if the program was started by
    /// itself. All processes together may take the time `within` to come, unless `DOORBELL_WITHIN`
    /// names another.
    ///
    /// # Errors
    /// When variables make no sense, or the launcher does not answer.
    pub fn find(within: Duration) -> Result<Option<Self>, JobError> {
        Self::find_in(&Environment::of_process(), within)
    }

    /// Finds the place by other variables than those of this process's environment.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub fn find_in(environment: &Environment, within: Duration) -> Result<Option<Self>, JobError> {
        let start = Start::of(environment)?;
        let within = environment.within()?.unwrap_or(within).min(LONGEST);
        Ok(Some(match start {
            Start::Alone => return Ok(None),
            Start::Addresses { seat, addresses } => {
                let starter = "somebody who has named all addresses".to_owned();
                Self { seat, starter, within, way: Way::Known(addresses) }
            }
            Start::Pmi { seat } => {
                let way = Way::Pmi(Pmi::over(environment.launcher()?, within)?);
                Self { seat, starter: "a launcher that speaks PMI-1".to_owned(), within, way }
            }
            Start::Rendezvous { seat, at, secret, by } => {
                let key = key(seat, secret.as_ref(), &at, by)?;
                let (starter, way) = (by.to_string(), Way::Meeting(at, key));
                Self { seat, starter, within, way }
            }
        }))
    }

    /// Whether the environment of this process gives it a place in a job.
    ///
    /// # Errors
    /// When variables make no sense.
    pub fn is_given() -> Result<bool, JobError> {
        Ok(Start::of(&Environment::of_process())? != Start::Alone)
    }

    /// The number of this process, from 0 on.
    pub fn rank(&self) -> usize {
        self.seat.rank
    }

    /// How many processes the job has.
    pub fn size(&self) -> usize {
        self.seat.size
    }

    /// Returns the name of the launcher that has started the process.
    pub fn starter(&self) -> &str {
        &self.starter
    }

    /// Meets the other processes.
    ///
    /// # Errors
    /// When not all processes come in time, or they do not belong together.
    pub fn meet(self) -> Result<Members, JobError> {
        self.meet_and_watch(|_| {})
    }

    /// Meets the other processes, and watches them from then on. A thread calls `notice` for each
    /// process that ends without having [finished](Members::finish), and with `None` if the
    /// rendezvous does.
    ///
    /// # Errors
    /// As [`meet`](Self::meet).
    pub fn meet_and_watch(
        self,
        notice: impl Fn(Option<usize>) + Send + 'static,
    ) -> Result<Members, JobError> {
        let Self { seat, within, way, .. } = self;
        let (meeting, secret, pmi, by_first) = match way {
            Way::Known(addresses) => return Ok(Members::known(seat.rank, addresses)),
            Way::Meeting(meeting, secret) => {
                (At::of(&meeting, seat)?, secret, None, meeting.by_first)
            }
            Way::Pmi(pmi) => {
                let (meeting, secret, pmi) = met_by(pmi, seat)?;
                (meeting, secret, Some(pmi), true)
            }
        };
        let terms = Terms { size: seat.size, secret, within };
        let (service, places) = match meeting {
            At::Served(listener) => {
                let system = |why| JobError::System { what: "serving the others", why: named(why) };
                let own = listener.local_addr().map_err(system)?;
                let service = Service::start(listener, terms.clone()).map_err(system)?;
                let host = if own.ip().is_unspecified() {
                    "127.0.0.1".to_owned()
                } else {
                    own.ip().to_string()
                };
                (Some(service), vec![(host, own.port())])
            }
            At::Places(places) => (None, places),
        };
        let card = Card::of_process().to_string();
        let joined = join(seat.rank, &places, &card, &terms, notice)?;
        let parsed = joined.cards.iter().enumerate().map(|(rank, card)| Card::parse(rank, card));
        let cards: Vec<Card> = parsed.collect::<Result<_, _>>()?;
        check_builds(&cards)?;
        let key = key_of(&terms.secret, &joined.run);
        let way = Met::Met(joined);
        let led_by_first = by_first.then(|| NoSuccess::of(seat.rank));
        Ok(Members { rank: seat.rank, cards, key, way, pmi, service, led_by_first })
    }
}

/// Where this process meets the others.
enum At {
    /// A listener by which this process serves the others.
    Served(TcpListener),
    /// The hosts and ports at which this process looks for the service.
    Places(Vec<(String, u16)>),
}

impl At {
    fn of(meeting: &Meeting, seat: Seat) -> Result<Self, JobError> {
        if !meeting.by_first || seat.rank > 0 {
            return Ok(Self::Places(meeting.places.clone()));
        }
        let mut last = None;
        for (host, port) in &meeting.places {
            match listen(host, *port) {
                Ok(listener) => return Ok(Self::Served(listener)),
                Err(why) => last = Some(named(why)),
            }
        }
        let why = last.unwrap_or_else(|| io::ErrorKind::NotFound.into());
        let ports: Vec<_> = meeting.places.iter().map(|(_, port)| port.to_string()).collect();
        Err(JobError::Ports { ports: ports.join(", "), why })
    }
}

/// Listens to a port: of the loopback or another address of this host if that is what is named, and
/// otherwise of all addresses, for a name may stand for one that this host does not know of.
fn listen(host: &str, port: u16) -> io::Result<TcpListener> {
    let named = match host {
        "localhost" => Some(IpAddr::from([127, 0, 0, 1])),
        _ => host.parse().ok(),
    };
    if let Some(ip) = named {
        match TcpListener::bind((ip, port)) {
            Err(why) if why.kind() == io::ErrorKind::AddrNotAvailable => {}
            listening => return listening,
        }
    }
    listen_to_all(port)
}

/// Listens to a port of all addresses of this host: of IPv6 and IPv4 where there are both.
fn listen_to_all(port: u16) -> io::Result<TcpListener> {
    let all = IpAddr::from([0_u16; 8]);
    match TcpListener::bind((all, port)) {
        Err(why) if why.kind() != io::ErrorKind::AddrInUse => TcpListener::bind(("0.0.0.0", port)),
        listening => listening,
    }
}

/// Has process 0 tell the others by PMI where it serves them, and what the secret is.
fn met_by(mut pmi: Pmi, seat: Seat) -> Result<(At, Vec<u8>, Pmi), JobError> {
    if seat.rank == 0 {
        let system =
            |why| JobError::System { what: "serving the other processes", why: named(why) };
        let listener = listen_to_all(0).map_err(system)?;
        let port = listener.local_addr().map_err(system)?.port();
        let secret = nonce();
        let hosts = own_addresses().map_err(system)?;
        let hosts: Vec<_> = hosts.iter().map(ToString::to_string).collect();
        pmi.put(KEY, &format!("{secret}/{port}/{}", hosts.join(",")))?;
        pmi.barrier()?;
        return Ok((At::Served(listener), secret.into_bytes(), pmi));
    }
    pmi.barrier()?;
    let value = pmi.get(KEY)?;
    let mut parts = value.split('/');
    let (secret, port, hosts) = (parts.next(), parts.next(), parts.next());
    let port = port.and_then(|port| port.parse::<u16>().ok());
    let (Some(secret), Some(port), Some(hosts)) = (secret, port, hosts) else {
        let asked = format!("cmd=get key={KEY}");
        return Err(JobError::Pmi { asked, found: format!("`{value}`, which makes no sense") });
    };
    let places = hosts.split(',').map(|host| (host.to_owned(), port)).collect();
    Ok((At::Places(places), secret.as_bytes().to_vec(), pmi))
}

/// The most addresses of a host that others are told: a launcher takes values of some hundred
/// bytes.
const MOST_ADDRESSES: usize = 6;

/// The addresses of this host by which others may reach it: those of networks before the
/// loopback's.
///
/// # Errors
/// When the system does not tell.
pub fn own_addresses() -> io::Result<Vec<IpAddr>> {
    let mut addresses = addresses_where(|_| true)?;
    addresses.sort_by_key(|ip| (ip.is_loopback(), ip.is_ipv6()));
    addresses.truncate(MOST_ADDRESSES);
    Ok(addresses)
}

/// The addresses of a network interface, those of IPv4 first.
pub(crate) fn addresses_of(interface: &str) -> io::Result<Vec<IpAddr>> {
    let mut addresses = addresses_where(|name| name == interface)?;
    addresses.sort_by_key(IpAddr::is_ipv6);
    Ok(addresses)
}

fn addresses_where(wanted: impl Fn(&str) -> bool) -> io::Result<Vec<IpAddr>> {
    let addresses = nix::ifaddrs::getifaddrs()?
        .filter(|interface| wanted(&interface.interface_name))
        .filter_map(|interface| {
            let address = interface.address?;
            let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
            let v6 = || address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip()));
            v4.or_else(v6)
        })
        // An address of a link has no meaning without the link.
        .filter(|ip| !matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local()));
    Ok(addresses.collect())
}

/// Derives the job's key from its secret. Without a secret, the place alone tells the job from
/// others.
fn key(seat: Seat, secret: Option<&Secret>, at: &Meeting, by: By) -> Result<Vec<u8>, JobError> {
    match secret {
        Some(Secret::Text(text)) if text.trim().is_empty() => Err(JobError::Environment {
            variable: SECRET,
            found: text.clone(),
            expected: "a text that is not blank; unset it for a job without a secret",
        }),
        Some(Secret::Text(text)) => checked(text, SECRET.to_owned()),
        Some(Secret::File(path)) if path.as_os_str().is_empty() => Err(JobError::Environment {
            variable: SECRET_FILE,
            found: String::new(),
            expected: "the path of a file; unset it for a job without a secret",
        }),
        Some(Secret::File(path)) => {
            let read = std::fs::read_to_string(path);
            let read = read.and_then(|text| match text.trim() {
                "" => Err(io::Error::other("the file is empty")),
                _ => Ok(text),
            });
            let text = read.map_err(|why| JobError::Secret { path: path.clone(), why })?;
            checked(&text, path.display().to_string())
        }
        None => {
            let (host, port) = at.places.first().cloned().unwrap_or_default();
            if seat.rank == 0 {
                warn(&format!(
                    "this job of {by} has no secret, and whoever reaches {host}:{port} can take \
                     part: set DOORBELL_SECRET, or DOORBELL_SECRET_FILE"
                ));
            }
            Ok(format!("none {by} {host} {port}").into_bytes())
        }
    }
}
