//! A line over the last minutes, as wide as a word.

use maud::{Markup, html};

const WIDTH: f64 = 96.0;
const HEIGHT: f64 = 24.0;

/// Draws values, oldest first; `name` says in words what they are.
pub(in super::super) fn spark(values: &[u64], name: &str) -> Markup {
    let most = values.iter().copied().max().unwrap_or(0).max(1);
    let points = points(values, most);
    html! {
        svg.spark viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" role="img" aria-label=(name) {
            title { (name) }
            @if values.len() > 1 {
                polygon points={ "0," (HEIGHT) " " (points) " " (WIDTH) "," (HEIGHT) } {}
                polyline points=(points) fill="none" {}
            }
        }
    }
}

fn points(values: &[u64], most: u64) -> String {
    let last = values.len().saturating_sub(1).max(1) as f64;
    let point = |(at, value): (usize, &u64)| {
        let x = at as f64 / last * WIDTH;
        let y = HEIGHT - 2.0 - *value as f64 / most as f64 * (HEIGHT - 4.0);
        format!("{x:.1},{y:.1}")
    };
    values.iter().enumerate().map(point).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_runs_from_the_left_edge_to_the_right_and_nothing_is_drawn_of_nothing() {
        assert_eq!(points(&[0, 10], 10), "0.0,22.0 96.0,2.0");
        assert!(!spark(&[], "memory").into_string().contains("polyline"));
        assert!(!spark(&[7], "memory").into_string().contains("polyline"));
        assert!(spark(&[0, 0], "memory").into_string().contains("polyline"));
    }
}
