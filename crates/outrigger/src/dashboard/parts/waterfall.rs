//! A run against the clock: one bar for everything that took time, one below the other, on a common axis. Pure.
//!
//! A run that waited for a person for a day and computed for a second would be a single long bar. So the axis is not the
//! clock: a stretch in which nothing but people could do anything takes at most a part of the width, and is marked as a break.

/// What took time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Span {
    /// Tells it from all others of the run.
    pub(in super::super) key: String,
    pub(in super::super) kind: SpanKind,
    pub(in super::super) label: String,
    /// What it is about, in a few words.
    pub(in super::super) gist: String,
    /// Milliseconds since 1970.
    pub(in super::super) from: i64,
    /// None while it goes on.
    pub(in super::super) to: Option<i64>,
    pub(in super::super) mark: Mark,
    pub(in super::super) parts: Vec<Part>,
    /// The record that it began with, if a fork can begin there.
    pub(in super::super) fork_at: Option<u64>,
}

/// Something that a row unfolds to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Part {
    pub(in super::super) name: &'static str,
    pub(in super::super) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum SpanKind {
    Attempt,
    Model,
    Tool,
    Approval,
    Suspension,
    /// What somebody said or did.
    Person,
    /// A file or a command, of which only the moment is known.
    Deed,
    Trouble,
}

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Mark {
    Open,
    Good,
    Bad,
    /// It neither succeeded nor failed.
    Ended,
}

/// Where everything is, on an axis from 0 to [`WIDTH`].
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct Picture {
    /// One for each span, in the same order.
    pub(in super::super) bars: Vec<Bar>,
    pub(in super::super) breaks: Vec<Break>,
    /// How long all of it took, in milliseconds.
    pub(in super::super) total_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct Bar {
    pub(in super::super) x: f64,
    pub(in super::super) width: f64,
}

/// A stretch that takes less room than it took time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct Break {
    pub(in super::super) x: f64,
    pub(in super::super) width: f64,
    pub(in super::super) length_ms: u64,
}

/// The width of the axis.
pub(in super::super) const WIDTH: f64 = 1000.0;
/// The narrowest bar that can be seen and hit.
const NARROWEST: f64 = 4.0;
/// A stretch of waiting takes at most this part of the time in which something was done.
const WAITING_SHARE: i64 = 4;

/// Lays spans out. `now` is where those end that go on.
pub(in super::super) fn picture(spans: &[Span], now: i64) -> Picture {
    let end = |span: &Span| span.to.unwrap_or(now).max(span.from);
    let mut bounds: Vec<i64> = spans.iter().flat_map(|span| [span.from, end(span)]).collect();
    bounds.sort_unstable();
    bounds.dedup();
    let (Some(first), Some(last)) = (bounds.first().copied(), bounds.last().copied()) else {
        return Picture { bars: Vec::new(), breaks: Vec::new(), total_ms: 0 };
    };
    let stretches: Vec<Stretch> = bounds
        .windows(2)
        .map(|pair| Stretch {
            from: pair[0],
            length: pair[1] - pair[0],
            waits: waits(spans, pair[0], pair[1], &end),
        })
        .collect();
    let busy: i64 = stretches.iter().filter(|stretch| !stretch.waits).map(|stretch| stretch.length).sum();
    let most = if busy == 0 { i64::MAX } else { (busy / WAITING_SHARE).max(1) };
    let room = |stretch: &Stretch| if stretch.waits { stretch.length.min(most) } else { stretch.length };
    let whole = stretches.iter().map(room).sum::<i64>().max(1) as f64;
    // Where each bound is on the axis.
    let mut places = vec![(first, 0.0)];
    let mut breaks = Vec::new();
    let mut at = 0.0;
    for stretch in &stretches {
        let width = room(stretch) as f64 / whole * WIDTH;
        if stretch.length > room(stretch) {
            breaks.push(Break { x: at, width, length_ms: stretch.length.unsigned_abs() });
        }
        at += width;
        places.push((stretch.from + stretch.length, at));
    }
    let place = |moment: i64| {
        let found = places.binary_search_by_key(&moment, |(bound, _)| *bound);
        found.map_or(0.0, |index| places[index].1)
    };
    let bars = spans.iter().map(|span| {
        let (from, to) = (place(span.from), place(end(span)));
        let width = (to - from).max(NARROWEST);
        Bar { x: from.min(WIDTH - width).max(0.0), width: width.min(WIDTH) }
    });
    Picture { bars: bars.collect(), breaks: join(breaks), total_ms: (last - first).unsigned_abs() }
}

struct Stretch {
    from: i64,
    length: i64,
    waits: bool,
}

/// Whether nothing but people could do anything between these moments: somebody is asked, a script stands still and no tool
/// is called for it, or there is no attempt.
fn waits(spans: &[Span], from: i64, to: i64, end: &impl Fn(&Span) -> i64) -> bool {
    let (mut works, mut attempted, mut suspended) = (false, false, false);
    for span in spans.iter().filter(|span| span.from <= from && end(span) >= to) {
        match span.kind {
            SpanKind::Approval => return true,
            SpanKind::Model | SpanKind::Tool => works = true,
            SpanKind::Attempt => attempted = true,
            SpanKind::Suspension => suspended = true,
            SpanKind::Person | SpanKind::Deed | SpanKind::Trouble => {}
        }
    }
    !works && (suspended || !attempted)
}

/// Breaks that touch are one.
fn join(breaks: Vec<Break>) -> Vec<Break> {
    let mut joined: Vec<Break> = Vec::new();
    for next in breaks {
        match joined.last_mut() {
            Some(last) if (last.x + last.width - next.x).abs() < 0.001 => {
                last.width += next.width;
                last.length_ms += next.length_ms;
            }
            Some(_) | None => joined.push(next),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(kind: SpanKind, from: i64, to: Option<i64>) -> Span {
        let (key, label, gist) = (String::new(), String::new(), String::new());
        Span { key, kind, label, gist, from, to, mark: Mark::Good, parts: Vec::new(), fork_at: None }
    }

    fn bars(spans: &[Span], now: i64) -> Vec<(f64, f64)> {
        picture(spans, now).bars.iter().map(|bar| (bar.x.round(), bar.width.round())).collect()
    }

    #[test]
    fn bars_stand_where_and_as_long_as_things_took() {
        let spans = [
            span(SpanKind::Attempt, 1000, Some(2000)),
            span(SpanKind::Model, 1000, Some(1250)),
            span(SpanKind::Tool, 1250, Some(2000)),
        ];
        assert_eq!(bars(&spans, 9999), [(0.0, 1000.0), (0.0, 250.0), (250.0, 750.0)]);
        assert_eq!(picture(&spans, 9999).total_ms, 1000);
        assert_eq!(picture(&spans, 9999).breaks, []);
    }

    #[test]
    fn a_day_of_waiting_takes_a_part_of_the_width_and_is_marked() {
        let day = 86_400_000;
        let spans = [
            span(SpanKind::Attempt, 0, Some(day + 1000)),
            span(SpanKind::Tool, 0, Some(500)),
            span(SpanKind::Approval, 500, Some(day + 500)),
            span(SpanKind::Tool, day + 500, Some(day + 1000)),
        ];
        let picture = picture(&spans, 0);
        let rounded: Vec<(f64, f64)> =
            picture.bars.iter().map(|bar| (bar.x.round(), bar.width.round())).collect();
        assert_eq!(rounded, [(0.0, 1000.0), (0.0, 400.0), (400.0, 200.0), (600.0, 400.0)]);
        let breaks: Vec<(f64, u64)> =
            picture.breaks.iter().map(|one| (one.x.round(), one.length_ms)).collect();
        assert_eq!(breaks, [(400.0, 86_400_000)]);
        assert_eq!(picture.total_ms, 86_401_000);
    }

    #[test]
    fn a_script_that_computes_works_and_one_that_stands_still_waits() {
        let spans = |standing: i64| {
            let still = span(SpanKind::Suspension, 400, Some(400 + standing));
            [span(SpanKind::Attempt, 0, Some(800 + standing)), still]
        };
        assert_eq!(bars(&spans(100), 0), [(0.0, 1000.0), (444.0, 111.0)]);
        assert_eq!(picture(&spans(100), 0).breaks, []);
        assert_eq!(bars(&spans(1_000_000), 0), [(0.0, 1000.0), (400.0, 200.0)]);
        assert_eq!(picture(&spans(1_000_000), 0).breaks.len(), 1);
    }

    #[test]
    fn what_goes_on_ends_now_and_what_took_no_time_can_still_be_seen() {
        let spans = [span(SpanKind::Tool, 0, None), span(SpanKind::Deed, 1000, Some(1000))];
        assert_eq!(bars(&spans, 1000), [(0.0, 1000.0), (996.0, 4.0)]);
    }

    #[test]
    fn clocks_that_go_backwards_and_empty_runs_are_no_trouble() {
        assert_eq!(picture(&[], 5).bars, []);
        assert_eq!(bars(&[span(SpanKind::Tool, 50, Some(10))], 0), [(0.0, 4.0)]);
        assert_eq!(bars(&[span(SpanKind::Tool, 50, None)], 10), [(0.0, 4.0)]);
        assert_eq!(bars(&[span(SpanKind::Approval, 0, Some(10))], 0), [(0.0, 1000.0)]);
    }
}
