//! Points in time: how long ago in words, the whole date for whoever points at it. The script keeps the words right.

use maud::{Markup, html};

use super::say::span;
use crate::runs::state::Moment;

/// How long ago it was.
pub(in super::super) fn ago(then: Moment, now: Moment) -> Markup {
    html! { time datetime=(then) title=(absolute(then)) data-ago { (ago_words(then, now)) } }
}

/// How long something has been going on that goes on still.
pub(in super::super) fn ticking(since: Moment, now: Moment) -> Markup {
    html! { time.num datetime=(since) title={ "since " (absolute(since)) } data-since { (span(now.since(since))) } }
}

/// How long there is until then.
pub(in super::super) fn deadline(then: Moment, now: Moment) -> Markup {
    let left = then.since(now);
    let words = if left.is_zero() { "any moment".to_owned() } else { format!("in {}", span(left)) };
    html! { time datetime=(then) title=(absolute(then)) data-until { (words) } }
}

/// `2026-11-16 13:28:05 UTC`.
pub(in super::super) fn absolute(moment: Moment) -> String {
    let text = moment.to_string();
    let (date, rest) = text.split_once('T').unwrap_or((&text, ""));
    let clock: String = rest.chars().take_while(|c| *c != '.' && *c != 'Z').collect();
    format!("{date} {clock} UTC")
}

fn ago_words(then: Moment, now: Moment) -> String {
    let seconds = now.since(then).as_secs();
    match seconds {
        0..5 => "just now".to_owned(),
        5..60 => format!("{seconds}s ago"),
        60..3600 => format!("{}m ago", seconds / 60),
        3600..86_400 => format!("{}h ago", seconds / 3600),
        86_400..2_592_000 => format!("{}d ago", seconds / 86_400),
        _ => absolute(then).chars().take(10).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_abp::protocol::Timestamp;

    #[test]
    fn times_are_relative_and_the_date_is_one_gesture_away() {
        let at = |text: &str| Moment(Timestamp::parse(text).unwrap());
        let now = at("2026-11-16T13:00:00Z");
        let words = |text: &str| ago_words(at(text), now);
        assert_eq!(words("2026-11-16T12:59:58Z"), "just now");
        assert_eq!(words("2026-11-16T12:58:00Z"), "2m ago");
        assert_eq!(words("2026-11-14T12:58:00Z"), "2d ago");
        assert_eq!(words("2026-01-14T12:58:00Z"), "2026-01-14");
        assert_eq!(words("2027-01-14T12:58:00Z"), "just now");
        let shown = ago(at("2026-11-16T12:57:59.880Z"), now).into_string();
        assert_eq!(
            shown,
            r#"<time datetime="2026-11-16T12:57:59.880Z" title="2026-11-16 12:57:59 UTC" data-ago>2m ago</time>"#
        );
    }
}
