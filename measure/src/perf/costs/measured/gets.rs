//! Gets of Split-C, each sent by itself.

use anyhow::ensure;
use doorbell_verbs::Nic;

use super::splitc::{Carrier, Config, GlobalPtr, World};
use crate::perf::costs::measured::exchange::Exchange;
use crate::perf::shared::patience::Patience;

/// The value that a get reads.
const VALUE: u64 = 0x0d00_12be_5911_7c0d;
/// Bytes of the heap of each process, which has one word.
const HEAP: usize = 1 << 20;

/// Gets of a word that another process of the same thread has.
pub struct Gets {
    worlds: [World; 2],
    theirs: GlobalPtr<u64>,
}

impl Gets {
    pub async fn new([near, far]: &[Nic; 2], by_messages: bool) -> anyhow::Result<Self> {
        let carrier = if by_messages { Carrier::Messages } else { Carrier::OneSided };
        // Whatever these devices are, nobody else is to take part.
        let key = VALUE;
        let config = Config { carrier: Some(carrier), heap: HEAP, key, ..Config::default() };
        let addresses = [near, far].map(|nic| nic.address().to_string());
        let (near, far) = tokio::try_join!(
            World::join_on(near, 0, &addresses, &config),
            World::join_on(far, 1, &addresses, &config),
        )?;
        let theirs = far.allocate::<u64>(1)?;
        far.at(theirs).write(VALUE).await?;
        Ok(Self { worlds: [near, far], theirs })
    }
}

impl Exchange for Gets {
    #[inline]
    fn once(&mut self) -> anyhow::Result<()> {
        let [near, far] = &self.worlds;
        let get = near.at(self.theirs).get()?;
        near.flush_now()?;
        let mut patience = Patience::default();
        loop {
            far.poll();
            near.poll();
            if get.is_done() {
                break;
            }
            patience.spend("a value")?;
        }
        let value = get.value()?;
        ensure!(value == VALUE, "a get found {value:#x} where {VALUE:#x} is");
        Ok(())
    }
}
