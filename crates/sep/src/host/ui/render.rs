//! The slots as plain text, for terminals. Everything that came from an extension is cleaned once more on its way.

use std::fmt::Write as _;

use super::node::Node;
use super::panel::{InputKind, MAX_INPUT_TEXT};
use super::snapshot::{PanelState, PanelView, UiSnapshot};
use super::text::clean;
use crate::protocol::Slot;

/// All panels as text, slot by slot.
#[must_use]
pub fn render_text(snapshot: &UiSnapshot) -> String {
    let mut out = String::new();
    for slot in Slot::ALL {
        let panels = snapshot.slots.of(*slot);
        if panels.is_empty() {
            continue;
        }
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(out, "{slot}");
        for panel in panels {
            render_panel(&mut out, panel);
        }
    }
    if out.is_empty() {
        out.push_str("no panels\n");
    }
    out
}

fn render_panel(out: &mut String, panel: &PanelView) {
    let state = match (&panel.state, &panel.reason) {
        (PanelState::Active, _) => String::new(),
        (state, None) => format!(" ({state})"),
        (state, Some(reason)) => format!(" ({state}: {})", clean(reason, 160)),
    };
    let title = clean(&panel.title, 80);
    let _ = writeln!(out, "  {title}{state}");
    let name = clean(&panel.extension_name, 80);
    let _ = writeln!(out, "    {} · {name} [{}]", panel.panel_key, panel.trust_level);
    for line in panel.description.iter().flat_map(|text| text.lines()) {
        let _ = writeln!(out, "    {}", clean(line, 256));
    }
    render_nodes(out, panel.content.as_deref().unwrap_or_default(), 4);
    for action in &panel.actions {
        let input = match &action.input {
            None => String::new(),
            Some(input) => match input.kind {
                InputKind::None => String::new(),
                InputKind::Text => format!(" <text, at most {}>", input.max_length.unwrap_or(MAX_INPUT_TEXT)),
                InputKind::Select => {
                    let options: Vec<String> =
                        input.options.iter().flatten().map(|option| clean(option, 80)).collect();
                    format!(" <{}>", options.join("|"))
                }
            },
        };
        let _ = writeln!(out, "    > {}{input}  {}", action.id, clean(&action.label, 40));
    }
}

fn render_nodes(out: &mut String, nodes: &[Node], indent: usize) {
    let margin = " ".repeat(indent);
    for node in nodes {
        match node {
            Node::Text { text, tone: _ } => {
                for line in text.lines() {
                    let _ = writeln!(out, "{margin}{}", clean(line, 1024));
                }
            }
            Node::Kv { items } => {
                let width = items.iter().map(|row| row.key.chars().count()).max().unwrap_or(0).min(32);
                for row in items {
                    let key = clean(&row.key, 1024);
                    let _ = writeln!(out, "{margin}{key:<width$}  {}", clean(&row.value, 1024));
                }
            }
            Node::Badge { text, tone } => {
                let tone = tone.map(|tone| format!(" {tone}")).unwrap_or_default();
                let _ = writeln!(out, "{margin}[{}]{tone}", clean(text, 1024));
            }
            Node::List { items } => render_nodes(out, items, indent + 2),
            Node::Progress { value, max, label } => {
                let percent = u64::from(*value) * 100 / u64::from((*max).max(1));
                let filled = usize::try_from(percent / 5).unwrap_or(0).min(20);
                let bar = format!("{}{}", "#".repeat(filled), ".".repeat(20 - filled));
                let label = label.as_deref().map(|label| format!(" {}", clean(label, 1024)));
                let _ = writeln!(out, "{margin}[{bar}] {percent}%{}", label.unwrap_or_default());
            }
            Node::Separator {} => {
                let _ = writeln!(out, "{margin}----");
            }
        }
    }
}
