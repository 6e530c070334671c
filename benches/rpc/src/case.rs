//! The cases: how long bodies are, and how many calls are in flight.

/// A load on one connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    pub name: &'static str,
    /// The length of a request's body, and of its response's.
    pub size: usize,
    /// How many callers there are. Without a rate, each calls again as soon as it has its answer.
    pub in_flight: usize,
    /// How many calls a second the one caller begins, whatever the answers take.
    pub rate: Option<u32>,
}

pub const CASES: [Case; 5] = [
    Case { name: "loaded", size: 64, in_flight: 64, rate: None },
    Case { name: "single", size: 64, in_flight: 1, rate: None },
    Case { name: "paced", size: 64, in_flight: 1, rate: Some(1000) },
    Case { name: "page", size: 4 << 10, in_flight: 16, rate: None },
    Case { name: "large", size: 1 << 20, in_flight: 4, rate: None },
];

/// The length of the longest body of any case.
pub const LONGEST: usize = 1 << 20;

impl Case {
    pub fn named(name: &str) -> Result<Self, String> {
        let found = CASES.into_iter().find(|case| case.name == name);
        found.ok_or_else(|| format!("the cases are {}", CASES.map(|case| case.name).join(", ")))
    }

    /// The case in words.
    pub fn title(&self) -> String {
        let Self { name, in_flight, rate, .. } = self;
        let size = match self.size {
            size if size >= 1 << 20 => format!("{} MiB", size >> 20),
            size if size >= 1 << 10 => format!("{} KiB", size >> 10),
            size => format!("{size} B"),
        };
        match rate {
            Some(rate) => format!("{name}: {size}, {rate} calls a second, open loop"),
            None => format!("{name}: {size}, {in_flight} in flight, closed loop"),
        }
    }
}
