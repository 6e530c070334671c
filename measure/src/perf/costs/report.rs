//! The parts of an exchange's time as programs read them, and as people do.

use std::fmt::Write;

use doorbell_logp::Estimate;
use doorbell_splitc::Carrier;
use serde_json::{Value, json};

use crate::perf::Plan;
use crate::perf::figures::Figures;
use crate::perf::figures::breakdown;
use crate::perf::figures::breakdown::Breakdown;
use crate::perf::plan::test::{Costs, Test};

/// The name of each part.
const PARTS: [&str; breakdown::PARTS] =
    ["verbs and the NIC", "event notification", "flow control", "semantics", "handlers"];

/// The published shares in per cent, from tables 3 and 4 of A. Begel, P. Buonadonna, D. E. Culler
/// and D. Gay, "An Analysis of VI Architecture Primitives in Support of Parallel and Distributed
/// Communication" (2001). Handlers are part of semantics there.
const OF_AMVIA: [&str; breakdown::PARTS] = ["32.5", "44.2", "14.4", "8.9", ""];
const OF_SPLITC_VIA: [&str; breakdown::PARTS] = ["36.1", "46.9", "11.6", "5.4", ""];

/// Where the published shares are from.
const PUBLISHED: &str = "Published: A. Begel, P. Buonadonna, D. E. Culler, D. Gay (2001), tables 3 \
                         and 4; there, handlers are a part of semantics.";
/// A sentence on where a layer above Active Messages stands among the parts.
const OF_LAYERS_ABOVE: &str = "The layer above Active Messages is a part of semantics where it \
                               sends and takes, and of handlers where messages come.";

/// The fields that programs read, each with its name: estimates with their intervals beside them.
pub fn fields(plan: &Plan, figures: &Figures, found: &Breakdown) -> Vec<(&'static str, Value)> {
    let carrier = plan.carrier.map(|carrier| carrier.to_string());
    let mut fields = vec![
        ("test", json!(plan.test.name())),
        ("device", json!(figures.device)),
        ("carrier", json!(carrier)),
        ("rounds", json!(figures.iters)),
        ("exchanges", json!(found.exchanges)),
    ];
    let [base, notification, flow_control, semantics, handlers] = found.parts;
    let estimates = [
        (["total_ns", "total_ns_low", "total_ns_high"], found.total),
        (["base_ns", "base_ns_low", "base_ns_high"], base),
        (["notification_ns", "notification_ns_low", "notification_ns_high"], notification),
        (["flow_control_ns", "flow_control_ns_low", "flow_control_ns_high"], flow_control),
        (["semantics_ns", "semantics_ns_low", "semantics_ns_high"], semantics),
        (["handlers_ns", "handlers_ns_low", "handlers_ns_high"], handlers),
        (["subtracted_ns", "subtracted_ns_low", "subtracted_ns_high"], found.subtracted),
        (
            ["unwatched_total_ns", "unwatched_total_ns_low", "unwatched_total_ns_high"],
            found.unwatched,
        ),
        (
            ["uncounted_total_ns", "uncounted_total_ns_low", "uncounted_total_ns_high"],
            found.uncounted,
        ),
    ];
    for (names, Estimate { value, low, high }) in estimates {
        fields.extend(names.into_iter().zip([value, low, high].map(|nanos| json!(nanos))));
    }
    fields
}

/// A table of the parts, beside those that were published.
pub fn words(plan: &Plan, figures: &Figures, found: &Breakdown) -> String {
    let of_amvia = Some(("AMVIA, %", OF_AMVIA));
    let of_splitc_via = Some(("Split-C/VIA, %", OF_SPLITC_VIA));
    let (what, published) = match (plan.test, plan.carrier) {
        (Test::Costs(Costs::Am), _) => ("a request of two words and its reply", of_amvia),
        (Test::Costs(Costs::Tags), _) => ("a tagged message of 16 bytes there and back", None),
        (Test::Costs(Costs::Rpc), _) => ("a call with a word, answered by another", None),
        (_, Some(Carrier::OneSided)) => ("a get of a word by a one-sided read", of_splitc_via),
        _ => ("a get of a word by messages", of_splitc_via),
    };
    let (heading, shares) = published.unwrap_or(("", [""; breakdown::PARTS]));
    let device = figures.device.unwrap_or_default();
    let mut text = format!(
        "{} over {device}: {what}, both ends on one thread; {} rounds of {}, all checked\n\
         {:<20}{:>8}{:>18}{:>8}{:>16}\n",
        plan.test.name(),
        figures.iters,
        found.exchanges,
        "",
        "ns",
        "95 of 100",
        "%",
        heading
    );
    let mut row = |name: &str, estimate: Estimate, published: &str| {
        let share = whole(1000.0 * estimate.value / found.total.value) as f64 / 10.0;
        let Estimate { value, low, high } = estimate;
        let interval = format!("{} to {}", whole(low), whole(high));
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{name:<20}{:>8}{interval:>18}{:>8.1}{published:>16}",
            whole(value),
            share
        );
    };
    for ((name, part), published) in PARTS.into_iter().zip(found.parts).zip(shares) {
        row(name, part, published);
    }
    row("all of it", found.total, "");
    row("without spans", found.uncounted, "");
    let _ = writeln!(
        text,
        "\nReading the clock took {} ns more, which are subtracted. \"Without spans\" is the same \
         exchange by the code that programs run: how near \"all of it\" comes shows how little \
         measuring disturbs.\n{}",
        whole(found.subtracted.value),
        if published.is_some() { PUBLISHED } else { OF_LAYERS_ABOVE }
    );
    let lines: Vec<_> = text.lines().map(str::trim_end).collect();
    lines.join("\n") + "\n"
}

/// A number without fractions, and without a sign if that leaves zero.
fn whole(number: f64) -> i64 {
    number.round() as i64
}
