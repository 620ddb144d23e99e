//! What waits for a person, with everything that a person can say to it. Works without any script in the browser.

use maud::{Markup, html};

use super::super::run::story::choice_words;
use super::icon::{Icon, icon};
use super::json::{pretty, viewer};
use super::time::{ago, deadline};
use crate::runs::approval::{Approval, Choice, DefaultAnswer};
use crate::runs::id::RunId;
use crate::runs::state::Moment;
use crate::say;

/// An approval that is open, with its forms.
pub(in super::super) fn open_card(
    run: &RunId,
    approval: &Approval,
    whole_input: Option<&str>,
    back: &str,
    now: Moment,
) -> Markup {
    let input = whole_input.unwrap_or(&approval.input);
    let can = |choice: Choice| approval.choices.contains(&choice);
    let id = &approval.id.0;
    html! {
        article.approval id={ "approval-" (id) } data-key={ "approval-" (id) } aria-label={ "Approval " (id) ": " (approval.tool) } {
            header {
                span.badge.warn { (icon(Icon::Hand)) span { "waits for you" } }
                h3.mono { (approval.tool) }
                span.meta {
                    span.chip { (id) } " asked " (ago(approval.asked_at, now))
                    @if let Some(due) = approval.deadline { " · " (default_words(approval.default)) " " (deadline(due, now)) }
                }
            }
            @if !approval.reason.is_empty() { p.reason { (approval.reason) } }
            div.args { (viewer(input)) }
            div.choices {
                @if can(Choice::Approve) || can(Choice::Deny) || can(Choice::ApproveAlways) {
                    form.row method="post" action=(action(run, id)) data-live-form {
                        input type="hidden" name="back" value=(back);
                        @if can(Choice::Approve) {
                            button.primary name="choice" value="approve" data-key-approve { (icon(Icon::Check)) "Approve" }
                        }
                        @if can(Choice::ApproveAlways) {
                            button name="choice" value="approve_always" title="And every later call of this tool in this run" { "Approve always" }
                        }
                        @if can(Choice::Deny) {
                            label.grow { span.visually-hidden { "Reason, if you deny" } input type="text" name="reason" maxlength="2000" placeholder="Reason (if you deny)"; }
                            button.danger name="choice" value="deny" data-key-deny { (icon(Icon::Cross)) "Deny" }
                        }
                    }
                }
                @if can(Choice::Edit) {
                    details.fold data-key="edit" {
                        summary { (icon(Icon::Edit)) "Approve with other arguments" }
                        form.stack method="post" action=(action(run, id)) data-live-form {
                            input type="hidden" name="back" value=(back);
                            label { "Arguments, as JSON"
                                textarea.mono name="arguments" rows="5" spellcheck="false" data-json required { (pretty(input)) }
                            }
                            div.row { button.primary name="choice" value="edit" { "Approve these" } }
                        }
                    }
                }
                @if can(Choice::Answer) {
                    details.fold data-key="answer" open[!can(Choice::Approve)] {
                        summary { (icon(Icon::Chat)) @if can(Choice::Approve) { "Answer in its place" } @else { "Answer" } }
                        form.stack method="post" action=(action(run, id)) data-live-form {
                            input type="hidden" name="back" value=(back);
                            label { "The result: JSON, or else it is taken as text"
                                textarea.mono name="value" rows="3" spellcheck="false" placeholder="\"yes\"" required {}
                            }
                            div.row { button.primary name="choice" value="answer" { "Answer" } }
                        }
                    }
                }
            }
        }
    }
}

/// An approval in a line, for a list of all that wait.
pub(in super::super) fn waiting_row(run: &RunId, title: &str, approval: &Approval, now: Moment) -> Markup {
    let can = |choice: Choice| approval.choices.contains(&choice);
    let id = &approval.id.0;
    let href = format!("/runs/{run}#approval-{id}");
    html! {
        li.waiting-row data-key={ (run) "-" (id) } {
            a.what href=(href) {
                span.mono.tool { (approval.tool) }
                span.mono.gist { (say::short(&say::gist(&approval.input))) }
                span.meta { (title) " · asked " (ago(approval.asked_at, now))
                    @if let Some(due) = approval.deadline { " · " (default_words(approval.default)) " " (deadline(due, now)) } }
            }
            form.row method="post" action=(action(run, id)) data-live-form {
                input type="hidden" name="back" value="/";
                @if can(Choice::Approve) {
                    button.primary.small name="choice" value="approve" aria-label={ "Approve " (approval.tool) " of " (title) } { "Approve" }
                }
                @if can(Choice::Deny) {
                    button.small.danger name="choice" value="deny" aria-label={ "Deny " (approval.tool) " of " (title) } { "Deny" }
                }
                @if can(Choice::Answer) && !can(Choice::Approve) { a.button.primary.small href=(href) { "Answer" } }
            }
        }
    }
}

/// An approval that was answered, in a line.
pub(in super::super) fn answered_row(approval: &Approval, now: Moment) -> Markup {
    html! {
        li data-key={ "answered-" (approval.id.0) } {
            span.chip { (approval.id.0) } " " span.mono { (approval.tool) } " "
            @match &approval.given {
                Some(given) => {
                    (choice_words(given.answer.choice)) " by " b { (given.by.0) } " " (ago(given.at, now))
                    @if let Some(reason) = &given.answer.reason { ": “" (reason) "”" }
                }
                None => { "was not answered" }
            }
        }
    }
}

fn default_words(default: DefaultAnswer) -> &'static str {
    match default {
        DefaultAnswer::Approve => "approved by itself",
        DefaultAnswer::Deny => "denied by itself",
    }
}

fn action(run: &RunId, approval: &str) -> String {
    format!("/runs/{run}/approvals/{}", super::super::form::encode(approval))
}
