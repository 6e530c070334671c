//! Events of a process that shares an interface.

use doorbell_core::wire::ServiceId;

/// Something that a process which shares an interface is told.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// The processes that must know this one's tag know it, and the tag may be used from here on.
    /// This event comes once.
    Welcome,
    /// The process that takes this event answers for the whole interface from here on. The owner
    /// before has ended.
    BecameOwner,
    /// A process with this tag has joined.
    Joined(u32),
    /// No process has this tag. The event comes when a process has ended; and a new owner tells of
    /// all free tags.
    Left(u32),
    /// A process other than this one listens to this service.
    Listens(ServiceId),
    /// No other process listens to this service any more.
    StopsListening(ServiceId),
    /// The service that this process asked for is granted.
    Granted(ServiceId),
    /// The service that this process asked for is another's. A grant before is void: two processes
    /// had the service, because the owner was killed and a process stopped in the worst moment.
    Taken(ServiceId),
}
