//! Two results beside each other: what has changed, and what may be chance.

use std::fs;

use anyhow::{Context, bail};
use doorbell_logp::Estimate;
use serde_json::{Value, json};

use super::line::{Line, PARAMETERS, Parameter};
use crate::out;

/// How results are compared.
pub struct Comparison {
    /// Compare, rather than the parameters, by how much they are above those of verbs on the same
    /// device: a ratio hardly depends on how fast a machine is.
    pub ratios: bool,
    /// From how many per cent on a parameter that has become greater, and not by chance, is a
    /// failure.
    pub fail_above: Option<f64>,
}

/// A parameter in both results.
struct Change<'a> {
    line: &'a Line,
    parameter: Parameter,
    before: Estimate,
    after: Estimate,
}

impl Change<'_> {
    /// By how many per cent the parameter is greater now.
    fn percent(&self) -> f64 {
        100.0 * (self.after.value - self.before.value) / self.before.value.abs()
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
        let place =
            || format!("line {} of {path}: it is what --json prints that is compared", number + 1);
        let json: Value = serde_json::from_str(text).with_context(place)?;
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
pub fn run(before: &[Line], after: &[Line], how: &Comparison, json: bool) -> anyhow::Result<()> {
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
    for change in &changes {
        let text = if json { change.json().to_string() } else { change.words(how.ratios) };
        out::print(&format!("{text}\n"))?;
    }
    let significant = changes.iter().filter(|change| change.is_significant()).count();
    if !json {
        let all = changes.len();
        out::print(&format!(
            "\n{significant} of {all} differ by more than chance: their intervals have nothing in \
             common\n"
        ))?;
    }
    if [before, after].iter().any(|lines| lines.iter().any(Line::is_of_one_run)) {
        eprintln!(
            "doorbell: a result of one run (--quick, or interrupted) has intervals that can't tell \
             how far another run may be: differences may be chance all the same"
        );
    }
    let missing = before.iter().filter(|line| !after.iter().any(|other| other.is_like(line)));
    let missing: Vec<_> = missing.map(ToString::to_string).collect();
    let missing = missing.join(", ");
    if !missing.is_empty() {
        eprintln!("doorbell: only the first result has {missing}");
    }
    let Some(most) = how.fail_above else { return Ok(()) };
    if !missing.is_empty() {
        bail!("the second result lacks what the first has: {missing}");
    }
    let worse = |change: &&Change<'_>| change.is_significant() && change.percent() > most;
    let worse: Vec<_> = changes.iter().filter(worse).map(Change::name).collect();
    if !worse.is_empty() {
        bail!("greater by more than {most} %, and not by chance: {}", worse.join(", "));
    }
    Ok(())
}

impl Comparison {
    /// All that is compared of some lines.
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
    let positive = above.low > 0.0 && floor.low > 0.0;
    (!line.is_of("verbs") && positive).then(|| Estimate {
        value: above.value / floor.value,
        low: above.low / floor.high,
        high: above.high / floor.low,
    })
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
            "layer": layer, "carrier": carrier, "device": device, "parameter": parameter.name,
            "before": ends(before), "after": ends(after),
            "percent": self.percent(), "significant": self.is_significant(),
        })
    }

    fn words(&self, ratios: bool) -> String {
        let Self { parameter, before, after, .. } = self;
        let unit = if ratios { "× verbs" } else { parameter.unit };
        let what = match self.is_significant() {
            true => format!("{:+.1} %", self.percent()),
            false => "no difference that could be told from chance".to_owned(),
        };
        format!("{:44} {:9.3} → {:9.3} {unit:7}  {what}", self.name(), before.value, after.value)
    }
}
