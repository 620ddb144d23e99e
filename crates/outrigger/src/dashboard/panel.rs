//! The panel of an extension: a small tree of plain parts, and its actions as forms.

use maud::{Markup, html};
use outrigger_sep::host::ui::{Action, ActionStyle, InputKind, Node, PanelState, PanelView, Tone};

use super::form::encode;
use super::parts::tone_badge;

/// Draws a panel.
pub(super) fn panel(view: &PanelView, back: &str) -> Markup {
    let usable = matches!(view.state, PanelState::Active | PanelState::Dormant);
    let key = view.panel_key.to_string();
    html! {
        article.card.panel data-key=(key) aria-label={ (view.title) " of " (view.extension_name) } {
            header {
                h3 { (view.title) }
                span.grow {}
                (tone_badge(state_tone(view.state), view.state.as_str()))
            }
            p.sub { a href={ "/extensions/" (encode(view.extension_id.as_str())) } { (view.extension_name) } " · " (view.trust_level.as_str().replace('_', " ")) }
            @if let Some(reason) = &view.reason { p.why { (reason) } }
            @if let Some(description) = &view.description { p { (description) } }
            @if let Some(content) = &view.content { div.nodes { @for node in content { (draw_node(node)) } } }
            @if !view.actions.is_empty() {
                div.panel-actions { @for action in &view.actions { (form(view, action, usable, back)) } }
            }
        }
    }
}

fn form(view: &PanelView, action: &Action, usable: bool, back: &str) -> Markup {
    let style = match action.style {
        Some(ActionStyle::Primary) => "primary",
        Some(ActionStyle::Danger) => "danger",
        Some(ActionStyle::Secondary) | None => "plain-button",
    };
    let input = action.input.as_ref();
    let id = format!("{}-{}", view.panel_key.panel(), action.id);
    html! {
        form.row method="post" action={ "/extensions/" (encode(view.extension_id.as_str())) "/call" } data-live-form data-confirm=[action.confirm.as_deref()] {
            input type="hidden" name="back" value=(back);
            input type="hidden" name="panel" value=(view.panel_key);
            input type="hidden" name="action" value=(action.id);
            @match input.map(|input| input.kind) {
                Some(InputKind::Text) => {
                    label.grow { span.sub { (input.and_then(|input| input.label.as_deref()).unwrap_or(&action.label)) }
                        input type="text" id=(id) name="input" required maxlength=[input.and_then(|input| input.max_length)]; }
                }
                Some(InputKind::Select) => {
                    label.grow { span.sub { (input.and_then(|input| input.label.as_deref()).unwrap_or(&action.label)) }
                        select id=(id) name="input" { @for option in input.and_then(|input| input.options.as_deref()).unwrap_or_default() { option { (option) } } } }
                }
                Some(InputKind::None) | None => {}
            }
            button.(style) disabled[!usable] { (action.label) }
        }
    }
}

/// Nodes are at most three deep and a hundred in all: whoever took them in has checked that.
fn draw_node(node: &Node) -> Markup {
    match node {
        Node::Text { text, tone } => html! { p.node-text.(tone_class(*tone)) { (text) } },
        Node::Badge { text, tone } => html! { (tone_badge(tone_class(*tone), text)) },
        Node::Kv { items } => html! {
            dl.facts { @for row in items { div { dt { (row.key) } dd { (row.value) } } } }
        },
        Node::List { items } => html! { ul.nodes { @for item in items { li { (draw_node(item)) } } } },
        Node::Progress { value, max, label } => html! {
            label.progress { @if let Some(label) = label { span { (label) } }
                progress value=(value) max=(max) {} span.num.sub { (value) " of " (max) } }
        },
        Node::Separator {} => html! { hr; },
    }
}

fn tone_class(tone: Option<Tone>) -> &'static str {
    match tone {
        Some(Tone::Success) => "good",
        Some(Tone::Warning) => "warn",
        Some(Tone::Error) => "bad",
        Some(Tone::Info) => "info",
        Some(Tone::Neutral) | None => "quiet",
    }
}

fn state_tone(state: PanelState) -> &'static str {
    match state {
        PanelState::Active => "good",
        PanelState::Busy => "busy",
        PanelState::Dormant => "quiet",
        PanelState::Unavailable => "warn",
    }
}
