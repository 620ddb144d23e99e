//! The smaller parts of a run's page: what can be done, what it used, its receipt, what was asked for.

use maud::{Markup, html};
use outrigger_abp::receipt::{Check, HashState, SignatureState};

use super::super::parts::json::viewer;
use super::super::parts::time::absolute;
use super::super::parts::{Icon, ago, bytes, count, icon, money, span, tone_badge};
use super::story::Story;
use crate::runs::entry::OriginKind;
use crate::runs::request::{ApprovalTerms, NewRun, ToolChoice};
use crate::runs::state::Moment;
use crate::runs::{Phase, RunState};

/// What can be done with a run in its phase.
pub(super) fn buttons(state: &RunState) -> Markup {
    let button = |action: &str, picture: Icon, label: &str, hint: &str| {
        html! {
            form method="post" action={ "/runs/" (state.id) "/" (action) } data-live-form {
                button title=(hint) { (icon(picture)) (label) }
            }
        }
    };
    html! {
        @if state.phase.is_over() {
            @if state.phase != Phase::Completed { (button("resume", Icon::Play, "Resume", "Go on as a run of its own")) }
            @if state.script { (button("replay", Icon::Replay, "Replay", "Again with the answers that it got; nothing is called")) }
            (button("fork", Icon::Fork, "Fork", "The same again as a run of its own"))
            @if state.script { a.button href={ "/playground?from=" (state.id) } { (icon(Icon::Playground)) "Edit" } }
            form method="post" action={ "/runs/" (state.id) "/forget" } data-live-form data-confirm="Forget this run? Its receipt stays." {
                button.quiet.icon-only aria-label="Forget this run" title="Forget this run; its receipt stays" { (icon(Icon::Trash)) }
            }
        } @else {
            @if state.phase == Phase::Queued && state.attempt > 0 { (button("resume", Icon::Play, "Try now", "Do not wait any longer")) }
            @if state.cancelling.is_none() {
                form method="post" action={ "/runs/" (state.id) "/cancel" } data-live-form data-confirm="Cancel this run?" {
                    button.danger { (icon(Icon::Stop)) "Cancel" }
                }
            }
        }
    }
}

/// What it is and what it used.
pub(super) fn facts(state: &RunState, now: Moment) -> Markup {
    let spent = &state.spent;
    html! {
        dl.facts {
            div { dt { "Begun" } dd { (ago(state.created_at, now)) } }
            @if let Some(finished) = state.finished_at { div { dt { "Ended" } dd { (ago(finished, now)) } } }
            div { dt { "Attempts" } dd.num { (state.attempt) @if state.retries_left > 0 { " (" (state.retries_left) " left)" } } }
            div { dt { "Tool calls" } dd.num { (count(spent.tool_calls)) } }
            @if !state.script {
                div { dt { "Model calls" } dd.num { (count(spent.model_calls)) } }
                div { dt { "Tokens" } dd.num { (count(spent.input_tokens)) " in · " (count(spent.output_tokens)) " out" } }
            }
            div { dt { "Cost" } dd.num { (money(spent.cost_usd)) } }
            @if let Some(at) = state.suspended.as_ref().filter(|_| !state.phase.is_over()) { div { dt { "Snapshot" } dd.num title="What the run is while it waits" { (bytes(at.snapshot_bytes)) } } }
            @if !state.fallback.is_empty() { div { dt { "Falls back to" } dd { (state.fallback.join(", ")) } } }
            @if let Some(thread) = &state.thread { div { dt { "Thread" } dd { a href={ "/chat?backend=" (super::super::form::encode(&state.backend)) "&thread=" (super::super::form::encode(thread)) } { (thread) } } } }
            @if let Some(origin) = &state.origin {
                div { dt { @match origin.how { OriginKind::Fork => "Forked from", OriginKind::Replay => "Replay of" } }
                    dd { a.mono href={ "/runs/" (origin.run) } { (short_id(origin.run.as_str())) } @if let Some(at) = origin.at { " at " (at) } } }
            }
        }
        p.links {
            a href={ "/runs/" (state.id) "/log" } { (icon(Icon::Terminal)) "Raw log" }
            a href={ "/v1/runs/" (state.id) } { "JSON" }
        }
    }
}

/// The receipt and whether it holds.
pub(super) fn receipt_card(state: &RunState, check: Option<&Check>) -> Markup {
    html! {
        h2 { (icon(Icon::Shield)) "Receipt" }
        @match (&state.receipt, check) {
            (Some(receipt), Some(check)) => {
                p { @if check.is_valid() { (tone_badge("good", "verified")) } @else { (tone_badge("bad", "does not hold")) } }
                ul.checks {
                    li { @match &check.hash {
                        HashState::Ok { .. } => { (mark("good")) "the hash is that of what is in it" }
                        HashState::Mismatch { .. } => { (mark("bad")) "the hash is that of something else" }
                        HashState::Missing { .. } => { (mark("bad")) "it has no hash" }
                        HashState::Unknown => { (mark("bad")) "there is nothing to hash" }
                    } }
                    li { @match &check.signature {
                        SignatureState::Valid { public_key } => { (mark("good")) "signed by " span.mono title=(public_key) { (short_id(public_key)) } }
                        SignatureState::None => { (mark("quiet")) "not signed" }
                        SignatureState::Invalid { why } => { (mark("bad")) "the signature is worth nothing: " (why) }
                    } }
                    li { @if check.problems.is_empty() { (mark("good")) (count(check.events)) " events, all of them well formed" } @else { (mark("bad")) (check.problems.len()) " problems" } }
                    @for problem in check.problems.iter().take(5) { li.sub { span.mono { (problem.path) } ": " (problem.what) } }
                    li { @match &check.previous {
                        Some(previous) => { (mark("good")) "follows " span.mono title=(previous) { (short_id(&previous.to_string())) } }
                        None => { (mark("quiet")) "the first of its chain" }
                    } }
                }
                p.hash.mono title="SHA-256" { (receipt.sha256) }
                (receipt_links(state, &receipt.file))
            }
            (Some(receipt), None) => {
                p { (tone_badge("warn", "cannot be read")) }
                p.hint { "The file " span.mono { (receipt.file) } " is not in the folder of receipts." }
            }
            (None, _) => {
                p.hint { @if state.phase.is_over() { "This run left no receipt." } @else { "A receipt is written when the run ends." } }
            }
        }
        @for earlier in state.earlier.iter().rev().take(5) {
            p.sub { "earlier attempt: " span.mono title=(earlier.sha256) { (earlier.file) } }
        }
    }
}

/// What was asked for.
pub(super) fn request_card(story: &Story) -> Markup {
    let Some(accepted) = &story.accepted else { return html! {} };
    let NewRun { script, inputs, tools, policy, workspace, config, approvals, .. } = &accepted.request;
    let more = [("Workspace", workspace), ("Policy", policy), ("Settings", config)];
    html! {
        section.card {
            h2 { (icon(Icon::File)) "Asked for" }
            p.sub { "by " (accepted.by.0) }
            @if let Some(script) = script {
                details.fold data-key="script" { summary { "Script" span.meta { (bytes(script.len() as u64)) } }
                    pre.code tabindex="0" { code { (super::super::parts::say::beginning(script, 32 * 1024).0) } } }
            }
            @if !tools.is_empty() {
                ul.plain { @for (name, choice) in tools.iter().take(64) { li { span.mono { (name) } " " span.sub { (choice_words(choice)) } } } }
            }
            @if !inputs.is_empty() {
                details.fold data-key="inputs" { summary { "Inputs" } (viewer(&serde_json::Value::Object(inputs.clone()).to_string())) }
            }
            @for (name, value) in more {
                @if let Some(value) = value { details.fold data-key=(name) { summary { (name) } (viewer(&value.to_string())) } }
            }
            @if let Some(terms) = approvals {
                p.sub { "People have " (within(terms)) " to answer." }
            }
        }
    }
}

/// How long people have, in words.
fn within(terms: &ApprovalTerms) -> String {
    match terms.within.as_deref().map(crate::duration::duration) {
        Some(Ok(length)) => span(length),
        Some(Err(_)) | None => "all the time in the world".to_owned(),
    }
}

pub(super) fn choice_words(choice: &ToolChoice) -> String {
    match choice {
        ToolChoice::Person => "a person answers".to_owned(),
        ToolChoice::Tool(tool) => format!("calls {tool}"),
        ToolChoice::Approved(tool) => format!("calls {tool} when a person agrees"),
        ToolChoice::Value(value) => crate::say::short(&format!("is always {value}")),
    }
}

fn receipt_links(state: &RunState, file: &str) -> Markup {
    html! {
        p.links {
            a href={ "/v1/runs/" (state.id) "/receipt" } download=(file) { (icon(Icon::Download)) "Download" }
            a href={ "/v1/runs/" (state.id) "/receipt/check" } { "The check as JSON" }
        }
        p.hint { "Anybody can check it: " code { "outrigger receipts verify " (file) } }
        @if let Some(finished) = state.finished_at { p.sub { "sealed " (absolute(finished)) } }
    }
}

fn mark(tone: &'static str) -> Markup {
    let (picture, word) = match tone {
        "good" => (Icon::Check, "holds: "),
        "bad" => (Icon::Cross, "does not hold: "),
        _ => (Icon::Stop, ""),
    };
    html! { span.mark.(tone) { (icon(picture)) } span.visually-hidden { (word) } }
}

fn short_id(id: &str) -> String {
    id.chars().take(13).collect()
}
