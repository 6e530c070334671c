//! A test that finds nothing may be blind: these bugs it must find.

use doorbell_core::{Bug, plant};
use doorbell_kit::is_thorough;

use super::program::Program;
use super::services;
use super::strategy::{Failed, Random, check, program};

/// How many programs a bug may survive.
const MOST: u64 = 4000;

const RELIABLE: [Bug; 21] = [
    Bug::TakesDuplicates,
    Bug::IgnoresGaps,
    Bug::GoesBackToTheNewest,
    Bug::BelievesAnyAcknowledgement,
    Bug::OffByOneBounds,
    Bug::IgnoresDomains,
    Bug::ComparesNoKeys,
    Bug::DropsWithoutReceive,
    Bug::FlushesNoReceives,
    Bug::MisplacesTheLastPacket,
    Bug::RefusesEachPacket,
    Bug::AcknowledgesAhead,
    Bug::RepeatsAtomics,
    Bug::MisplacesAnswers,
    Bug::TakesReadsForAnswered,
    Bug::KeepsInvalidated,
    Bug::IgnoresFences,
    Bug::EndsMappedWritesEarly,
    Bug::OvertakesReads,
    Bug::ProvesOneMore,
    Bug::CompletesWhatIsKept,
];

const SERVICES: [Bug; 11] = [
    Bug::TakesLateCopies,
    Bug::JoinsTornMessages,
    Bug::LosesTornReceives,
    Bug::BreaksInsteadOfPassingOver,
    Bug::IgnoresQkeys,
    Bug::MisnamesSenders,
    Bug::TellsLowAgain,
    Bug::TellsNoLastReceive,
    Bug::KeepsSlotsOfNothing,
    Bug::AsksForEver,
    Bug::AsksNobody,
];

/// Each bug makes some program fail. A thorough run also makes that program as small as it gets.
fn are_found<P: Random>(bugs: &[Bug]) {
    let mut missed = Vec::new();
    for &bug in bugs {
        let _planted = plant(bug);
        if !is_thorough() {
            let is_found = (0..MOST).any(|seed| program::<P>(seed).run().result.is_err());
            missed.extend((!is_found).then_some(bug));
            continue;
        }
        let found = (0..MOST).find_map(|seed| Some((seed, check::<P>(seed, |_| {})?)));
        let Some((seed, Failed { program, why })) = found else {
            missed.push(bug);
            continue;
        };
        println!("{bug:?} is found by seed {seed}: {why}");
        let further = program.smaller().into_iter().find(|less| less.run().result.is_err());
        assert!(further.is_none(), "more could have been taken away of\n{program}");
    }
    assert!(missed.is_empty(), "{MOST} programs do not find {missed:?}");
}

#[test]
fn every_bug_planted_in_reliable_connections_is_found() {
    are_found::<Program>(&RELIABLE);
}

#[test]
fn every_bug_planted_in_the_other_services_is_found() {
    are_found::<services::Program>(&SERVICES);
}
