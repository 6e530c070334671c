//! The endpoints and the group by which a process that joins exchanges messages with the others.

use doorbell_am::group::{Group, GroupConfig};
use doorbell_am::{self as am, Bundle, Endpoint, Name, Unwelcome};
use doorbell_job::Route;

use super::joining::{Joining, LONGEST, Purpose};
use super::membership::{Attempt, JoinError};
use crate::world::port::Port;

/// The most bytes of a message of operations or stores: one packet.
pub(super) const PAYLOAD: usize = 4096;
/// Up to this many processes, the processes of a world have many credits for each other from the
/// start. In larger worlds, the receives of connections that are seldom used would fill memory.
const FEW: usize = 16;
/// The most receive buffers of the endpoint for messages, of a little more than [`PAYLOAD`] each:
/// 270 MB, if a process has that many peers that all send at the same time.
const MOST_RECEIVES: usize = 1 << 16;

impl Joining<'_> {
    pub async fn endpoint(&self, port: &Port) -> Result<Endpoint, JoinError> {
        let opened = Endpoint::builder()
            .service(self.service(self.rank, Purpose::Messages))
            .tag(self.tag())
            .credits(self.config.credits)
            .first_credits(self.first_message_credits().min(self.config.credits))
            .payload(PAYLOAD)
            .places(self.size())
            .receives(self.receives())
            .on_bundle(&port.bundle, self.served.handlers())
            .await;
        opened.map_err(|why| self.device(port, why.into()))
    }

    /// Returns the most receive buffers of the endpoint. Each pair of processes has two
    /// connections, since either process sends by the one that it has made; an endpoint provides
    /// receives for the requests and the answers of both, and for new peers only while half of its
    /// receives are free. Half of two more is the one receive that no peer has.
    fn receives(&self) -> usize {
        let others = self.size() - 1;
        self.config.credits.saturating_mul(8 * others).saturating_add(2).clamp(64, MOST_RECEIVES)
    }

    /// Returns how many credits other processes have for this one at first; they get more as they
    /// use them.
    fn first_credits(&self) -> usize {
        if self.size() <= FEW { 64 } else { 8 }
    }

    /// Returns how many credits other processes have at first for messages of operations. Threads
    /// that share their heaps need few such messages, and receives for all pairs would fill memory.
    fn first_message_credits(&self) -> usize {
        if self.heaps.is_some() { 1 } else { self.first_credits() }
    }

    pub async fn group(&self) -> Result<Group, JoinError> {
        let members = self.routes.iter().enumerate();
        let name = |(rank, at): (usize, &Route)| {
            Name::at(at.address.as_str(), self.service(rank, Purpose::Collectives))
        };
        let config = GroupConfig {
            rank: self.rank,
            members: members.map(name).collect(),
            tag: Some(self.tag()),
            patience: self.config.start.min(LONGEST),
            stall: self.config.stall,
            // Credits come back once for a quarter of those that a member has at first, by a
            // message of their own, which a barrier should not wait for.
            first_credits: self.first_credits(),
            ..GroupConfig::default()
        };
        let bundles: Vec<Bundle> = self.ports.iter().map(|port| port.bundle.clone()).collect();
        let ways: Vec<usize> = self.routes.iter().map(|route| route.device).collect();
        let joined = Group::join_by(&bundles, &ways, config).await;
        joined.map_err(|why| self.device(&self.ports[0], why.into()))
    }

    /// Connects to another process for messages; repeats the attempt until the process is up.
    pub async fn connect(
        &self,
        endpoints: &[Endpoint],
        rank: usize,
    ) -> Result<am::Peer, JoinError> {
        let Route { device, address, .. } = &self.routes[rank];
        let service = self.service(rank, Purpose::Messages);
        let (endpoint, name) = (&endpoints[*device], Name::at(address.as_str(), service));
        self.again(rank, async || {
            let connected = endpoint.connect(name.clone()).await;
            connected.map_err(|why| match why {
                // A process with another key is told so, and this one too, by `pairs`.
                am::ConnectError::Unwelcome { why: Unwelcome::OtherHandlers { .. }, .. } => {
                    Attempt::Stranger(format!("it is another program: {why}"))
                }
                why => Self::unreached(&why),
            })
        })
        .await
    }
}
