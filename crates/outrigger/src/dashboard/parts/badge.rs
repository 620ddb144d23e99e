//! Words in a coloured box: the phase of a run, the health of a backend. Always picture and word, never colour alone.

use maud::{Markup, html};

use super::icon::{Icon, icon};
use crate::runs::{Health, Phase};

/// The phase of a run.
pub(in super::super) fn phase_badge(phase: Phase) -> Markup {
    html! { span.badge.(phase_tone(phase)) { (icon(phase_icon(phase))) span { (phase.word()) } } }
}

/// The phase as a picture with a name, where there is no room for a word.
pub(in super::super) fn phase_dot(phase: Phase) -> Markup {
    html! { span.dot.(phase_tone(phase)) role="img" aria-label=(phase.word()) title=(phase.word()) { (icon(phase_icon(phase))) } }
}

/// How a backend is.
pub(in super::super) fn health_badge(health: &Health) -> Markup {
    match health {
        Health::Ready => html! { span.badge.good { (icon(Icon::Check)) span { "ready" } } },
        Health::Missing { .. } => html! { span.badge.quiet { (icon(Icon::Stop)) span { "not here" } } },
        Health::Failing { .. } => html! { span.badge.bad { (icon(Icon::Alert)) span { "failing" } } },
    }
}

/// Any word, in the tone that its sender meant.
pub(in super::super) fn tone_badge(tone: &'static str, word: &str) -> Markup {
    let picture = match tone {
        "good" => Icon::Check,
        "bad" => Icon::Cross,
        "warn" => Icon::Alert,
        "busy" => Icon::Spinner,
        _ => Icon::Stop,
    };
    html! { span.badge.(tone) { (icon(picture)) span { (word) } } }
}

pub(in super::super) fn phase_tone(phase: Phase) -> &'static str {
    match phase {
        Phase::Queued | Phase::Cancelled => "quiet",
        Phase::Running => "busy",
        Phase::Waiting => "warn",
        Phase::Completed => "good",
        Phase::Failed => "bad",
    }
}

fn phase_icon(phase: Phase) -> Icon {
    match phase {
        Phase::Queued => Icon::Clock,
        Phase::Running => Icon::Spinner,
        Phase::Waiting => Icon::Hand,
        Phase::Completed => Icon::Check,
        Phase::Failed => Icon::Cross,
        Phase::Cancelled => Icon::Stop,
    }
}
