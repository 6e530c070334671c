//! Bugs to be planted, so that the tests can be shown to find them.
//!
//! Without the feature `planted-bugs`, which only the tests ask for, [`planted`] is `false` at
//! compile time, and nothing of this remains.

/// A bug that a test can plant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bug {
    /// A request that comes twice is carried out twice.
    TakesDuplicates,
    /// A gap is not noticed: the next packet is taken wherever it belongs.
    IgnoresGaps,
    /// After a loss, what was lost is not sent again.
    GoesBackToTheNewest,
    /// An acknowledgement of what was never sent is believed.
    BelievesAnyAcknowledgement,
    /// A write may be one byte longer than what is registered.
    OffByOneBounds,
    /// A key of another protection domain does.
    IgnoresDomains,
    /// A revoked or unknown key's random part is not compared.
    ComparesNoKeys,
    /// A message without a receive is acknowledged and dropped.
    DropsWithoutReceive,
    /// Broken queue pairs forget their receives.
    FlushesNoReceives,
    /// A message's last, short packet is put where the one before began.
    MisplacesTheLastPacket,
    /// Refusals are not remembered, and each packet behind a gap is refused anew.
    RefusesEachPacket,
    /// The packet that is expected is acknowledged before it has come.
    AcknowledgesAhead,
    /// An atomic operation that comes twice is carried out twice.
    RepeatsAtomics,
    /// What answers the rest of a read is put where the read began.
    MisplacesAnswers,
    /// An acknowledgement completes reads whose answers have not come.
    TakesReadsForAnswered,
    /// A key that was to be taken back is still good.
    KeepsInvalidated,
    /// A request that waits for reads before it does not.
    IgnoresFences,
}

impl Bug {
    /// Every bug.
    pub const ALL: [Self; 17] = [
        Self::TakesDuplicates,
        Self::IgnoresGaps,
        Self::GoesBackToTheNewest,
        Self::BelievesAnyAcknowledgement,
        Self::OffByOneBounds,
        Self::IgnoresDomains,
        Self::ComparesNoKeys,
        Self::DropsWithoutReceive,
        Self::FlushesNoReceives,
        Self::MisplacesTheLastPacket,
        Self::RefusesEachPacket,
        Self::AcknowledgesAhead,
        Self::RepeatsAtomics,
        Self::MisplacesAnswers,
        Self::TakesReadsForAnswered,
        Self::KeepsInvalidated,
        Self::IgnoresFences,
    ];
}

#[cfg(feature = "planted-bugs")]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}

/// Plants a bug in every NIC that this thread runs, or takes it out.
#[cfg(feature = "planted-bugs")]
pub fn plant(bug: Option<Bug>) {
    PLANTED.set(bug);
}

/// Whether a bug is planted.
#[cfg(feature = "planted-bugs")]
pub(super) fn planted(bug: Bug) -> bool {
    PLANTED.get() == Some(bug)
}

/// Whether a bug is planted: never.
#[cfg(not(feature = "planted-bugs"))]
#[inline(always)]
pub(super) const fn planted(_: Bug) -> bool {
    false
}
