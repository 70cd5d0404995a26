//! Where the names in a plot have room: beside marks and other names, not on them.

/// The size of the plot on a phone in pixels, where names have the least room.
const WIDTH: f64 = 290.0;
const HEIGHT: f64 = 340.0;

/// Half the width of a mark, and half that of a digit or letter.
const MARK: f64 = 6.0;
const LETTER: f64 = 3.5;

/// Names this far apart do not touch.
const LINE: f64 = 11.0;

/// A place for a name: a position in percent, and pixels from there to the middle of its baseline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) dx: f64,
    pub(super) dy: f64,
}

/// What is taken in a plot: the middle and half the width of each thing, in pixels.
pub(super) struct Room {
    taken: Vec<(f64, f64, f64)>,
}

impl Room {
    /// A plot with marks at these positions in percent.
    pub(super) fn beside(marks: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let pixels = |(x, y): (f64, f64)| (x / 100.0 * WIDTH, y / 100.0 * HEIGHT, MARK);
        Self {
            taken: marks.into_iter().map(pixels).collect(),
        }
    }

    /// Takes the first place where a name fits into the plot and touches nothing.
    pub(super) fn take(&mut self, name: &str, places: &[Place]) -> Option<Place> {
        let half = width(name) / 2.0;
        for place in places {
            let x = place.x / 100.0 * WIDTH + place.dx;
            // The baseline of a letter is 4 pixels below its middle.
            let y = place.y / 100.0 * HEIGHT + place.dy - 4.0;
            let inside = (half..=WIDTH - half).contains(&x) && (6.0..=HEIGHT - 6.0).contains(&y);
            let touches = |(other_x, other_y, other_half): &(f64, f64, f64)| {
                (x - other_x).abs() < half + other_half && (y - other_y).abs() < LINE
            };
            if inside && !self.taken.iter().any(touches) {
                self.taken.push((x, y, half));
                return Some(*place);
            }
        }
        None
    }
}

/// About how wide a name is, in pixels.
pub(super) fn width(name: &str) -> f64 {
    name.chars().map(|_| 2.0 * LETTER).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_touch_neither_marks_nor_each_other_nor_the_edge() {
        let mut room = Room::beside([(50.0, 50.0)]);
        let at = |x: f64, y: f64| Place { x, y, dx: 0.0, dy: 4.0 };
        assert!(room.take("name", &[at(50.0, 50.0)]).is_none(), "the mark is there");
        assert!(
            room.take("name", &[at(1.0, 50.0)]).is_none(),
            "it would hang over the edge"
        );
        let found = room
            .take("name", &[at(50.0, 50.0), at(50.0, 60.0)])
            .expect("there is room below");
        assert!((found.y - 60.0).abs() < 1e-9);
        assert!(room.take("name", &[at(52.0, 61.0)]).is_none(), "a name is there now");
    }
}
