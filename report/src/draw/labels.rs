//! Room for labels among lines and other labels.

use super::canvas::{Area, Place};

/// The lines and labels that a further label must not cover.
#[derive(Default)]
pub struct Obstacles {
    lines: Vec<(Place, Place)>,
    labels: Vec<Area>,
}

impl Obstacles {
    /// Adds a line through places.
    pub fn line(&mut self, places: &[Place]) {
        self.lines.extend(places.windows(2).map(|ends| (ends[0], ends[1])));
        // A line of one point is covered where the point is.
        self.lines.extend(places.first().map(|place| (*place, *place)));
    }

    /// Adds the area of a label.
    pub fn label(&mut self, area: Area) {
        self.labels.push(area);
    }

    /// Whether a label in the area would cover no other label.
    pub fn leave_labels(&self, area: &Area) -> bool {
        !self.labels.iter().any(|label| label.meets(area))
    }

    /// Whether a label in the area would cover nothing.
    pub fn leave(&self, area: &Area) -> bool {
        self.leave_labels(area) && !self.lines.iter().any(|(from, to)| crosses(*from, *to, area))
    }
}

/// Whether a straight line has a point within an area (Liang and Barsky's clipping).
fn crosses(from: Place, to: Place, area: &Area) -> bool {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let edges = [
        (-dx, from.0 - area.left),
        (dx, area.right - from.0),
        (-dy, from.1 - area.top),
        (dy, area.bottom - from.1),
    ];
    let (mut enters, mut leaves) = (0.0_f64, 1.0_f64);
    for (speed, distance) in edges {
        if speed == 0.0 {
            if distance < 0.0 {
                return false;
            }
        } else if speed < 0.0 {
            enters = enters.max(distance / speed);
        } else {
            leaves = leaves.min(distance / speed);
        }
    }
    enters <= leaves
}

/// Heights near those that are wanted, with at least `gap` between any two. Heights that are too
/// close together are spread around their mean.
pub fn spread(wanted: &[f64], gap: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|one, other| wanted[*one].total_cmp(&wanted[*other]));
    // Neighbours that touch: the sum of the heights that they want, and how many they are.
    let mut groups: Vec<(f64, usize)> = Vec::new();
    let half = |count: usize| (count - 1) as f64 / 2.0 * gap;
    for index in &order {
        let mut group = (wanted[*index], 1);
        while let Some((sum, count)) = groups.last().copied() {
            let below = group.0 / group.1 as f64 - half(group.1);
            if sum / count as f64 + half(count) + gap <= below {
                break;
            }
            groups.pop();
            group = (sum + group.0, count + group.1);
        }
        groups.push(group);
    }
    let heights = groups.iter().flat_map(|(sum, count)| {
        let first = sum / *count as f64 - half(*count);
        (0..*count).map(move |place| first + place as f64 * gap)
    });
    let mut placed = vec![0.0; wanted.len()];
    for (index, height) in order.iter().zip(heights) {
        placed[*index] = height;
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_that_are_too_close_are_spread_and_others_stay() {
        assert_eq!(spread(&[100.0, 10.0, 102.0], 15.0), [93.5, 10.0, 108.5]);
        assert_eq!(spread(&[], 15.0), [0.0; 0]);
        assert_eq!(spread(&[5.0, 5.0, 5.0], 10.0), [-5.0, 5.0, 15.0]);
    }

    #[test]
    fn a_label_may_stand_where_no_line_and_no_label_is() {
        let mut obstacles = Obstacles::default();
        obstacles.line(&[(0.0, 0.0), (100.0, 100.0)]);
        obstacles.label(Area { left: 60.0, top: 0.0, right: 90.0, bottom: 15.0 });
        let area = |left, top| Area { left, top, right: left + 20.0, bottom: top + 10.0 };
        assert!(obstacles.leave(&area(30.0, 5.0)));
        assert!(!obstacles.leave(&area(45.0, 45.0)), "the line passes through");
        assert!(!obstacles.leave(&area(50.0, 5.0)), "the label is there");
    }
}
