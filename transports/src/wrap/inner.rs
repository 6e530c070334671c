//! The methods of a device that a wrapper leaves to the device inside.

/// Implements methods of [`Device`](crate::Device), or groups of them, by calls to the device
/// inside.
macro_rules! leave_to_inside {
    ($($what:ident)*) => { $($crate::wrap::inner::leave_to_inside!(@ $what);)* };
    (@ capabilities) => {
        fn capabilities(&self) -> &$crate::Capabilities {
            self.inside.capabilities()
        }
    };
    (@ settle) => {
        #[inline]
        fn settle(&mut self, owes: impl Fn(doorbell_core::encap::PathId) -> bool) {
            self.inside.settle(owes);
        }
    };
    (@ now) => {
        #[inline]
        fn now(&self) -> doorbell_core::time::Time {
            self.inside.now()
        }
    };
    (@ address) => {
        fn address(&self) -> &$crate::Address {
            self.inside.address()
        }
    };
    (@ reach) => {
        fn reach(
            &mut self,
            peer: &$crate::Address,
        ) -> Result<Option<doorbell_core::nic::Way>, $crate::ReachError> {
            self.inside.reach(peer)
        }
    };
    (@ readiness) => {
        fn readiness(&self) -> std::os::fd::BorrowedFd<'_> {
            self.inside.readiness()
        }
    };
    (@ arm) => {
        fn arm(&mut self, until: Option<doorbell_core::time::Time>) -> std::io::Result<()> {
            self.inside.arm(until)
        }
    };
    (@ disarm) => {
        fn disarm(&mut self) {
            self.inside.disarm();
        }
    };
    (@ trouble) => {
        fn trouble(&mut self) -> Option<$crate::Trouble> {
            self.inside.trouble()
        }
    };
    (@ statistics) => {
        fn statistics(&mut self) -> $crate::Statistics {
            self.inside.statistics()
        }
    };
    (@ grants) => {
        fn grant(
            &mut self,
            to: doorbell_core::encap::PathId,
            tag: u128,
            memory: &$crate::SharedMemory,
        ) -> Result<(), $crate::GrantError> {
            self.inside.grant(to, tag, memory)
        }

        fn peer_process(
            &mut self,
            link: doorbell_core::encap::PathId,
        ) -> Option<$crate::PeerProcess> {
            self.inside.peer_process(link)
        }

        fn granted(&mut self) -> Option<$crate::Grant> {
            self.inside.granted()
        }
    };
}
pub(super) use leave_to_inside;
