//! Bugs that tests plant, in order to show that other tests would find them.
//!
//! Without the feature `planted-bugs`, which only tests enable, [`planted`] is `false` at compile
//! time, and the compiler removes the planted bugs.

/// A bug that a test can plant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bug {
    /// A repeated request is carried out again.
    TakesDuplicates,
    /// A gap in the sequence goes unnoticed: the next packet is taken wherever it belongs.
    IgnoresGaps,
    /// Lost packets are not sent again.
    GoesBackToTheNewest,
    /// An acknowledgement of packets that were never sent is believed.
    BelievesAnyAcknowledgement,
    /// A write may exceed its registered memory by one byte.
    OffByOneBounds,
    /// A key of another protection domain is accepted.
    IgnoresDomains,
    /// The random part of a key is not compared, so revoked and unknown keys are accepted.
    ComparesNoKeys,
    /// A message without a receive is acknowledged and dropped.
    DropsWithoutReceive,
    /// Broken queue pairs forget their receives.
    FlushesNoReceives,
    /// The last, short packet of a message is put where the packet before it began.
    MisplacesTheLastPacket,
    /// Refusals are not remembered, and each packet behind a gap is refused anew.
    RefusesEachPacket,
    /// The next expected packet is acknowledged before it has come.
    AcknowledgesAhead,
    /// A repeated atomic operation is carried out again.
    RepeatsAtomics,
    /// The answer to the rest of a read is put where the read began.
    MisplacesAnswers,
    /// An acknowledgement completes reads whose answers have not come.
    TakesReadsForAnswered,
    /// A key that a send with invalidate has invalidated is still accepted.
    KeepsInvalidated,
    /// Memory whose registration was revoked is still reached by its keys.
    KeepsRevoked,
    /// A fenced request does not wait for the reads before it.
    IgnoresFences,
    /// A write into mapped memory ends with the part that was written in one turn.
    EndsMappedWritesEarly,
    /// A write into mapped memory is carried out before earlier operations on the same memory.
    OvertakesReads,
    /// The program's count of messages that have arrived is taken for one more.
    ProvesOneMore,
    /// What a peer keeps from beyond a gap counts as carried out.
    CompletesWhatIsKept,

    /// An unreliable connection takes late copies of packets for messages of their own.
    TakesLateCopies,
    /// An unreliable connection joins the packets behind a loss to the message from before it.
    JoinsTornMessages,
    /// The receive that a torn message had begun to fill is forgotten.
    LosesTornReceives,
    /// An unreliable connection breaks on packets that it should ignore.
    BreaksInsteadOfPassingOver,
    /// A datagram is accepted whatever Q_Key it has.
    IgnoresQkeys,
    /// A datagram is reported as sent by the queue pair that it is for.
    MisnamesSenders,
    /// The event that a shared receive queue runs low is repeated for each receive that is taken.
    TellsLowAgain,
    /// A queue pair that has taken its last receive of a shared queue does not tell so.
    TellsNoLastReceive,
    /// A message that found no receive keeps the slot of its completion.
    KeepsSlotsOfNothing,
    /// A host that has fallen silent is asked for a sign of life for ever.
    AsksForEver,
    /// A silent host is taken for gone without being asked for a sign of life.
    AsksNobody,

    /// A connection manager never repeats a message.
    SaysNothingAgain,
    /// Communication IDs and queue pairs are used again as soon as their connection is over.
    RestsNoNames,
    /// A program is told again that a connection is established for each RTU that comes.
    TellsOfEachRtu,
    /// An MRA is ignored, so the peer gets no more time.
    GrantsNoPatience,
    /// A DREQ for an unknown connection is not answered by a DREP.
    AnswersNoStranger,
    /// A repeated REQ is taken for a new one.
    TakesRepetitionsForNew,
    /// A rejection sends no REJ.
    RefusesInSilence,
}

#[cfg(feature = "planted-bugs")]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}

/// A planted bug, which is removed when this value is dropped.
#[cfg(feature = "planted-bugs")]
#[derive(Debug)]
pub struct Planted(());

/// Plants a bug in all code that this thread runs.
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

/// Whether a bug is planted in this thread.
#[cfg(feature = "planted-bugs")]
pub(crate) fn planted(bug: Bug) -> bool {
    PLANTED.get() == Some(bug)
}

/// Returns false, since no bugs can be planted without the feature.
#[cfg(not(feature = "planted-bugs"))]
#[inline(always)]
pub(crate) const fn planted(_: Bug) -> bool {
    false
}
