//! What was said in a run, and where one says something to its agent. Code between fences is shown as code; the rest is text.

use maud::{Markup, html};

use super::super::parts::{Icon, ago, icon};
use super::story::{MAX_SAID, Said, Story, Who};
use crate::runs::RunState;
use crate::runs::state::Moment;

pub(in super::super) fn talk(story: &Story, state: &RunState, now: Moment) -> Markup {
    html! {
        header.card-head { h2 #talk-title { (icon(Icon::Chat)) @if state.script { "Output" } @else { "Conversation" } } }
        @if story.said.is_empty() {
            p.hint { @if state.script { "What the script prints appears here." } @else { "Nothing was said yet." } }
        }
        (bubbles(story, now))
        @if !state.script && !state.phase.is_over() { (steer_box(state, &format!("/runs/{}", state.id))) }
    }
}

/// What was said, oldest first.
pub(in super::super) fn bubbles(story: &Story, now: Moment) -> Markup {
    html! {
        @if story.folded_said > 0 { p.hint { (story.folded_said) " earlier words are not shown; the last " (MAX_SAID) " are." } }
        div.talk aria-live="polite" {
            @for (number, said) in story.said.iter().enumerate() { (bubble(story, said, story.folded_said + number, now)) }
        }
    }
}

/// Says something to an agent that is at work.
pub(in super::super) fn steer_box(state: &RunState, back: &str) -> Markup {
    html! {
        form.composer method="post" action={ "/runs/" (state.id) "/steer" } data-live-form data-reset {
            input type="hidden" name="back" value=(back);
            label { span.visually-hidden { "Say something to the agent" }
                textarea name="text" rows="2" maxlength="65536" placeholder="Say something to the agent while it works" required data-submit {} }
            button.primary { (icon(Icon::Chat)) "Steer" }
        }
    }
}

fn bubble(story: &Story, said: &Said, number: usize, now: Moment) -> Markup {
    let (script, seq) = (story.is_script(), story.seq.0);
    let (class, who) = match said.who {
        Who::Person => ("person", "You"),
        Who::Agent => ("agent", if script { "Script" } else { "Agent" }),
        Who::Note => ("note", "Note"),
        Who::Trouble => ("note", "Error"),
    };
    html! {
        div.bubble.(class).bad[said.who == Who::Trouble] data-key={ "said" (number) } {
            span.who { (who) " " (ago(said.at, now)) }
            @if said.open {
                div.words #stream data-seq=(seq) { (said.text) }
            } @else {
                div.words { (words(&said.text)) }
            }
        }
    }
}

/// Text, with what stands between fences as code.
fn words(text: &str) -> Markup {
    html! {
        @for (number, piece) in text.split("```").enumerate() {
            @if number % 2 == 0 {
                @let plain = piece.trim_matches('\n');
                @if !plain.is_empty() { p { (plain) } }
            } @else {
                // The first line names the language.
                @let code = piece.split_once('\n').map_or(piece, |(_, code)| code);
                pre.code tabindex="0" { code { (code.trim_end()) } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_between_fences_is_code_and_markup_is_text() {
        let shown = words("before <b>\n```rust\nlet a = \"<i>\";\n```\nafter").into_string();
        assert_eq!(
            shown,
            "<p>before &lt;b&gt;</p><pre class=\"code\" tabindex=\"0\"><code>let a = &quot;&lt;i&gt;&quot;;</code></pre><p>after</p>"
        );
        assert_eq!(words("```").into_string(), "<pre class=\"code\" tabindex=\"0\"><code></code></pre>");
    }
}
