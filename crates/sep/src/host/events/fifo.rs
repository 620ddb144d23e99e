//! Several queues in one table, from the middle of which something can be removed at once.

use std::ops::{Index, IndexMut};

/// Where something is. It stays there until it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u32);

/// `N` queues.
#[derive(Debug)]
pub(super) struct Fifos<T, const N: usize> {
    cells: Vec<Cell<T>>,
    free: Vec<Place>,
    ends: [Option<Ends>; N],
}

#[derive(Debug)]
struct Cell<T> {
    value: Option<T>,
    before: Option<Place>,
    after: Option<Place>,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    first: Place,
    last: Place,
}

impl<T, const N: usize> Fifos<T, N> {
    pub(super) fn new() -> Self {
        Self { cells: Vec::new(), free: Vec::new(), ends: [None; N] }
    }

    /// How many are in all queues together.
    pub(super) fn len(&self) -> usize {
        self.cells.len() - self.free.len()
    }

    /// Adds to the end of a queue.
    ///
    /// # Panics
    /// When there are more than 2³² − 1 of them; the bounds of a queue are far below.
    pub(super) fn push(&mut self, queue: usize, value: T) -> Place {
        let before = self.ends[queue].map(|ends| ends.last);
        let cell = Cell { value: Some(value), before, after: None };
        let place = match self.free.pop() {
            Some(place) => {
                self.cells[place.0 as usize] = cell;
                place
            }
            None => {
                self.cells.push(cell);
                Place(u32::try_from(self.cells.len() - 1).unwrap_or_else(|_| panic!("a queue is bounded")))
            }
        };
        let first = match self.ends[queue] {
            Some(Ends { first, last }) => {
                self.cells[last.0 as usize].after = Some(place);
                first
            }
            None => place,
        };
        self.ends[queue] = Some(Ends { first, last: place });
        place
    }

    /// Removes from anywhere in a queue.
    ///
    /// # Panics
    /// When nothing of this queue is there.
    pub(super) fn remove(&mut self, queue: usize, place: Place) -> T {
        let cell = &mut self.cells[place.0 as usize];
        let (value, before, after) = (cell.value.take(), cell.before, cell.after);
        if let Some(before) = before {
            self.cells[before.0 as usize].after = after;
        }
        if let Some(after) = after {
            self.cells[after.0 as usize].before = before;
        }
        self.ends[queue] = self.ends[queue].and_then(|Ends { first, last }| {
            let first = if first == place { after } else { Some(first) };
            let last = if last == place { before } else { Some(last) };
            Some(Ends { first: first?, last: last? })
        });
        self.free.push(place);
        if self.free.len() == self.cells.len() {
            // After a burst nothing is held back.
            self.cells.clear();
            self.free.clear();
            self.cells.shrink_to(SMALL);
            self.free.shrink_to(SMALL);
        }
        value.unwrap_or_else(|| panic!("a place is used once"))
    }

    /// The oldest of a queue.
    pub(super) fn first(&self, queue: usize) -> Option<Place> {
        self.ends[queue].map(|ends| ends.first)
    }

    /// All of a queue, oldest first.
    pub(super) fn places(&self, queue: usize) -> impl Iterator<Item = Place> + '_ {
        std::iter::successors(self.first(queue), |place| self.cells[place.0 as usize].after)
    }
}

/// What is kept of the table when everything is gone.
const SMALL: usize = 16;

impl<T, const N: usize> Index<Place> for Fifos<T, N> {
    type Output = T;

    fn index(&self, place: Place) -> &T {
        self.cells[place.0 as usize]
            .value
            .as_ref()
            .unwrap_or_else(|| panic!("a place is used while it is taken"))
    }
}

impl<T, const N: usize> IndexMut<Place> for Fifos<T, N> {
    fn index_mut(&mut self, place: Place) -> &mut T {
        self.cells[place.0 as usize]
            .value
            .as_mut()
            .unwrap_or_else(|| panic!("a place is used while it is taken"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_as_good_as_plain_queues(steps in proptest::collection::vec((0usize..2, 0usize..3, 0usize..8), 0..200)) {
            let mut fifos: Fifos<usize, 2> = Fifos::new();
            let mut model: [VecDeque<(Place, usize)>; 2] = Default::default();
            for (number, (queue, what, at)) in steps.into_iter().enumerate() {
                if what > 0 {
                    let place = fifos.push(queue, number);
                    model[queue].push_back((place, number));
                } else if at < model[queue].len() {
                    let (place, value) = model[queue].remove(at).expect("it is in the model");
                    prop_assert_eq!(fifos.remove(queue, place), value);
                }
                prop_assert_eq!(fifos.len(), model[0].len() + model[1].len());
                for (queue, expected) in model.iter().enumerate() {
                    let values: Vec<usize> = fifos.places(queue).map(|place| fifos[place]).collect();
                    prop_assert_eq!(values, expected.iter().map(|(_, value)| *value).collect::<Vec<_>>());
                    prop_assert_eq!(fifos.first(queue), expected.front().map(|(place, _)| *place));
                }
            }
        }
    }
}
