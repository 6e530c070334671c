//! The measured points from which the parameters are computed.

/// The measured time of a request, with the way in which the requests were sent.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Point {
    /// The number of requests in a row: those of a short burst, or of a piece at a steady rate.
    pub burst: usize,
    /// The intended length of the computation behind each request, in gaps; 0 without a
    /// computation.
    pub gaps: u32,
    /// The nanoseconds for which the processor computed behind each request.
    pub computation: f64,
    /// The payload of a request, in bytes.
    pub bytes: usize,
    /// The nanoseconds that a request took, the computation included.
    pub nanos: f64,
}

/// The points of all rounds of one kind.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Curve(pub Vec<Point>);

impl Curve {
    /// The points of all rounds as a single curve: points with the same burst, length of payload,
    /// and number of gaps in a computation become one point, with the median of their times.
    #[must_use]
    pub fn medians(&self) -> Vec<Point> {
        let mut kinds: Vec<Vec<Point>> = Vec::new();
        let key = |point: &Point| (point.burst, point.gaps, point.bytes);
        for point in &self.0 {
            match kinds.iter_mut().find(|points| key(&points[0]) == key(point)) {
                Some(points) => points.push(*point),
                None => kinds.push(vec![*point]),
            }
        }
        let median = |points: &[Point], of: fn(&Point) -> f64| {
            crate::estimate::median(points.iter().map(of).collect())
        };
        let kinds = kinds.into_iter().map(|points| Point {
            computation: median(&points, |point| point.computation),
            nanos: median(&points, |point| point.nanos),
            ..points[0]
        });
        kinds.collect()
    }
}
