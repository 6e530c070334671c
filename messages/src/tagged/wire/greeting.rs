//! What endpoints tell each other when they meet.

/// The limits of an endpoint that its peers must know, and how its memory is read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Greeting {
    /// The size of the peer's window: how much room its messages may take at the endpoint before
    /// receives take them.
    pub window: u64,
    /// The longest body that the endpoint takes before its receive is known.
    pub eager: u64,
    /// Where the peer connects to, so that either side reads the other's memory.
    pub pulls: Pulls,
    /// The connection that the greeting is about, of those between the two endpoints.
    pub rail: Rail,
    /// Where in its memory the endpoint has a secret number, if the peer may be on the same machine.
    pub whereabouts: Option<Whereabouts>,
    /// The name by which others connect to the endpoint.
    pub name: String,
}

/// Where a peer connects to, so that long messages can be pulled.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Pulls {
    /// The number of the service at the endpoint's NIC.
    pub service: u64,
    /// The number that the peer shows there, which no other peer knows.
    pub token: u64,
}

/// Where in the memory of an endpoint's process a secret number is. A peer on the same machine that
/// can read the number there may read the process's memory. Which process that is, the kernel tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Whereabouts {
    /// The address of the secret number, which is never zero.
    pub address: u64,
    pub secret: [u8; 16],
}

/// A connection between two endpoints, which have a connection for each device that both have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rail {
    /// The place of the connection among all, and of the device that carries it.
    pub place: u16,
    /// The number of connections.
    pub count: u16,
    /// A number by which the accepting side knows that the connections belong together, and which no
    /// other peer knows. In the answer it is a [`Proof`](super::Proof) that the accepting side has
    /// connected, too; zero if it has not.
    pub joins: u64,
}

/// The most devices of an endpoint.
pub const MOST_RAILS: usize = 8;

impl Greeting {
    /// The version of everything between endpoints.
    const VERSION: u64 = 3;
    /// The longest name that is taken.
    const LONGEST_NAME: usize = 400;

    pub fn to_bytes(&self) -> Vec<u8> {
        let Self { window, eager, pulls: Pulls { service, token }, rail, whereabouts, name } = self;
        let places = u64::from(rail.place) << 16 | u64::from(rail.count);
        let nowhere = Whereabouts { address: 0, secret: [0; 16] };
        let Whereabouts { address, secret } = whereabouts.unwrap_or(nowhere);
        let limits = [Self::VERSION, *window, *eager, *service, *token];
        let words = limits.into_iter().chain([places, rail.joins, address]);
        let mut bytes: Vec<_> = words.flat_map(u64::to_be_bytes).collect();
        bytes.extend_from_slice(&secret);
        bytes.extend_from_slice(name.as_bytes());
        bytes
    }

    /// Decodes a greeting, or returns `None` if no endpoint of this version wrote it.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (words, rest) = bytes.split_first_chunk::<64>()?;
        let (words, _) = words.as_chunks();
        let words: &[[u8; 8]; 8] = words.try_into().ok()?;
        let [version, window, eager, service, token, places, joins, address] =
            words.map(u64::from_be_bytes);
        let (&secret, name) = rest.split_first_chunk()?;
        let [place, count] = [places >> 16, places & 0xffff].map(u16::try_from);
        let (place, count) = (place.ok()?, count.ok()?);
        let is_rail = place < count && usize::from(count) <= MOST_RAILS;
        let rail = Rail { place, count, joins };
        let name =
            std::str::from_utf8(name).ok().filter(|name| name.len() <= Self::LONGEST_NAME)?;
        let whereabouts = (address != 0).then_some(Whereabouts { address, secret });
        let pulls = Pulls { service, token };
        let name = name.to_owned();
        let is_known = version == Self::VERSION && is_rail;
        is_known.then_some(Self { window, eager, pulls, rail, whereabouts, name })
    }
}
