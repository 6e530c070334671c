//! What was measured before parameters were made of it.

/// The time that a request took, by how requests were sent.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Point {
    /// How many requests there were one behind the other: those of a short burst, or of a piece at a
    /// steady rate.
    pub burst: usize,
    /// For how many nanoseconds the processor computed behind each request.
    pub computation: f64,
    /// How many bytes of payload a request had.
    pub bytes: usize,
    /// How many nanoseconds a request took, the computation included.
    pub nanos: f64,
}

/// The points of all rounds of one kind.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Curve(pub Vec<Point>);

impl Curve {
    /// The points with the same burst, length of payload, and place in the order of computations, as
    /// one each, whose time is the median.
    #[must_use]
    pub fn medians(&self) -> Vec<Point> {
        let mut kinds: Vec<(usize, usize, Vec<Point>)> = Vec::new();
        for point in &self.0 {
            let near = |one: f64, other: f64| (one - other).abs() <= 0.25 * one.max(other);
            let same = kinds.iter_mut().find(|(burst, bytes, points)| {
                (*burst, *bytes) == (point.burst, point.bytes)
                    && near(points[0].computation, point.computation)
            });
            match same {
                Some((.., points)) => points.push(*point),
                None => kinds.push((point.burst, point.bytes, vec![*point])),
            }
        }
        let median = |points: &[Point], of: fn(&Point) -> f64| {
            crate::estimate::median(points.iter().map(of).collect())
        };
        let kinds = kinds.into_iter().map(|(burst, bytes, points)| Point {
            burst,
            bytes,
            computation: median(&points, |point| point.computation),
            nanos: median(&points, |point| point.nanos),
        });
        kinds.collect()
    }
}
