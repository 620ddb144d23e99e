//! Figures that stand alone: what one operation takes as its user sees it, what it costs the child, and how large it is.
//!
//! A [`crate::table::Row`] promises a ratio. Some promises are plain numbers ("ready within 2 ms"); they are shown here, each
//! with the floor that was measured in the same run, so that a reader can tell a slow machine from slow code.

use std::time::Duration;

use anyhow::Result;

use crate::table::Missing;

/// How far a figure may be from its goal before `--check` fails: machines are noisy.
const TOLERANCE: f64 = 1.25;

/// One line of the second table.
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    /// What was measured, or why nothing was.
    pub(crate) measured: Result<Measured, Missing>,
    /// What the same takes without us: its name and its time.
    pub(crate) floor: Option<(&'static str, Spread)>,
    pub(crate) goal: Target,
    /// What else the reader may want to know.
    pub(crate) note: String,
}

/// What there is to say about one operation.
#[derive(Clone, Copy)]
pub(crate) enum Measured {
    Time {
        /// As the driver sees it.
        wall: Spread,
        /// The processor time of the child, where it was asked for.
        processor: Option<Spread>,
    },
    Size(Bytes),
}

/// The best and the median of many.
#[derive(Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) best: Duration,
    pub(crate) median: Duration,
}

#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub(crate) struct Bytes(pub(crate) u64);

/// What a figure should be.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    /// The median, as the driver sees it, is at most this.
    Wall(Duration),
    /// The median of the child's processor time is at most this.
    Processor(Duration),
    /// It is at most so large.
    Size(Bytes),
    /// Shown, not promised.
    Shown,
}

/// How a figure stands to its goal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Met,
    /// Missed by less than the tolerance.
    Nearly,
    Missed,
    NotPromised,
}

impl Spread {
    /// Of these times, if there are any.
    pub(crate) fn of(mut times: Vec<Duration>) -> Option<Self> {
        times.sort_unstable();
        Some(Self { best: *times.first()?, median: *times.get(times.len() / 2)? })
    }
}

impl Figure {
    pub(crate) fn verdict(&self) -> Verdict {
        let Some(ratio) = self.ratio() else {
            return match self.goal {
                Target::Shown => Verdict::NotPromised,
                Target::Wall(_) | Target::Processor(_) | Target::Size(_) => Verdict::Missed,
            };
        };
        match ratio {
            ..=1.0 => Verdict::Met,
            ..=TOLERANCE => Verdict::Nearly,
            _ => Verdict::Missed,
        }
    }

    /// What was measured in times of the goal, if there are both.
    fn ratio(&self) -> Option<f64> {
        let (got, most) = match (self.goal, self.measured.as_ref().ok()?) {
            (Target::Wall(most), Measured::Time { wall, .. }) => {
                (wall.median.as_secs_f64(), most.as_secs_f64())
            }
            (Target::Processor(most), Measured::Time { processor, .. }) => {
                (processor.as_ref()?.median.as_secs_f64(), most.as_secs_f64())
            }
            (Target::Size(most), Measured::Size(size)) => (size.0 as f64, most.0 as f64),
            (Target::Wall(_) | Target::Processor(_), Measured::Size(_))
            | (Target::Size(_), Measured::Time { .. })
            | (Target::Shown, _) => return None,
        };
        Some(got / most)
    }
}

pub(crate) fn render(figures: &[Figure]) -> String {
    const HEAD: [&str; 9] =
        ["name", "median", "best", "child's processor", "floor", "its median", "goal", "met?", "note"];
    let mut cells = vec![HEAD.map(str::to_owned)];
    cells.extend(figures.iter().map(line));
    let widths: Vec<usize> = (0..HEAD.len())
        .map(|at| cells.iter().map(|line| line[at].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for line in &cells {
        let padded: Vec<String> = line
            .iter()
            .zip(&widths)
            .enumerate()
            // Words to the left, numbers to the right.
            .map(|(at, (cell, width))| match at {
                0 | 4 | 7 | 8 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            })
            .collect();
        text.push_str(padded.join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn line(figure: &Figure) -> [String; 9] {
    let none = || "-".to_owned();
    let (median, best, processor) = match &figure.measured {
        Ok(Measured::Time { wall, processor }) => {
            (time(wall.median), time(wall.best), processor.map_or_else(none, |spread| time(spread.median)))
        }
        Ok(Measured::Size(bytes)) => (size(*bytes), none(), none()),
        Err(_) => ("missing".to_owned(), none(), none()),
    };
    let (floor, floor_time) = figure
        .floor
        .map_or_else(|| (none(), none()), |(name, spread)| (name.to_owned(), time(spread.median)));
    let goal = match figure.goal {
        Target::Wall(most) => format!("<= {}", time(most)),
        Target::Processor(most) => format!("<= {} of processor", time(most)),
        Target::Size(most) => format!("<= {}", size(most)),
        Target::Shown => none(),
    };
    let met = match figure.verdict() {
        Verdict::Met => "yes",
        Verdict::Nearly => "nearly",
        Verdict::Missed => "NO",
        Verdict::NotPromised => "-",
    };
    let note = match &figure.measured {
        Ok(_) => figure.note.clone(),
        Err(why) => why.0.clone(),
    };
    [figure.name.to_owned(), median, best, processor, floor, floor_time, goal, met.to_owned(), note]
}

/// One JSON object a line.
pub(crate) fn render_json(figures: &[Figure]) -> Result<String> {
    let nanos = |duration: Duration| duration.as_nanos() as f64;
    let mut text = String::new();
    for figure in figures {
        let (wall, processor, bytes) = match figure.measured {
            Ok(Measured::Time { wall, processor }) => (Some(wall), processor, None),
            Ok(Measured::Size(bytes)) => (None, None, Some(bytes.0)),
            Err(_) => (None, None, None),
        };
        let (goal_wall, goal_processor, goal_bytes) = match figure.goal {
            Target::Wall(most) => (Some(nanos(most)), None, None),
            Target::Processor(most) => (None, Some(nanos(most)), None),
            Target::Size(most) => (None, None, Some(most.0)),
            Target::Shown => (None, None, None),
        };
        let object = serde_json::json!({
            "name": figure.name,
            "median_ns": wall.map(|spread| nanos(spread.median)),
            "best_ns": wall.map(|spread| nanos(spread.best)),
            "processor_median_ns": processor.map(|spread| nanos(spread.median)),
            "processor_best_ns": processor.map(|spread| nanos(spread.best)),
            "bytes": bytes,
            "missing": figure.measured.as_ref().err().map(|why| why.0.as_str()),
            "floor": figure.floor.map(|(name, _)| name),
            "floor_median_ns": figure.floor.map(|(_, spread)| nanos(spread.median)),
            "goal_wall_ns": goal_wall,
            "goal_processor_ns": goal_processor,
            "goal_bytes": goal_bytes,
            "met": match figure.verdict() {
                Verdict::Met => Some(true),
                Verdict::Nearly | Verdict::Missed => Some(false),
                Verdict::NotPromised => None,
            },
            "note": figure.note,
        });
        text.push_str(&serde_json::to_string(&object)?);
        text.push('\n');
    }
    Ok(text)
}

fn time(duration: Duration) -> String {
    match duration.as_nanos() {
        ..1_000_000 => format!("{:.1} us", duration.as_secs_f64() * 1e6),
        1_000_000..1_000_000_000 => format!("{:.2} ms", duration.as_secs_f64() * 1e3),
        _ => format!("{:.2} s", duration.as_secs_f64()),
    }
}

pub(crate) fn size(Bytes(bytes): Bytes) -> String {
    match bytes {
        ..10_000 => format!("{bytes} B"),
        10_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.2} MB", bytes as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready_in(micros: u64, goal: Target) -> Figure {
        let at = Duration::from_micros(micros);
        let wall = Spread { best: at / 2, median: at };
        let measured = Ok(Measured::Time { wall, processor: None });
        Figure { name: "ready", measured, floor: None, goal, note: String::new() }
    }

    #[test]
    fn a_goal_is_met_nearly_met_or_missed_by_the_median() {
        let goal = Target::Wall(Duration::from_micros(100));
        assert_eq!(ready_in(100, goal).verdict(), Verdict::Met);
        assert_eq!(ready_in(101, goal).verdict(), Verdict::Nearly);
        assert_eq!(ready_in(125, goal).verdict(), Verdict::Nearly);
        assert_eq!(ready_in(126, goal).verdict(), Verdict::Missed);
        assert_eq!(ready_in(1_000_000, Target::Shown).verdict(), Verdict::NotPromised);
    }

    #[test]
    fn what_could_not_be_measured_does_not_meet_its_goal() {
        let missing = |goal| Figure { measured: Err(Missing("no such program".into())), ..ready_in(1, goal) };
        assert_eq!(missing(Target::Wall(Duration::from_secs(1))).verdict(), Verdict::Missed);
        assert_eq!(missing(Target::Shown).verdict(), Verdict::NotPromised);
        // A goal for something else than what was measured is no promise that was kept.
        assert_eq!(ready_in(1, Target::Processor(Duration::from_secs(1))).verdict(), Verdict::Missed);
        assert_eq!(ready_in(1, Target::Size(Bytes(1))).verdict(), Verdict::Missed);
    }

    #[test]
    fn the_table_puts_goals_beside_figures() {
        let table = render(&[ready_in(1500, Target::Wall(Duration::from_millis(2)))]);
        let line = table.lines().nth(1).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words, ["ready", "1.50", "ms", "750.0", "us", "-", "-", "-", "<=", "2.00", "ms", "yes"]);
    }
}
