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
    /// Memory whose registration was taken back is still reached by its keys.
    KeepsRevoked,
    /// A request that waits for reads before it does not.
    IgnoresFences,
    /// A write into mapped memory ends with what was written in one turn.
    EndsMappedWritesEarly,
    /// A write into mapped memory is carried out before what is under way to the same memory.
    OvertakesReads,
    /// What a program says to have come is taken for one more.
    ProvesOneMore,

    /// An unreliable connection takes late copies for messages of their own.
    TakesLateCopies,
    /// What comes behind a loss on an unreliable connection goes on with the message from before
    /// it.
    JoinsTornMessages,
    /// The receive that a torn message had begun to fill is forgotten.
    LosesTornReceives,
    /// What an unreliable connection is to pass over breaks it.
    BreaksInsteadOfPassingOver,
    /// A datagram is taken whatever key it names.
    IgnoresQkeys,
    /// A datagram is said to be from the queue pair that it is for.
    MisnamesSenders,
    /// That a shared queue runs low is told with each receive that is taken.
    TellsLowAgain,
    /// A queue pair that has taken its last receive of a shared queue does not say so.
    TellsNoLastReceive,
    /// A message that found no receive keeps the slot of its completion.
    KeepsSlotsOfNothing,
    /// A host that has fallen silent is asked for ever.
    AsksForEver,
    /// A host that is silent is not asked before it is taken for gone.
    AsksNobody,

    /// A manager says nothing again, however long nobody answers.
    SaysNothingAgain,
    /// Names and queue pairs are used again as soon as their connection is over.
    RestsNoNames,
    /// A program is told as often as its peer says so that a connection stands.
    TellsOfEachRtu,
    /// A peer that asks for patience is given none.
    GrantsNoPatience,
    /// Who ends a connection that is not known is not told that it is over.
    AnswersNoStranger,
    /// A request that comes again is taken for another.
    TakesRepetitionsForNew,
    /// Who is refused is not told.
    RefusesInSilence,
}

#[cfg(feature = "planted-bugs")]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}

/// A bug that is planted until this is dropped.
#[cfg(feature = "planted-bugs")]
#[derive(Debug)]
pub struct Planted(());

/// Plants a bug in all that this thread runs.
#[cfg(feature = "planted-bugs")]
#[must_use]
pub fn plant(bug: Bug) -> Planted {
    PLANTED.set(Some(bug));
    Planted(())
}

#[cfg(feature = "planted-bugs")]
impl Drop for Planted {
    fn drop(&mut self) {
        PLANTED.set(None);
    }
}

/// Whether a bug is planted.
#[cfg(feature = "planted-bugs")]
pub(crate) fn planted(bug: Bug) -> bool {
    PLANTED.get() == Some(bug)
}

/// Whether a bug is planted: never.
#[cfg(not(feature = "planted-bugs"))]
#[inline(always)]
pub(crate) const fn planted(_: Bug) -> bool {
    false
}
