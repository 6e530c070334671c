//! What endpoints tell each other when they meet.

/// The limits of an endpoint that its peers must know, and how its memory is read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Greeting {
    /// What messages of the peer may take at the endpoint before receives take them.
    pub window: u64,
    /// The longest body that the endpoint takes before its receive is known.
    pub eager: u64,
    /// Where the peer connects to, so that either side reads the other's memory.
    pub pulls: Pulls,
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

impl Greeting {
    /// The version of everything between endpoints.
    const VERSION: u64 = 1;
    /// The longest name that is taken.
    const LONGEST_NAME: usize = 400;

    pub fn to_bytes(&self) -> Vec<u8> {
        let Self { window, eager, pulls: Pulls { service, token }, name } = self;
        let words = [Self::VERSION, *window, *eager, *service, *token];
        let mut bytes: Vec<_> = words.into_iter().flat_map(u64::to_be_bytes).collect();
        bytes.extend_from_slice(name.as_bytes());
        bytes
    }

    /// Decodes a greeting, or returns `None` if no endpoint of this version wrote it.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (words, name) = bytes.split_first_chunk::<40>()?;
        let mut words = words.as_chunks::<8>().0.iter().map(|word| u64::from_be_bytes(*word));
        let [version, window, eager, service, token] =
            std::array::from_fn(|_| words.next().unwrap_or(0));
        let name =
            std::str::from_utf8(name).ok().filter(|name| name.len() <= Self::LONGEST_NAME)?;
        let is_known = version == Self::VERSION;
        let pulls = Pulls { service, token };
        is_known.then(|| Self { window, eager, pulls, name: name.to_owned() })
    }
}
