//! Two results beside each other: what has changed, and what may be chance.

use std::fs;

use anyhow::{Context, bail};
use doorbell_logp::Estimate;
use doorbell_measure::files;
use doorbell_measure::judging::ratio as ratio_of;
use doorbell_measure::logp::line::{Line, PARAMETERS, Parameter};
use doorbell_measure::out::{self, HEAD, SCHEMA, styled};
use doorbell_report::{Cell, Column, Table, Value as Number};
use serde_json::{Value, json};

/// How results are compared.
pub struct Comparison {
    /// Compare, rather than the parameters, by how much they are above those of verbs on the same
    /// device: a ratio hardly depends on how fast a machine is.
    pub ratios: bool,
    /// From how many per cent on a parameter that has become greater, and not by chance, is a
    /// failure.
    pub fail_above: Option<f64>,
}

/// How a comparison is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    Words,
    Json,
    Csv,
}

/// A parameter in both results.
struct Change<'a> {
    line: &'a Line,
    parameter: Parameter,
    before: Estimate,
    after: Estimate,
}

impl Change<'_> {
    /// By how many per cent the parameter is greater now; `None` if it may have been zero before, of
    /// which nothing is a share.
    fn percent(&self) -> Option<f64> {
        let Estimate { value, low, high } = self.before;
        let percent = 100.0 * (self.after.value - value) / value.abs();
        (low > 0.0 || high < 0.0).then_some(percent)
    }

    /// Whether the intervals have nothing in common, so that chance alone explains the difference
    /// in less than one case of a hundred.
    fn is_significant(&self) -> bool {
        !self.before.overlaps(&self.after)
    }
}

/// Reads the lines that `--json` has printed; `-` is standard input.
pub fn read(path: &str) -> anyhow::Result<Vec<Line>> {
    let text = match path {
        "-" => std::io::read_to_string(std::io::stdin()).context("reading standard input"),
        path => fs::read_to_string(path).with_context(|| format!("reading {path}")),
    }?;
    let mut lines = Vec::new();
    for (number, text) in text.lines().enumerate().filter(|(_, text)| !text.trim().is_empty()) {
        let place = || {
            format!("line {} of {path} is no JSON: --compare reads what --json prints", number + 1)
        };
        let json: Value = serde_json::from_str(text).with_context(place)?;
        // Lines of earlier versions have no schema.
        if let Some(schema) = json["schema"].as_u64().filter(|schema| *schema > SCHEMA) {
            bail!(
                "line {} of {path} has schema {schema}, and this doorbell {} reads schemas up to \
                 {SCHEMA}: compare with the version that measured, or a later one",
                number + 1,
                env!("CARGO_PKG_VERSION")
            );
        }
        match Line::from_json(json) {
            Some(line) => lines.push(line),
            None => {
                bail!("line {} of {path} has no layer, device and parameters of LogP", number + 1)
            }
        }
    }
    if lines.is_empty() {
        bail!("{path} has no line: save what `doorbell logp --json` prints");
    }
    Ok(lines)
}

/// Prints what has changed from the first results to the second. Fails if something has become
/// slower than is allowed.
pub fn run(before: &[Line], after: &[Line], how: &Comparison, form: Form) -> anyhow::Result<()> {
    let (old, new) = (how.of(before), how.of(after));
    let mut changes = Vec::new();
    for (line, parameter, now) in &new {
        let same = old.iter().find(|(old, one, _)| old.is_like(line) && one == parameter);
        if let Some((.., before)) = same {
            let (before, after, parameter) = (*before, *now, *parameter);
            changes.push(Change { line, parameter, before, after });
        }
    }
    if changes.is_empty() {
        bail!("the two results have no layer on a device in common");
    }
    let width = files::terminal_width().unwrap_or(usize::MAX);
    out::show(&match form {
        Form::Words => out::wrapped(&words(&changes, how.ratios), width, ""),
        Form::Json => changes.iter().map(|change| format!("{}\n", change.json())).collect(),
        Form::Csv => csv(&changes, how.ratios),
    })?;
    if [before, after].iter().any(|lines| lines.iter().any(Line::is_of_one_run)) {
        out::note(format_args!(
            "doorbell: a result of one run (--quick, or interrupted) has intervals that can't tell \
             how far another run may be: differences may be chance all the same"
        ));
    }
    let missing = before.iter().filter(|line| !after.iter().any(|other| other.is_like(line)));
    let missing: Vec<_> = missing.map(ToString::to_string).collect();
    let missing = missing.join(", ");
    if !missing.is_empty() {
        out::note(format_args!("doorbell: only the first result has {missing}"));
    }
    let Some(most) = how.fail_above else { return Ok(()) };
    if !missing.is_empty() {
        bail!("the second result lacks what the first has: {missing}");
    }
    let worse = |change: &&Change<'_>| change.is_significant() && change.percent() > Some(most);
    let worse: Vec<_> = changes.iter().filter(worse).map(Change::name).collect();
    if !worse.is_empty() {
        bail!("greater by more than {most} %, and not by chance: {}", worse.join(", "));
    }
    Ok(())
}

impl Comparison {
    /// The parameters of some lines that are compared, or their ratios to those of verbs.
    fn of<'a>(&self, lines: &'a [Line]) -> Vec<(&'a Line, Parameter, Estimate)> {
        let mut all = Vec::new();
        for line in lines {
            for parameter in PARAMETERS {
                let found =
                    if self.ratios { ratio(line, lines, parameter) } else { line.get(parameter) };
                all.extend(found.map(|found| (line, parameter, found)));
            }
        }
        all
    }
}

/// How many times verbs' parameter on the same device a parameter is; `None` for verbs themselves,
/// and for what may be zero or below.
fn ratio(line: &Line, lines: &[Line], parameter: Parameter) -> Option<Estimate> {
    let floor = lines.iter().find(|one| one.is_of("verbs") && one.device() == line.device())?;
    let (above, floor) = (line.get(parameter)?, floor.get(parameter)?);
    let [above, floor] = [above, floor].map(|one| Number::within(one.value, one.low, one.high));
    let ratio = (!line.is_of("verbs")).then(|| ratio_of(above, floor)).flatten()?;
    let (low, high) = ratio.interval?;
    Some(Estimate { value: ratio.value, low, high })
}

impl Change<'_> {
    fn name(&self) -> String {
        format!("{} of {}", self.parameter.name, self.line)
    }

    fn json(&self) -> Value {
        let Self { line, parameter, before, after } = self;
        let [layer, carrier, device] =
            ["layer", "carrier", "device"].map(|key| line.json()[key].clone());
        let ends = |estimate: &Estimate| json!([estimate.low, estimate.value, estimate.high]);
        json!({
            "schema": SCHEMA, "layer": layer, "carrier": carrier, "device": device, "parameter": parameter.name,
            "before": ends(before), "after": ends(after),
            "percent": self.percent(), "significant": self.is_significant(),
        })
    }

    fn unit(&self, ratios: bool) -> &'static str {
        if ratios { "× verbs" } else { self.parameter.unit }
    }

    fn words(&self, ratios: bool) -> String {
        let what = match (self.is_significant(), self.percent()) {
            (true, Some(percent)) => shown(percent, 1, "+") + " %",
            (true, None) => "another, may have been zero".to_owned(),
            (false, _) => "no difference beyond chance".to_owned(),
        };
        let (name, unit) = (self.parameter.name, self.unit(ratios));
        let [before, after] = [self.before, self.after].map(|one| shown(one.value, 3, ""));
        format!("  {name:6}{before:>11} → {after:>11} {unit:7}  {what}\n")
    }
}

/// A number as text, with `decimals` decimals, or with a power of ten in the place of many digits.
/// The text `plus` stands before a number that is not negative.
fn shown(value: f64, decimals: usize, plus: &str) -> String {
    let sign = if value < 0.0 { "−" } else { plus };
    let size = value.abs();
    match size < 1e6 && (size == 0.0 || size >= 1e-3) {
        true => format!("{sign}{size:.decimals$}"),
        false => format!("{sign}{size:.decimals$e}"),
    }
}

/// A line for each change below what it is of, and how many of them are more than chance.
fn words(changes: &[Change<'_>], ratios: bool) -> String {
    let of_one_line = changes.chunk_by(|one, next| std::ptr::eq(one.line, next.line));
    let lines = of_one_line.map(|changes| {
        let rows: String = changes.iter().map(|change| change.words(ratios)).collect();
        format!("{}\n{rows}", styled(&changes[0].line.to_string(), HEAD))
    });
    let lines: String = lines.collect();
    let significant = changes.iter().filter(|change| change.is_significant()).count();
    let all = changes.len();
    format!(
        "{lines}\n{significant} of {all} differ by more than chance: their intervals have nothing in \
         common\n"
    )
}

/// A line of comma-separated values for each change, and one of names before.
fn csv(changes: &[Change<'_>], ratios: bool) -> String {
    let words = ["layer", "carrier", "device", "parameter", "unit"].map(Column::text);
    let numbers = ["before", "after", "percent"].map(|name| Column::number(name, ""));
    let columns = words.into_iter().chain(numbers).chain([Column::text("significant")]);
    let table = columns.fold(Table::new("changes", ""), Table::column);
    let row = |change: &Change<'_>| {
        let [layer, carrier, device] = ["layer", "carrier", "device"]
            .map(|key| change.line.json()[key].as_str().unwrap_or_default());
        let words = [layer, carrier, device, change.parameter.name, change.unit(ratios)];
        let ends = |one: Estimate| Cell::from(Number::within(one.value, one.low, one.high));
        let numbers = [ends(change.before), ends(change.after), change.percent().into()];
        let significant = if change.is_significant() { "true" } else { "false" };
        words.map(Cell::from).into_iter().chain(numbers).chain([significant.into()])
    };
    changes.iter().fold(table, |table, change| table.row(row(change))).to_csv()
}
