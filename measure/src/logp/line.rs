//! What a measurement has found: a line of JSON, as `--json` prints it and `--compare` reads it.

use std::fmt;

use doorbell_logp::Estimate;
use serde_json::Value;

/// A parameter of LogP, as it is named in tables and in JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// The name in tables.
    pub name: &'static str,
    /// The unit of a value in tables.
    pub unit: &'static str,
    key: &'static str,
    /// Whether JSON has twice the value of the parameter.
    half: bool,
}

const fn parameter(name: &'static str, key: &'static str) -> Parameter {
    Parameter { name, unit: "µs", key, half: false }
}

/// For how long a processor is busy with a message that it sends.
pub const SEND_OVERHEAD: Parameter = parameter("o_s", "o_s_us");
/// For how long a processor is busy with a message that it receives.
pub const RECEIVE_OVERHEAD: Parameter = parameter("o_r", "o_r_us");
/// The latency of the network between two processors.
pub const LATENCY: Parameter = parameter("L", "l_us");
/// The time between two short messages of a steady stream.
pub const GAP: Parameter = parameter("g", "g_us");
/// Half of the round trip.
pub const HALF_ROUND_TRIP: Parameter = Parameter { half: true, ..parameter("RTT/2", "rtt_us") };
/// The time for each byte of a long message.
pub const GAP_PER_BYTE: Parameter =
    Parameter { unit: "ns/B", ..parameter("G", "g_big_ns_per_byte") };

/// The parameters that are measured, in the order of tables.
pub const PARAMETERS: [Parameter; 6] =
    [SEND_OVERHEAD, RECEIVE_OVERHEAD, LATENCY, GAP, HALF_ROUND_TRIP, GAP_PER_BYTE];

/// Up to which share of the gap the processor's time for a message is the same as the gap.
const SAME: f64 = 0.05;

/// The curves of a line.
const CURVES: [&str; 3] = ["bursts", "steady", "long"];

/// A point of a curve; times in microseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// The number of requests in a row.
    pub burst: f64,
    /// The intended length of the computation behind each request, in gaps.
    pub gaps: u64,
    /// How long the computation behind each request takes.
    pub computation_us: f64,
    /// The payload of a request, in bytes.
    pub bytes: f64,
    /// The time that a request took, the computation included.
    pub us: f64,
}

/// The result for a layer on a device: a line of JSON.
#[derive(Clone, PartialEq, Debug)]
pub struct Line(Value);

impl Line {
    /// A line from JSON; `None` if this is no line of LogP's parameters.
    pub fn from_json(json: Value) -> Option<Self> {
        let named = json["layer"].is_string() && json["device"].is_string();
        let line = Self(json);
        (named && PARAMETERS.iter().any(|one| line.get(*one).is_some())).then_some(line)
    }

    /// Joins the lines of several runs of the same layer, carrier and device: means of the
    /// parameters with the intervals that the differences of the runs allow, and medians of the
    /// curves. A single line stays as it is. `None` without any line.
    pub fn of_runs(lines: &[Self]) -> Option<Self> {
        let mut json = lines.first()?.0.clone();
        json["runs"] = lines.len().into();
        if lines.len() == 1 {
            return Some(Self(json));
        }
        let sum = |key: &str| lines.iter().filter_map(|line| line.0[key].as_u64()).sum::<u64>();
        json["rounds"] = sum("rounds").into();
        for Parameter { key, .. } in PARAMETERS {
            let values: Vec<_> = lines.iter().filter_map(|line| line.0[key].as_f64()).collect();
            let Some(Estimate { value, low, high }) = Estimate::of_runs(&values) else { continue };
            json[key] = value.into();
            json[format!("{key}_low")] = low.into();
            json[format!("{key}_high")] = high.into();
        }
        let [busy @ .., gap] =
            ["o_s_us", "o_r_us", "g_us"].map(|key| json[key].as_f64().unwrap_or_default());
        let busy: f64 = busy.iter().sum();
        json["g_is_of_the_processor"] = ((gap - busy).abs() <= SAME * gap).into();
        for curve in CURVES {
            let curves: Vec<_> = lines.iter().filter_map(|line| line.0[curve].as_array()).collect();
            let points = json[curve].as_array_mut().into_iter().flatten();
            for (number, point) in points.enumerate() {
                for time in ["us", "computation_us"] {
                    let times =
                        curves.iter().filter_map(|points| points.get(number)?[time].as_f64());
                    point[time] = Estimate::of(times.collect()).map(|times| times.value).into();
                }
            }
        }
        Some(Self(json))
    }

    /// Whether the line is of a single run, whose rounds alone its intervals come from.
    pub fn is_of_one_run(&self) -> bool {
        self.0["runs"] == 1
    }

    /// The line as JSON.
    pub fn json(&self) -> &Value {
        &self.0
    }

    fn text(&self, key: &str) -> &str {
        self.0[key].as_str().unwrap_or_default()
    }

    /// Whether the interval of a parameter is wider than a fifth of its value and than 10 ns.
    pub fn is_wide(&self, parameter: Parameter) -> bool {
        self.get(parameter).is_some_and(|estimate| {
            let size = estimate.value.abs();
            let most = if parameter.unit == "µs" { 0.010 } else { 0.010 * size };
            estimate.width() > (0.2 * size).max(most)
        })
    }

    /// The parameters whose intervals are wider than a fifth of their values and than 10 ns, with
    /// what the line is of; `None` if there are none.
    pub fn too_wide(&self) -> Option<String> {
        let wide: Vec<_> =
            PARAMETERS.iter().filter(|one| self.is_wide(**one)).map(|one| one.name).collect();
        (!wide.is_empty()).then(|| format!("{} of {self}", wide.join(", ")))
    }

    /// Whether the line is of Split-C's accesses to memory that the other process has mapped.
    pub fn is_of_mapped_memory(&self) -> bool {
        self.text("carrier") == "mapped"
    }

    /// The device that the layer was measured on.
    pub fn device(&self) -> &str {
        self.text("device")
    }

    /// The layer, for Split-C with its carrier.
    pub fn layer(&self) -> String {
        let layer = match self.text("layer") {
            "verbs" => "verbs",
            "am" => "Active Messages",
            "splitc" => "Split-C",
            other => other,
        };
        match self.0["carrier"].as_str() {
            Some(carrier) => format!("{layer}, {carrier}"),
            None => layer.to_owned(),
        }
    }

    /// The layer, by the name that it has in JSON.
    pub fn layer_key(&self) -> &str {
        self.text("layer")
    }

    /// The number of the colour that the layer has in all figures.
    pub fn colour(&self) -> usize {
        match (self.text("layer"), self.text("carrier")) {
            ("verbs", _) => 0,
            ("am", _) => 1,
            (_, "mapped") => 2,
            (_, "one-sided") => 3,
            (_, "messages") => 4,
            _ => 5,
        }
    }

    /// Whether the line is of a layer, by the name that the layer has in JSON.
    pub fn is_of(&self, layer: &str) -> bool {
        self.text("layer") == layer
    }

    /// Whether two lines are of the same layer, carrier and device.
    pub fn is_like(&self, other: &Self) -> bool {
        ["layer", "carrier", "device"].iter().all(|key| self.0[*key] == other.0[*key])
    }

    /// A parameter and its interval, in the parameter's unit.
    pub fn get(&self, parameter: Parameter) -> Option<Estimate> {
        let get = |end: &str| {
            let value = self.0[format!("{}{end}", parameter.key)].as_f64()?;
            Some(if parameter.half { value / 2.0 } else { value })
        };
        Some(Estimate { value: get("")?, low: get("_low")?, high: get("_high")? })
    }

    /// Whether the processor's time for a message is the gap, rather than the network's.
    pub fn gap_is_of_the_processor(&self) -> bool {
        self.0["g_is_of_the_processor"] == true
    }

    /// The points of a curve: `bursts`, `steady` or `long`.
    pub fn curve(&self, name: &str) -> Vec<Point> {
        let point = |json: &Value| {
            Some(Point {
                burst: json["burst"].as_f64()?,
                gaps: json["gaps"].as_u64()?,
                computation_us: json["computation_us"].as_f64()?,
                bytes: json["bytes"].as_f64()?,
                us: json["us"].as_f64()?,
            })
        };
        self.0[name].as_array().into_iter().flatten().filter_map(point).collect()
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} over {}", self.layer(), self.device())
    }
}
