//! The report: what a message costs here, in tables and figures, with the machine described.

use doorbell_measure::logp::devices;
use doorbell_measure::logp::line::{GAP_PER_BYTE, Line, PARAMETERS, Parameter};
use doorbell_measure::machine::Machine;
use doorbell_report::{Cell, Column, Note, Report, Section, Table, Value};
use serde_json::json;

use super::captions;
use super::figures::{self, devices_of, value};
use super::published::{HEADING, PAPER, SUFFIX, TABLE_2};

/// How many figures the report draws unless asked for all of them.
const FIGURES: usize = 6;

/// The results that a report is made of.
pub struct Findings<'a> {
    pub machine: &'a Machine,
    /// The description of the other end's machine, if that is another one.
    pub there: &'a [(String, String)],
    pub lines: &'a [Line],
    /// Steps that failed, and why.
    pub failures: &'a [(String, String)],
    /// Between which ends was measured, as in "two processes on this machine".
    pub between: &'a str,
    /// The warning at the head if only a part was measured.
    pub partial: Option<&'a str>,
}

/// The whole report, for people who look at it in a browser: with six figures or with all of them.
pub fn report(findings: &Findings<'_>, all_figures: bool) -> Report {
    let Findings { lines, machine, .. } = findings;
    let raw: Vec<_> = lines.iter().map(|line| line.json().clone()).collect();
    let raw = json!({ "machine": machine.json(), "lines": raw });
    let finding = captions::finding(lines, findings.between);
    let report = begun(findings).head(finding, Some(figures::one_way(lines)));
    let report = machine.warning().map(Note::warning).into_iter().fold(report, Report::note);
    let mut signatures = figures::signatures(lines).into_iter();
    let first = figures::method_sees(signatures.next());
    let others = Section::new("What the method sees on the other devices");
    let sections = [
        failures(findings).into_iter().fold(parameters(lines), Section::note),
        Section::new("Where the time goes").figure(figures::parts(lines)),
        Section::new("How often a message can be sent").figure(figures::gaps(lines)),
        first,
        bursts(lines),
        bulk(lines),
        signatures.fold(others, Section::figure),
    ];
    let report = sections.into_iter().filter_map(Section::measured).fold(report, Report::section);
    let facts = machine.facts().into_iter().chain(devices::facts(lines));
    let here = Section::new("This machine").facts(facts.collect::<Vec<_>>());
    let report = report.section(method()).section(here).json(raw.to_string());
    let report = match findings.there {
        [] => report,
        facts => report.section(Section::new("The other machine").facts(facts.to_vec())),
    };
    match all_figures {
        true => report,
        false => report.at_most_figures(FIGURES, "`--all-figures` draws all figures."),
    }
}

/// The part of the report that a terminal shows: the parameters, the parts of half a round trip,
/// and the curves that the parameters of each layer on the first device come from.
pub fn summary(findings: &Findings<'_>) -> Report {
    let lines = findings.lines;
    let parameters = notes(findings).into_iter().fold(parameters(lines), Section::note);
    let first = figures::signatures(lines).into_iter().take(1);
    begun(findings)
        .section(parameters)
        .section(Section::new("Where the time goes").figure(figures::parts(lines)))
        .section(figures::method_sees(first))
}

/// A report with what stands above everything.
fn begun(findings: &Findings<'_>) -> Report {
    let subtitle = format!(
        "LogP parameters of verbs, Active Messages and Split-C, measured between {}",
        findings.between
    );
    let report = Report::new("What a message costs").subtitle(subtitle);
    findings.partial.map(Note::warning).into_iter().fold(report, Report::note)
}

fn parameters(lines: &[Line]) -> Section {
    Section::new("Parameters").table(table(lines))
}

/// The parameters, device by device. The gap per byte stands there as the rate of bulk, its inverse.
fn table(lines: &[Line]) -> Table {
    let caption = "Parameters with intervals of 95 %; published ones below";
    let mut table = Table::new("parameters", caption).column(Column::text("Layer"));
    for parameter in PARAMETERS {
        table = table.column(match parameter == GAP_PER_BYTE {
            true => Column::number("Bulk", "GB/s").decimals(2),
            false => Column::number(parameter.name, parameter.unit),
        });
    }
    for device in devices_of(lines) {
        table = table.group(device, format!(" over {device}"));
        for line in lines.iter().filter(|line| line.device() == device) {
            let values = PARAMETERS.iter().map(|one| Cell::from(shown(line, *one)));
            table = table.row([Cell::from(line.layer())].into_iter().chain(values));
        }
    }
    table = table.group(HEADING, SUFFIX);
    for row in &TABLE_2 {
        let values = row.values.iter().map(|value| Cell::published(*value, PAPER));
        table = table.row([Cell::from(row.name)].into_iter().chain(values));
    }
    table
}

/// A parameter as the table shows it; the gap per byte as a rate, if all of its interval is above
/// zero: the rate may be anything otherwise.
fn shown(line: &Line, parameter: Parameter) -> Option<Value> {
    let found = value(line.get(parameter)?);
    if parameter != GAP_PER_BYTE {
        return Some(found);
    }
    let rate = |nanos_a_byte: f64| 1.0 / nanos_a_byte;
    let lowest = found.interval.map_or(found.value, |(low, _)| low.min(found.value));
    let interval = found.interval.map(|(low, high)| (rate(high), rate(low)));
    (lowest > 0.0).then(|| Value { value: rate(found.value), interval })
}

/// What could not be measured, and why.
fn failures(findings: &Findings<'_>) -> Vec<Note> {
    let failures = findings.failures.iter();
    failures.map(|(step, why)| Note::missing(format!("{step}: {why}"))).collect()
}

/// The notes that tell a reader of a terminal how far to trust the numbers.
fn notes(findings: &Findings<'_>) -> Vec<Note> {
    let mut notes: Vec<_> = findings.machine.warning().map(Note::warning).into_iter().collect();
    let wide: Vec<_> = findings.lines.iter().filter_map(Line::too_wide).collect();
    if !wide.is_empty() {
        notes.push(Note::warning(format!(
            "Too uncertain to rely on, with intervals wider than a fifth of the value and than 10 \
             ns: {}.",
            wide.join("; ")
        )));
    }
    notes.extend(figures::below_zero(findings.lines).map(Note::warning));
    notes.extend(failures(findings));
    notes
}

fn bursts(lines: &[Line]) -> Section {
    let section = Section::new("How a burst becomes steady").paragraph(
        "Requests are sent in bursts, each followed by a look for answers. In a short burst no \
         answer has come yet, and a request takes o_s and that look; in a long one each answer must \
         be taken, too, and a request takes g.",
    );
    section.figure(figures::bursts(lines))
}

fn bulk(lines: &[Line]) -> Section {
    let section = Section::new("Longer messages").paragraph(
        "Requests with a payload follow each other at a steady rate. The rate of bulk in the table is \
         that of each further byte, 1/G in the LogGP model; here the time for the message itself \
         counts, too.",
    );
    section.figure(figures::bulk(lines))
}

fn method() -> Section {
    Section::new("How it is measured")
        .paragraph(
            "By the method of D. E. Culler, L. T. Liu, R. P. Martin and C. Yoshikawa (Assessing \
             Fast Network Interfaces, IEEE Micro 16 (1), 1996). One end sends requests, the other \
             answers each. In a burst that is over before the first answer has come, a request \
             takes o_s. At a steady rate a request takes g; with a computation of a length Δ above g \
             behind each request, o_s + Δ + o_r. A request alone is answered after the round-trip \
             time, and L = RTT/2 − o_s − o_r is what remains. At a steady rate of longer requests, \
             each further byte takes G.",
        )
        .paragraph(
            "Everything is timed in many short pieces, of which the median counts, in many rounds, \
             of which again the median counts. A value is the mean of several runs, each by \
             processes of its own and far apart from the others, and the interval beside it is that \
             of Student's distribution, in which the value lies with a probability of 95 %. Of a \
             single run (--quick), it is the median and its interval. The time that reading the \
             clock takes is subtracted.",
        )
        .paragraph(
            "At verbs, a request and its answer are sends of 16 bytes; at Active Messages, requests \
             and replies with one word; at Split-C, split-phase gets of 8 bytes, each sent by \
             itself: from mapped memory, by RDMA reads (one-sided), or by messages that the other \
             process answers.",
        )
}
