//! The strings of a class as alternatives, longest first. Emoji properties have thousands of them.

use super::{Parser, Result};
use crate::regex::ast::{Direction, Node, NodeId, Wanted};
use crate::regex::set::CodeSet;

/// So many alternatives are tried one after the other; more are split into runs of this length.
const RUN: usize = 32;

/// A place in the tree of strings.
struct Place {
    /// The character that leads here.
    point: u32,
    ends_string: bool,
    children: Vec<usize>,
}

impl Parser<'_> {
    /// One alternative for each string.
    pub(super) fn string_list(&mut self, mut strings: Vec<Vec<u32>>) -> Result<Vec<NodeId>> {
        strings.sort_by_key(|string| std::cmp::Reverse(string.len()));
        let mut ways = Vec::with_capacity(strings.len());
        for string in &strings {
            let mut terms = Vec::with_capacity(string.len());
            for &point in string {
                terms.push(self.char_node(point)?);
            }
            ways.push(self.ast.concat(&terms));
        }
        Ok(ways)
    }

    /// Strings with common beginnings share them. They come sorted and none is empty.
    pub(super) fn string_tree(&mut self, strings: &[Vec<u32>]) -> Result<NodeId> {
        let mut places = vec![Place { point: 0, ends_string: false, children: Vec::new() }];
        for string in strings {
            let mut at = 0;
            for &point in string {
                // Sorted input: a common beginning is always on the latest branch.
                let latest =
                    places[at].children.last().copied().filter(|&child| places[child].point == point);
                at = match latest {
                    Some(child) => child,
                    None => {
                        let child = places.len();
                        places.push(Place { point, ends_string: false, children: Vec::new() });
                        places[at].children.push(child);
                        child
                    }
                };
            }
            places[at].ends_string = true;
        }
        // Children have higher numbers than their parents.
        let mut nodes = vec![NodeId(0); places.len()];
        for (at, place) in places.iter().enumerate().rev() {
            let mut ways = Vec::with_capacity(place.children.len() + 1);
            for run in place.children.chunks(RUN) {
                let run_nodes: Vec<NodeId> = run.iter().map(|&child| nodes[child]).collect();
                let way = self.ast.alternatives(&run_nodes);
                if place.children.len() <= RUN {
                    ways.push(way);
                    continue;
                }
                let starts = run.iter().map(|&child| (places[child].point, places[child].point));
                let starts = self.set_node(CodeSet::from_ranges(starts.collect()))?;
                let (direction, wanted) = (Direction::Forward, Wanted::Match);
                let look = self.ast.add(Node::Look { body: starts, direction, wanted });
                ways.push(self.ast.concat(&[look, way]));
            }
            if place.ends_string {
                ways.push(self.ast.add(Node::Empty));
            }
            let rest = self.ast.alternatives(&ways);
            nodes[at] = if at == 0 {
                rest
            } else {
                let here = self.char_node(place.point)?;
                match self.ast.node(rest) {
                    Node::Empty => here,
                    _ => self.ast.concat(&[here, rest]),
                }
            };
        }
        Ok(nodes[0])
    }
}
