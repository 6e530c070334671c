//! What is to be measured, and how: the `Plan`, which is made of the arguments.
//!
//! `args` are the arguments, `test` has all tests, `list` their names and what each measures,
//! `amount` is how much is measured, `place` is where one end runs, and `meter` shows how far a test
//! has come.

pub(crate) mod amount;
pub(crate) mod args;
pub(crate) mod list;
pub(crate) mod meter;
pub(crate) mod place;
pub(crate) mod test;

use std::time::Duration;

use anyhow::{Context, bail};
use doorbell_am::EndpointConfig;
use doorbell_splitc::Carrier;

use amount::Amount;
use args::{Args, Carriage};
use meter::Meter;
use test::{Am, Costs, Layer, Rpc, SplitC, Tags, Test, Verb};

/// The plan of a test, on which both ends agree.
#[derive(Clone, Debug)]
pub struct Plan {
    pub test: Test,
    pub size: usize,
    pub amount: Amount,
    /// Whether packets may share a frame.
    pub offload: bool,
    /// Which share of the packets that come each end drops.
    pub loss: f64,
    /// Whether memory is mapped where it can be.
    pub map: bool,
    /// How many idle connections, or peers that are mapped, are beside the busy one.
    pub connections: usize,
    /// How many idle devices share its interface.
    pub others: usize,
    /// How many requests, or messages of Split-C, may be under way to a peer.
    pub credits: usize,
    /// How Active Messages are carried.
    pub policy: Carriage,
    /// How many receives each peer has, if its NIC is told of them instead of Active Messages.
    pub nic_credits: Option<usize>,
    /// How operations of Split-C are carried, if that was said.
    pub carrier: Option<Carrier>,
    /// How many calls of RPC or of Active Messages are in flight at a time.
    pub in_flight: usize,
    /// Whether handlers of RPC run as tasks.
    pub tasks: bool,
    /// Whether messages of streams of RPC go both ways.
    pub both_ways: bool,
    /// The bytes of a long tagged message that one read pulls, if that was said.
    pub block: Option<usize>,
    /// How many reads of a long tagged message are under way at a time, if that was said.
    pub blocks: Option<usize>,
    /// How many receives are posted that take no message.
    pub posted: usize,
    /// How this end's NIC is run.
    pub nic: Run,
}

/// How a NIC is run.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// By a thread of its own.
    pub dedicated: bool,
    /// For how long it spins, if that was said.
    pub spin: Option<Duration>,
}

/// The most processes that share an interface, without this one.
const MOST_OTHERS: usize = 62;

/// The most connections beside the measured one.
const MOST_CONNECTIONS: usize = 16_000;

/// The most bytes of a UDP datagram, or of those that are sent at once.
pub const MOST_OF_A_DATAGRAM: usize = 65_507;

/// The most bytes of a message of the NIC's, here.
const LONGEST: usize = 1 << 30;

impl Plan {
    pub fn of(args: &Args) -> anyhow::Result<Self> {
        let test = args.test();
        let amount = match (args.iters, args.seconds) {
            (Some(times), _) => Amount::Times(times),
            (_, Some(seconds)) => {
                let time = Duration::try_from_secs_f64(seconds);
                let time = time.with_context(|| format!("--seconds {seconds}"))?;
                if time.is_zero() {
                    bail!("--seconds {seconds} leaves no time to measure");
                }
                Amount::For(time)
            }
            _ => test.customary(),
        };
        let size = args.size.unwrap_or(test.customary_size());
        let in_flight = args.in_flight.unwrap_or(test.customary_in_flight());
        let credits = match test {
            // As many calls as are in flight wait for their answers and not for credits.
            Test::Am(Am::CallBw) => in_flight.clamp(1, EndpointConfig::MOST_CREDITS),
            _ => test.customary_credits(),
        };
        let nic = Run { dedicated: args.dedicated, spin: args.spin.map(Duration::from_micros) };
        let plan = Self {
            test,
            size,
            amount,
            offload: !args.no_offload,
            loss: args.loss,
            map: !args.no_map,
            connections: args.connections,
            others: args.others,
            credits: args.credits.unwrap_or(credits),
            policy: args.policy,
            nic_credits: args.nic_credits,
            carrier: args.carrier.or(test.customary_carrier()),
            in_flight,
            tasks: args.tasks,
            both_ways: args.both_ways,
            block: args.block,
            blocks: args.blocks,
            posted: args.posted,
            nic,
        };
        plan.judge_for(args.device())?;
        plan.judge().map(|()| plan)
    }

    /// Checks that the test is one of a device of that name, and can be run for so long or so often.
    fn judge_for(&self, device: &str) -> anyhow::Result<()> {
        let (kind, name) = (device.split(':').next().unwrap_or_default(), self.test.name());
        if self.others > 0 && !kind.starts_with("packet") {
            bail!("--others share an interface: that is with --device packet and packet-v2");
        }
        if self.test == Test::Verbs(Verb::MapLat) && kind != "shm" {
            bail!("{name} is of memory that both ends map: --device shm, and not {device}");
        }
        if self.credits == 0 || self.nic_credits == Some(0) {
            bail!("--credits and --nic-credits are 1 or more: without any nothing may be sent");
        }
        let most = EndpointConfig::MOST_CREDITS;
        if self.credits > most {
            bail!("--credits {}: the wire counts them in 12 bits, so {most} at most", self.credits);
        }
        if self.connections > MOST_CONNECTIONS {
            let found = self.connections;
            bail!("--connections {found}: a NIC has {MOST_CONNECTIONS} more at most, here");
        }
        if matches!(self.amount, Amount::Times(_)) && self.test.is_for_a_time() {
            bail!("{name} is for a time: --seconds, and not --iters");
        }
        match self.size {
            0 if self.test.is_of_the_kernel() => {
                bail!("--size 0 leaves nothing to be received: it is at least 1 here")
            }
            size if size > MOST_OF_A_DATAGRAM
                && matches!(self.test, Test::UdpLat | Test::UdpBw) =>
            {
                bail!(
                    "--size {size} is more than the {MOST_OF_A_DATAGRAM} bytes that a datagram has \
                     at most"
                )
            }
            _ => Ok(()),
        }
    }

    /// Checks that the test can be run as planned, as far as that is known beforehand.
    fn judge(&self) -> anyhow::Result<()> {
        let (Self { size, .. }, name) = (self, self.test.name());
        if self.others > MOST_OTHERS {
            bail!("--others {}: an interface is shared by {MOST_OTHERS} more at most", self.others);
        }
        if self.others > 0 && !self.test.is_of_frames() {
            bail!("--others share the interface of a device alone: frame_lat --others N, say");
        }
        if self.loss > 0.0 && !self.test.may_lose() {
            bail!("--loss is made good by NICs, and {name} is a test of none: write_bw, say");
        }
        let is_of_split_c = matches!(
            self.test,
            Test::SplitC(_) | Test::LogP(Layer::SplitC) | Test::Costs(Costs::SplitC)
        );
        if self.carrier.is_some() && !is_of_split_c {
            bail!("--carrier is of Split-C, and {name} is not: get_lat --carrier one-sided, say");
        }
        let is_of_messages = matches!(self.test, Test::Am(_) | Test::LogP(Layer::Am));
        let as_usual = self.policy == Carriage::Together && self.nic_credits.is_none();
        if !is_of_messages && !as_usual {
            bail!("--policy and --nic-credits are of Active Messages, and {name} is not");
        }
        if self.both_ways && self.test != Test::Rpc(Rpc::Stream) {
            bail!("--both-ways is for rpc_stream, and not for {name}");
        }
        if self.posted > 0 && self.test != Test::Tags(Tags::Lat) {
            bail!("--posted is for tag_lat, and not for {name}");
        }
        if let Test::Rpc(test) = self.test {
            return self.judge_calls(test);
        }
        if self.tasks {
            bail!("--tasks is of RPC, and {name} is not: rpc_bw --tasks, say");
        }
        if self.in_flight != 1 && !self.test.is_of_many_calls() {
            bail!("--in-flight is for rpc_bw and call_bw, and not for {name}");
        }
        if let Test::Am(test) = self.test {
            return self.judge_messages(test);
        }
        if let Test::Costs(_) = self.test {
            return self.judge_costs();
        }
        if self.test == Test::Layers {
            return self.judge_alone("which runs tests as they are customary");
        }
        if self.test == Test::BytestreamBw || matches!(self.test, Test::Streams(_)) {
            return self.judge_streams();
        }
        if (self.block.is_some() || self.blocks.is_some()) && !matches!(self.test, Test::Groups(_))
        {
            bail!("--block and --blocks are of groups, and {name} is not: group_pingpong, say");
        }
        if let Test::Tags(_) | Test::Groups(_) = self.test {
            return self.judge_tags();
        }
        if let Test::SplitC(test) = self.test {
            return self.judge_accesses(test);
        }
        let Test::Verbs(verb) = self.test else {
            if self.connections > 0 || self.nic.dedicated || self.nic.spin.is_some() {
                bail!("--connections, --dedicated and --spin are a NIC's, and {name} uses none");
            }
            return Ok(());
        };
        match verb {
            _ if verb.is_of_a_word() && *size != 8 => {
                bail!("{name} is of 8 bytes: leave --size out")
            }
            _ if *size < verb.least() => {
                bail!("--size {size}: of {name} it is {} or more", verb.least())
            }
            _ if *size > LONGEST => {
                bail!("--size {size} is more than the {LONGEST} that a message has")
            }
            _ => Ok(()),
        }
    }

    fn judge_messages(&self, test: Am) -> anyhow::Result<()> {
        /// The most that a message carries by itself, here.
        const MOST: usize = 1 << 20;
        let most = if test == Am::BulkBw { LONGEST } else { MOST };
        if test == Am::MixedBw && self.policy == Carriage::PerSize {
            bail!(
                "am_mixed_bw checks the order of all sizes: per-size, shorter ones overtake longer"
            );
        }
        self.judge_in_flight()?;
        match self.size {
            size if size > most => bail!("--size {size} is more than the {most} of a message"),
            size if matches!(test, Am::BulkBw | Am::MixedBw | Am::CallBw) && size < 8 => {
                bail!("--size {size}: of {} it is 8 or more", self.test.name())
            }
            _ => Ok(()),
        }
    }

    fn judge_tags(&self) -> anyhow::Result<()> {
        if self.connections > 0 || !self.map {
            bail!("--connections and --no-map are not for {}", self.test.name());
        }
        match self.size {
            size if size > LONGEST => {
                bail!("--size {size} is more than the {LONGEST} of a message")
            }
            _ => Ok(()),
        }
    }

    fn judge_streams(&self) -> anyhow::Result<()> {
        if self.connections > 0 || !self.map {
            bail!("--connections and --no-map are not for {}", self.test.name());
        }
        match self.size {
            0 => bail!("--size 0 leaves nothing to be written: it is at least 1 here"),
            size if size > LONGEST => bail!("--size {size} is more than the {LONGEST} of a write"),
            _ => Ok(()),
        }
    }

    fn judge_calls(&self, test: Rpc) -> anyhow::Result<()> {
        let name = self.test.name();
        if self.connections > 0 || !self.map {
            bail!("--connections and --no-map are not for {name}");
        }
        if test == Rpc::Lat && self.in_flight != 1 {
            bail!("--in-flight {}: {name} makes one call after the other", self.in_flight);
        }
        if test == Rpc::Stream && (self.in_flight != 1 || self.tasks) {
            bail!("--in-flight and --tasks are not for {name}, which makes one call");
        }
        self.judge_in_flight()?;
        match self.size {
            size if size < 8 => bail!("--size {size}: of {name} it is 8 or more"),
            size if size > LONGEST => bail!("--size {size} is more than the {LONGEST} of a body"),
            _ => Ok(()),
        }
    }

    fn judge_in_flight(&self) -> anyhow::Result<()> {
        /// The most calls in flight, here.
        const MOST: usize = 4096;
        if !(1..=MOST).contains(&self.in_flight) {
            bail!("--in-flight {}: it is 1 to {MOST}", self.in_flight);
        }
        Ok(())
    }

    /// Refuses what is for tests whose exchange can be chosen. `why` goes on after the test's name.
    fn judge_alone(&self, why: &str) -> anyhow::Result<()> {
        let name = self.test.name();
        let foreign = [
            ("--size", self.size != self.test.customary_size()),
            ("--credits", self.credits != self.test.customary_credits()),
            ("--connections", self.connections > 0),
            ("--nic-credits", self.nic_credits.is_some()),
            ("--policy", self.policy != Carriage::Together),
            ("--dedicated", self.nic.dedicated),
            ("--spin", self.nic.spin.is_some()),
            ("--no-map", !self.map),
            ("--block", self.block.is_some()),
            ("--blocks", self.blocks.is_some()),
        ];
        match foreign.iter().find(|(_, given)| *given) {
            Some((what, _)) => bail!("{what} is not for {name}, {why}"),
            None => Ok(()),
        }
    }

    fn judge_costs(&self) -> anyhow::Result<()> {
        self.judge_alone("which makes one short exchange at a time")?;
        let name = self.test.name();
        match self.carrier {
            Some(carrier @ (Carrier::Mapped | Carrier::Mixed)) => {
                bail!("--carrier {carrier}: of {name} it is messages, the default, or one-sided")
            }
            _ => Ok(()),
        }
    }

    fn judge_accesses(&self, test: SplitC) -> anyhow::Result<()> {
        /// The most bytes of an access, here.
        const MOST: usize = 1 << 24;
        let (Self { size, .. }, name) = (self, self.test.name());
        if self.connections > 0 {
            bail!("--connections are not for {name} or Split-C");
        }
        if !self.map {
            bail!(
                "--no-map is not for Split-C: {name} --carrier one-sided maps nothing, nor do \
                 messages and mixed"
            );
        }
        match test.only_size() {
            Some(only) if *size != only => bail!("{name} is of {only} bytes: leave --size out"),
            Some(_) => Ok(()),
            None if (1..=MOST).contains(size) => Ok(()),
            None => bail!("--size {size}: of {name} it is 1 to {MOST}"),
        }
    }

    /// Makes the meter that shows the progress of the test.
    pub fn meter(&self) -> Meter {
        Meter::new(self.test.name(), self.amount)
    }
}
