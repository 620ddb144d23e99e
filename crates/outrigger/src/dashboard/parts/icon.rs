//! Small pictures, drawn in the colour of the text beside them. They never say anything that a word does not say too.

use maud::{Markup, PreEscaped, html};

/// Which picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Icon {
    Runs,
    Playground,
    Agents,
    Sidecars,
    Extensions,
    Help,
    Clock,
    Spinner,
    Hand,
    Check,
    Cross,
    Stop,
    Plus,
    Search,
    Theme,
    Right,
    Down,
    Tool,
    Model,
    Pause,
    Flag,
    Alert,
    Chat,
    File,
    Shield,
    Fork,
    Replay,
    Play,
    Download,
    Trash,
    Logo,
    Edit,
    Terminal,
}

/// Draws it. It is decoration: whoever cannot see misses nothing.
pub(in super::super) fn icon(which: Icon) -> Markup {
    // Our own constants, so that nothing in them has to be escaped.
    let spin = (which == Icon::Spinner).then_some("spin");
    html! {
        svg.icon.(spin.unwrap_or("still")) viewBox="0 0 16 16" width="16" height="16" fill="none" stroke="currentColor"
            stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true" focusable="false" {
            (PreEscaped(shape(which)))
        }
    }
}

fn shape(which: Icon) -> &'static str {
    match which {
        Icon::Runs => r#"<path d="M2.5 4h11M2.5 8h7M2.5 12h9"/>"#,
        Icon::Playground => r#"<path d="m5 5-3 3 3 3M11 5l3 3-3 3M9 3 7 13"/>"#,
        Icon::Agents => {
            r#"<rect x="3" y="5.5" width="10" height="7.5" rx="2"/><path d="M8 5.5V3M6 9v.5M10 9v.5M1.5 9v1.5M14.5 9v1.5"/><circle cx="8" cy="2.4" r=".6"/>"#
        }
        Icon::Sidecars => {
            r#"<rect x="2" y="3" width="12" height="4" rx="1.2"/><rect x="2" y="9" width="12" height="4" rx="1.2"/><path d="M4.5 5h.01M4.5 11h.01M8 5h3.5M8 11h3.5"/>"#
        }
        Icon::Extensions => {
            r#"<path d="M6.5 3.2a1.4 1.4 0 0 1 2.8 0V4.5h3v3h-1.2a1.4 1.4 0 0 0 0 2.8h1.2v3H9.5v-1.2a1.4 1.4 0 0 0-2.8 0v1.2h-3v-9h2.8z"/>"#
        }
        Icon::Help => {
            r#"<circle cx="8" cy="8" r="6"/><path d="M6.3 6.2a1.8 1.8 0 1 1 2.5 1.7c-.5.2-.8.6-.8 1.1M8 11.3v.01"/>"#
        }
        Icon::Clock => r#"<circle cx="8" cy="8" r="5.5"/><path d="M8 5v3.2l2 1.3"/>"#,
        Icon::Spinner => r#"<path d="M8 2.5A5.5 5.5 0 1 1 2.5 8"/>"#,
        Icon::Hand => {
            r#"<path d="M5 8.5V4.2a1 1 0 0 1 2 0V7.5M7 7V3a1 1 0 0 1 2 0v4M9 7.2V3.8a1 1 0 0 1 2 0V9c0 3-1.5 4.5-3.6 4.5-1.7 0-2.6-.7-3.5-2.2L2.7 9.2c-.5-.9.7-1.6 1.3-.9L5 9.5"/>"#
        }
        Icon::Check => r#"<circle cx="8" cy="8" r="5.5"/><path d="m5.6 8.2 1.7 1.7 3.2-3.6"/>"#,
        Icon::Cross => r#"<circle cx="8" cy="8" r="5.5"/><path d="m6 6 4 4M10 6l-4 4"/>"#,
        Icon::Stop => r#"<circle cx="8" cy="8" r="5.5"/><path d="M4.3 11.7l7.4-7.4"/>"#,
        Icon::Plus => r#"<path d="M8 3v10M3 8h10"/>"#,
        Icon::Search => r#"<circle cx="7" cy="7" r="4.5"/><path d="m10.5 10.5 3 3"/>"#,
        Icon::Theme => r#"<path d="M13 9.5A5.5 5.5 0 0 1 6.5 3 5.5 5.5 0 1 0 13 9.5z"/>"#,
        Icon::Right => r#"<path d="m6 3.5 4.5 4.5L6 12.5"/>"#,
        Icon::Down => r#"<path d="m3.5 6 4.5 4.5L12.5 6"/>"#,
        Icon::Tool => {
            r#"<path d="M9.8 5.5a3 3 0 0 1 3.9-2.9l-1.9 1.9.2 1.5 1.5.2 1.3-1.3M9.8 5.5 3 12.3a1.2 1.2 0 0 0 1.7 1.7l6.2-6.2a3 3 0 0 0 3.9-2.7"/>"#
        }
        Icon::Model => {
            r#"<path d="M8 2.5 9.4 6l3.6 1.5-3.6 1.4L8 12.5 6.6 8.9 3 7.5 6.6 6z"/><path d="M13 11.5v2M12 12.5h2"/>"#
        }
        Icon::Pause => r#"<path d="M5.5 3.5v9M10.5 3.5v9"/>"#,
        Icon::Flag => r#"<path d="M3.5 14V2.5h8l-1.5 3 1.5 3h-8"/>"#,
        Icon::Alert => r#"<path d="M8 2.5 14.2 13H1.8zM8 6.5v3M8 11.4v.01"/>"#,
        Icon::Chat => r#"<path d="M2.5 3.5h11v7.5H7L4 13.5V11H2.5z"/>"#,
        Icon::File => r#"<path d="M9 2.5H4v11h8v-8zM9 2.5v3h3"/>"#,
        Icon::Shield => r#"<path d="M8 2 13 4v4c0 3-2 5-5 6-3-1-5-3-5-6V4zM5.8 8l1.6 1.6 2.9-3.2"/>"#,
        Icon::Fork => {
            r#"<circle cx="4.5" cy="3.5" r="1.5"/><circle cx="11.5" cy="3.5" r="1.5"/><circle cx="8" cy="12.5" r="1.5"/><path d="M4.5 5v1.5c0 1 .7 1.5 1.5 1.5h4c.8 0 1.5-.5 1.5-1.5V5M8 8v3"/>"#
        }
        Icon::Replay => r#"<path d="M3 8a5 5 0 1 0 1.6-3.7M3 3v2.5h2.5"/>"#,
        Icon::Play => r#"<path d="M5 3.5v9l7.5-4.5z"/>"#,
        Icon::Download => r#"<path d="M8 2.5v7.5M5 7.5l3 3 3-3M3 13.5h10"/>"#,
        Icon::Trash => r#"<path d="M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.6 9h5.8l.6-9"/>"#,
        Icon::Logo => {
            r#"<path d="M1.5 6.5h9.5c2 0 3-1 3.5-2.5M1.5 6.5c.5 2 2 3 4 3h4c1.8 0 3.2-.8 4-2.5M2.5 13.5h10M5 9.5v4M10 9.5v4"/>"#
        }
        Icon::Edit => r#"<path d="M3 13h2.5l7-7L10 3.5l-7 7z"/>"#,
        Icon::Terminal => r#"<path d="m3 4.5 3.5 3.5L3 11.5M8 12h5"/>"#,
    }
}
