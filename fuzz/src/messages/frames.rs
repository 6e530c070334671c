//! Frames to an endpoint of frames, as datagrams and by a lane, from a NIC whose program is no
//! endpoint of frames.

use doorbell_messages::frames::{Emp, Endpoint, Match, Offload, Policy, Rmpp};
use doorbell_verbs::work::Datagram;
use doorbell_verbs::{
    Buf, Datagrams, DatagramsConfig, Destination, Name, Nic, Qkey, Qpn, QueuePair, QueuePairConfig,
};

use super::MOST;
use super::input::Input;
use super::words::{payload, word};

/// The key of the stranger's datagrams.
const KEY: u32 = 7;

/// The bits of the peer that keeps the rules.
const GOOD: u64 = 1 << 50;

/// The kinds of frames by their numbers.
const FIRST: u8 = 1;
const CLEAR: u8 = 5;

/// The flag of frames that carry their sender's name.
const NAMED: u8 = 1 << 7;

/// A NIC that sends frames in its own name.
pub struct Frames {
    nic: Nic,
    forger: std::cell::RefCell<Datagrams>,
    name: String,
    identity: u64,
}

impl Frames {
    pub async fn open() -> Self {
        let nic = Nic::open("shm").await.expect("it opens");
        let completions = nic.completion_queue(256).expect("there is room");
        let config = DatagramsConfig::new(&completions, Qkey(KEY));
        let forger = nic.domain().datagrams(&config).expect("there is room");
        let qpn = forger.qpn().get();
        let identity = u64::from(qpn) << 32 | u64::from(KEY);
        let name = Name::at(nic.address().to_string(), identity).to_string();
        Self { nic, forger: forger.into(), name, identity }
    }

    /// Sends the frames of an input to an endpoint of their own.
    pub async fn hears(&self, input: &mut Input<'_>) {
        let shape = input.u8();
        let policies: [Policy; 4] = [
            Emp::default().into(),
            Rmpp::default().early(6).into(),
            Rmpp::default().offload(Offload::Receive).into(),
            Rmpp::default().early(3).offload(Offload::Both).into(),
        ];
        let policy = policies[usize::from(shape) % 4];
        let open = || Endpoint::builder().policy(policy).longest(1 << 16).notes(4).peers(4);
        let victim = open().open("shm").await.expect("it opens");
        let (to, number, key) = self.way_to(&victim).await;
        let lane = match shape & 4 {
            0 => None,
            _ => self.lane(&victim, u64::from(number) << 32 | u64::from(key)).await,
        };
        let mut receives: Vec<_> =
            (0..6).map(|bits| victim.receive_at_most(1 << 15, Match::exactly(bits))).collect();
        let mut sends = Vec::new();
        if shape & 8 != 0
            && let Ok(peer) = victim.connect(self.name.as_str()).await
        {
            sends.extend([10, 3000, 60_000].map(|len| peer.send(1, vec![7; len])));
        }
        for _ in 0..MOST {
            if input.is_empty() {
                break;
            }
            let by_lane = input.u8() < 64;
            match lane.as_ref().filter(|_| by_lane) {
                // What can't be sent is to an endpoint that has hung up.
                Some(lane) => drop(lane.send(Buf::from(self.frame(input, true))).await),
                None => {
                    let datagram = Datagram::new(self.frame(input, false), &to).unsignalled();
                    let _ = self.forger.borrow_mut().send.post(datagram);
                }
            }
            if input.u8() < 16 {
                drop(receives.pop());
            }
            tokio::task::yield_now().await;
        }
        self.is_well(&victim, policy).await;
    }

    /// Finds the way to an endpoint, with its number and its key.
    async fn way_to(&self, victim: &Endpoint) -> (Destination, u32, u32) {
        let [number, key] = [32, 0].map(|shift| (victim.name().service().0 >> shift) as u32);
        let address = victim.name().address();
        let to = self.nic.destination(address, Qpn::new(number), Qkey(key)).await;
        (to.expect("there is a way"), number, key)
    }

    /// Makes a lane to an endpoint, in the stranger's name.
    async fn lane(&self, victim: &Endpoint, service: u64) -> Option<QueuePair> {
        let pair = self.nic.domain().queue_pair(&QueuePairConfig::default()).ok()?;
        let (address, own) = (victim.name().address(), self.identity.to_be_bytes());
        let connected = pair.connect(Name::at(address, service), &own).await;
        connected.ok().map(|(pair, _)| pair)
    }

    /// A frame that is often nearly right.
    fn frame(&self, input: &mut Input<'_>, by_lane: bool) -> Vec<u8> {
        let kind = if by_lane { 3 } else { 1 + input.u8() % 8 };
        let flags = input.u8() % 32;
        let named = if by_lane { 0 } else { NAMED };
        let mut bytes = vec![kind, named | flags];
        let small = |input: &mut Input<'_>| u32::from(input.u8() % 8);
        let number = |input: &mut Input<'_>| {
            let byte = input.u8();
            match byte {
                0..16 => word(input, &[63, 64, 65, u64::from(u32::MAX)]) as u32,
                _ => u32::from(byte % 48),
            }
        };
        bytes.extend((number(input) as u16).to_be_bytes());
        let epoch = small(input).saturating_sub(5);
        bytes.extend(epoch.to_be_bytes());
        let sender = if input.u8() == 255 { self.identity ^ 1 } else { self.identity };
        bytes.extend(sender.to_be_bytes());
        bytes.extend(small(input).to_be_bytes());
        bytes.extend(number(input).to_be_bytes());
        let mut data = payload(input);
        if kind == FIRST {
            let stride = input.choose(&[64_u16, 64, 100, 0, 63]);
            let frames = 1 + number(input) % 200;
            let len = u64::from(frames) * u64::from(stride) - u64::from(stride.min(3));
            bytes.extend(len.to_be_bytes());
            bytes.extend(u64::from(input.u8() % 8).to_be_bytes());
            bytes.extend(frames.to_be_bytes());
            bytes.extend(stride.to_be_bytes());
            bytes.extend([1 + input.u8() % 8, 0]);
            data.resize(stride.into(), 7);
        }
        if kind == CLEAR {
            bytes.extend(word(input, &[1, 0xffff, u64::MAX]).to_be_bytes());
            bytes.extend(
                [word(input, &[4096]), word(input, &[3000])].map(u64::to_be_bytes).concat(),
            );
            bytes.extend(number(input).to_be_bytes());
        }
        if !by_lane {
            bytes.push(self.name.len() as u8);
            bytes.extend(self.name.as_bytes());
        }
        if kind == 2 && input.u8() < 200 {
            data.resize(input.choose(&[64, 64, 100, 61]), 7);
        }
        if matches!(kind, 1 | 2) || input.u8() < 8 {
            bytes.extend(data);
        }
        if input.u8() < 8 {
            bytes.truncate(input.u8().into());
        }
        bytes
    }

    /// Messages of a peer that keeps the rules are received.
    async fn is_well(&self, victim: &Endpoint, policy: Policy) {
        let good = Endpoint::builder().policy(policy).open("shm").await.expect("it opens");
        let peer = good.connect(victim.name()).await.expect("there is a way");
        for len in [10, 20_000] {
            let receive = victim.receive_at_most(1 << 16, Match::exactly(GOOD));
            let (sent, received) = tokio::join!(peer.send(GOOD, vec![9; len]), receive);
            sent.expect("it is received");
            assert!(received.expect("it was sent").body == vec![9; len]);
        }
    }
}
