//! The one table: name, ours, baseline, ratio, goal, met.

use std::time::Duration;

use anyhow::Result;

/// One comparison.
pub(crate) struct Row {
    pub(crate) name: String,
    /// What one operation is, for the reader: `line`, `call`.
    pub(crate) unit: &'static str,
    /// Our time for one operation, or why there is none.
    pub(crate) ours: Result<Nanos, Missing>,
    /// Who we are compared with.
    pub(crate) baseline: &'static str,
    /// Its time for one operation.
    pub(crate) theirs: Nanos,
    pub(crate) goal: Goal,
}

/// Why there is nothing to compare: we cannot do it yet, or do it wrong. Shown, and never a goal that is met.
#[derive(Clone, Debug)]
pub(crate) struct Missing(pub(crate) String);

/// A time with more than a nanosecond's precision, because that is what a line takes.
#[derive(Clone, Copy, Debug)]
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
    /// At most this, whatever the baseline takes.
    Within(Duration),
    /// Shown, not promised.
    Shown,
}

impl Row {
    pub(crate) fn ratio(&self) -> Option<f64> {
        self.ours.as_ref().ok().map(|ours| ours.0 / self.theirs.0)
    }

    pub(crate) fn is_met(&self) -> bool {
        match (self.goal, &self.ours) {
            (Goal::Shown, _) => true,
            (_, Err(_)) => false,
            (Goal::AtMost(most), Ok(ours)) => ours.0 / self.theirs.0 <= most,
            (Goal::MoreByAtMost(more), Ok(ours)) => ours.0 - self.theirs.0 <= more.as_secs_f64() * 1e9,
            (Goal::Within(most), Ok(ours)) => ours.0 <= most.as_secs_f64() * 1e9,
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
            Goal::Within(most) => (format!("<= {most:?}"), met),
            Goal::Shown => ("-".to_owned(), "-"),
        };
        [
            row.name.clone(),
            row.ours.as_ref().map_or("missing".to_owned(), |&ours| time(ours)),
            row.ours
                .as_ref()
                .map_or_else(|why| why.0.clone(), |ours| format!("{}/s", count(1e9 / ours.0, row.unit))),
            row.baseline.to_owned(),
            time(row.theirs),
            row.ratio().map_or("-".to_owned(), |ratio| format!("{ratio:.2}")),
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
        let (ratio_goal, more_goal, within) = match row.goal {
            Goal::AtMost(most) => (Some(most), None, None),
            Goal::MoreByAtMost(more) => (None, Some(more.as_nanos() as f64), None),
            Goal::Within(most) => (None, None, Some(most.as_nanos() as f64)),
            Goal::Shown => (None, None, None),
        };
        let object = serde_json::json!({
            "name": row.name,
            "unit": row.unit,
            "ours_ns": row.ours.as_ref().ok().map(|ours| ours.0),
            "missing": row.ours.as_ref().err().map(|why| why.0.as_str()),
            "baseline": row.baseline,
            "theirs_ns": row.theirs.0,
            "ratio": row.ratio(),
            "goal_at_most": ratio_goal,
            "goal_more_by_at_most_ns": more_goal,
            "goal_within_ns": within,
            "met": row.is_met(),
        });
        text.push_str(&serde_json::to_string(&object)?);
        text.push('\n');
    }
    Ok(text)
}

fn time(Nanos(nanos): Nanos) -> String {
    match nanos {
        _ if nanos.is_nan() => "-".to_owned(),
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
