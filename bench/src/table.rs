//! The one table: name, ours, baseline, ratio, goal, met.

use std::time::Duration;

use anyhow::Result;

/// One comparison.
pub(crate) struct Row {
    pub(crate) name: String,
    /// What one operation is, for the reader: `line`, `call`.
    pub(crate) unit: &'static str,
    /// Our time for one operation.
    pub(crate) ours: Nanos,
    /// Who we are compared with.
    pub(crate) baseline: &'static str,
    /// Its time for one operation.
    pub(crate) theirs: Nanos,
    pub(crate) goal: Goal,
}

/// A time with more than a nanosecond's precision, because that is what a line takes.
#[derive(Clone, Copy)]
pub(crate) struct Nanos(pub(crate) f64);

impl Nanos {
    /// The share of one operation in the time of many.
    pub(crate) fn each(time: Duration, operations: usize) -> Self {
        Self(time.as_secs_f64() * 1e9 / operations as f64)
    }
}

/// What the ratio of our time to the baseline's must be.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    /// At most this.
    AtMost(f64),
    /// At most so much more than the baseline, whatever that takes.
    MoreByAtMost(Duration),
    /// Shown, not promised.
    Shown,
}

impl Row {
    pub(crate) fn ratio(&self) -> f64 {
        self.ours.0 / self.theirs.0
    }

    pub(crate) fn is_met(&self) -> bool {
        match self.goal {
            Goal::AtMost(most) => self.ratio() <= most,
            Goal::MoreByAtMost(more) => self.ours.0 - self.theirs.0 <= more.as_secs_f64() * 1e9,
            Goal::Shown => true,
        }
    }
}

pub(crate) fn render(rows: &[Row]) -> String {
    let mut cells =
        vec![["name", "ours", "rate", "baseline", "theirs", "ratio", "goal", "met?"].map(str::to_owned)];
    cells.extend(rows.iter().map(|row| {
        let met = if row.is_met() { "yes" } else { "NO" };
        let (goal, met) = match row.goal {
            Goal::AtMost(most) => (format!("<= {most:.2}"), met),
            Goal::MoreByAtMost(more) => (format!("<= +{more:?}"), met),
            Goal::Shown => ("-".to_owned(), "-"),
        };
        [
            row.name.clone(),
            time(row.ours),
            format!("{}/s", count(1e9 / row.ours.0, row.unit)),
            row.baseline.to_owned(),
            time(row.theirs),
            format!("{:.2}", row.ratio()),
            goal,
            met.to_owned(),
        ]
    }));
    let widths: Vec<usize> =
        (0..8).map(|at| cells.iter().map(|row| row[at].len()).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for row in &cells {
        let line: Vec<String> = row
            .iter()
            .zip(&widths)
            .enumerate()
            // Names to the left, numbers to the right.
            .map(|(at, (cell, width))| match at {
                0 | 3 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            })
            .collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// One JSON object a line.
pub(crate) fn render_json(rows: &[Row]) -> Result<String> {
    let mut text = String::new();
    for row in rows {
        let (ratio_goal, more_goal) = match row.goal {
            Goal::AtMost(most) => (Some(most), None),
            Goal::MoreByAtMost(more) => (None, Some(more.as_nanos() as f64)),
            Goal::Shown => (None, None),
        };
        let object = serde_json::json!({
            "name": row.name,
            "unit": row.unit,
            "ours_ns": row.ours.0,
            "baseline": row.baseline,
            "theirs_ns": row.theirs.0,
            "ratio": row.ratio(),
            "goal_at_most": ratio_goal,
            "goal_more_by_at_most_ns": more_goal,
            "met": row.is_met(),
        });
        text.push_str(&serde_json::to_string(&object)?);
        text.push('\n');
    }
    Ok(text)
}

fn time(Nanos(nanos): Nanos) -> String {
    match nanos {
        ..1e3 => format!("{nanos:.1} ns"),
        ..1e6 => format!("{:.2} us", nanos / 1e3),
        ..1e9 => format!("{:.2} ms", nanos / 1e6),
        _ => format!("{:.2} s", nanos / 1e9),
    }
}

fn count(rate: f64, unit: &str) -> String {
    match rate {
        1e6.. => format!("{:.1} M {unit}", rate / 1e6),
        1e3.. => format!("{:.1} k {unit}", rate / 1e3),
        _ => format!("{rate:.1} {unit}"),
    }
}
