//! Extensions: what is here, what each asked for and was given, its panels, and what the record says of it.

use std::path::Path as FilePath;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use maud::{Markup, html};
use outrigger_sep::host::record::{LogLine, log};
use outrigger_sep::host::ui::{Notice, UiSnapshot};
use outrigger_sep::host::{AskError, Detail, Fleet, Summary};
use outrigger_sep::protocol::{ExtensionId, Permission, State as Life, TrustLevel};
use serde_json::Value;

use super::form::{Fields, encode};
use super::layout::{Here, Live, Shell, empty, head, page};
use super::panel::panel;
use super::parts::{Icon, icon, span, tone_badge};
use super::problem::Problem;
use super::{Answer, sent, then, waiting};
use crate::daemon::{App, Extensions};

/// Lines of a log or of the record of decisions.
const MOST_LINES: usize = 100;
/// How much of the end of the record is looked through.
const RECORD_END: u64 = 512 * 1024;
/// The most panels on a page.
const MOST_PANELS: usize = 50;

/// What the page shows.
pub(super) enum ExtensionsPage {
    Off { hint: String },
    Failed { why: String },
    On { list: Vec<Summary>, ui: Arc<UiSnapshot>, notices: Vec<Notice> },
}

/// Everything about one.
pub(super) struct OneExtension {
    pub(super) detail: Detail,
    pub(super) ui: Arc<UiSnapshot>,
    pub(super) audit: Vec<Value>,
    pub(super) logs: Vec<LogLine>,
}

pub(super) async fn show(State(app): State<Arc<App>>) -> Answer {
    let view = match &app.extensions {
        Extensions::Off { hint } => ExtensionsPage::Off { hint: hint.clone() },
        Extensions::Failed { why } => ExtensionsPage::Failed { why: why.clone() },
        Extensions::On(fleet) => ExtensionsPage::On {
            list: fleet.list().await,
            ui: fleet.panels().snapshot(),
            notices: fleet.notices().after(0),
        },
    };
    sent(draw(&view, waiting(&app).await))
}

pub(super) async fn one(State(app): State<Arc<App>>, Path(id): Path<String>) -> Answer {
    let fleet = fleet(&app)?;
    let detail = fleet.show(&id).await?;
    let (folder, name) = (fleet.state_dir().to_owned(), id.clone());
    let records = tokio::task::spawn_blocking(move || (audit(&folder, &name), logs(&folder, &name)));
    let (audit, logs) = records.await.unwrap_or_default();
    let view = OneExtension { detail, ui: fleet.panels().snapshot(), audit, logs };
    sent(draw_one(&view, &id, waiting(&app).await))
}

pub(super) async fn act(
    State(app): State<Arc<App>>,
    Path((id, action)): Path<(String, String)>,
    body: Bytes,
) -> Answer {
    let fleet = fleet(&app)?;
    let fields = Fields::read(&body)?;
    let back = fields.back(&format!("/extensions/{}", encode(&id)));
    let permission = || {
        let word = fields.given("permission").ok_or_else(|| Problem::field("no permission is named"))?;
        Permission::parse(word).map_err(|error| Problem::field(error.to_string()))
    };
    match action.as_str() {
        "start" => drop(fleet.start_one(&id).await?),
        "stop" => drop(fleet.stop_one(&id).await?),
        "restart" => drop(fleet.restart_one(&id).await?),
        "enable" => drop(fleet.enable(&id).await?),
        "disable" => drop(fleet.disable(&id).await?),
        "reset" => drop(fleet.reset(&id).await?),
        "grant" => drop(fleet.grant(&id, &[permission()?]).await?),
        "revoke" => drop(fleet.revoke(&id, &[permission()?]).await?),
        "call" => {
            let input = fields.given("input");
            let called = fleet.call(fields.text("panel"), fields.text("action"), input).await;
            called.map_err(|error| Problem::new(StatusCode::CONFLICT, error.to_string()))?;
        }
        _ => return Err(Problem::missing("such button")),
    }
    then(&back)
}

fn fleet(app: &App) -> Result<&Fleet, Problem> {
    match &app.extensions {
        Extensions::On(fleet) => Ok(fleet),
        Extensions::Off { hint } => Err(Problem::new(StatusCode::NOT_FOUND, hint.clone())),
        Extensions::Failed { why } => Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, why.clone())),
    }
}

impl From<AskError> for Problem {
    fn from(error: AskError) -> Self {
        let status = match &error {
            AskError::Unknown { .. } => StatusCode::NOT_FOUND,
            _ => StatusCode::CONFLICT,
        };
        Self::new(status, error.to_string())
    }
}

/// The last decisions about an extension. Reads the end of a file.
fn audit(folder: &FilePath, id: &str) -> Vec<Value> {
    let text = end_of(&folder.join("audit").join("audit.log")).unwrap_or_default();
    let mut records: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(|record: &Value| record["ext"] == id)
        .collect();
    records.drain(..records.len().saturating_sub(MOST_LINES));
    records.reverse();
    records
}

fn end_of(path: &FilePath) -> std::io::Result<String> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = std::fs::File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(RECORD_END)))?;
    let mut bytes = Vec::new();
    file.take(RECORD_END).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The last lines that an extension wrote. Reads files.
fn logs(folder: &FilePath, id: &str) -> Vec<LogLine> {
    let Ok(id) = ExtensionId::new(id) else { return Vec::new() };
    let limits = outrigger_sep::manifest::ceilings(TrustLevel::FirstParty);
    log::tail_of(&folder.join("logs").join(id.as_str()), &limits, MOST_LINES)
}

pub(super) fn draw(view: &ExtensionsPage, waiting: u64) -> Markup {
    let shell = Shell { title: "Extensions", here: Here::Extensions, waiting, live: Live::Every(2000) };
    page(
        &shell,
        html! {
            (head("Extensions", "Programs of others, each with the permissions that it was given and no more.", html! {}))
            section #extensions data-live aria-label="Extensions" {
                @match view {
                    ExtensionsPage::Off { hint } => { (empty(Icon::Extensions, "Extensions are off", html! { p { (hint) } p { code { "outrigger ext new org.example.hello" } " makes one." } })) }
                    ExtensionsPage::Failed { why } => { (empty(Icon::Alert, "The extension host could not be started", html! { p.why { (why) } })) }
                    ExtensionsPage::On { list, .. } if list.is_empty() => { (empty(Icon::Extensions, "There are no extensions", html! { p { code { "outrigger ext new org.example.hello" } " makes one." } })) }
                    ExtensionsPage::On { list, ui, notices } => {
                        (table(list))
                        (panels(ui, None, "/extensions"))
                        (notice_list(notices))
                    }
                }
            }
        },
    )
}

fn table(list: &[Summary]) -> Markup {
    html! {
        table.list.extensions {
            thead { tr { th scope="col" { "Extension" } th scope="col" { "State" } th scope="col" { "Trust" } th.right scope="col" { "Up" } th.right scope="col" { "Restarts" } th scope="col" { span.visually-hidden { "Actions" } } } }
            tbody {
                @for one in list.iter().take(200) {
                    @let id = one.id.as_ref().map(ToString::to_string);
                    tr data-row data-key=(one.dir.display()) {
                        td.title {
                            @match &id {
                                Some(id) => { a href={ "/extensions/" (encode(id)) } { (one.name.as_deref().unwrap_or(id)) } span.sub.mono { (id) @if let Some(version) = &one.version { " " (version) } } }
                                None => { span { (one.dir.file_name().unwrap_or_default().to_string_lossy()) } }
                            }
                            @if let Some(why) = why(one) { span.sub.bad { (why) } }
                        }
                        td.phase { (life(one.state)) }
                        td.trust { @if let Some(trust) = one.trust { span.chip { (trust.as_str().replace('_', " ")) } } }
                        td.right.num.up data-label="up" { @if let Some(up) = one.uptime_ms { (span(std::time::Duration::from_millis(up))) } @else { "–" } }
                        td.right.num.restarts data-label="restarts" { (one.restarts) }
                        td.right.row-actions { @if let Some(id) = &id { (verbs(id, one.state, "/extensions")) } }
                    }
                }
            }
        }
    }
}

/// What can be done with an extension in its state.
fn verbs(id: &str, state: Life, back: &str) -> Markup {
    let verbs: &[&str] = match state {
        Life::Ready | Life::Unresponsive | Life::Starting | Life::Suspended => {
            &["restart", "stop", "disable"]
        }
        Life::Stopped | Life::Backoff => &["start", "disable"],
        Life::Disabled => &["enable", "reset"],
        Life::Failed => &["reset", "disable"],
        Life::NeedsConsent => &["enable"],
        Life::Invalid | Life::Blocked | Life::Unavailable | Life::Removed => &[],
        Life::Pausing | Life::Resuming | Life::Reclaimed | Life::Stopping => &[],
    };
    html! {
        @for verb in verbs {
            form.inline method="post" action={ "/extensions/" (encode(id)) "/" (verb) } data-live-form {
                input type="hidden" name="back" value=(back);
                button.small.verb aria-label={ (verb) " " (id) } { (verb) }
            }
        }
    }
}

fn panels(ui: &UiSnapshot, only: Option<&str>, back: &str) -> Markup {
    let wanted = ui.slots.iter().filter(|(_, view)| only.is_none_or(|id| view.extension_id.as_str() == id));
    let wanted: Vec<_> = wanted.map(|(_, view)| view).take(MOST_PANELS).collect();
    html! {
        @if !wanted.is_empty() {
            h2.strip-title { "Panels" }
            div.cards { @for view in wanted { (panel(view, back)) } }
        }
    }
}

fn notice_list(notices: &[Notice]) -> Markup {
    html! {
        @if !notices.is_empty() {
            h2.strip-title { "Notices" }
            ul.card.plain.notices { @for notice in notices.iter().rev().take(20) { li data-key={ "notice" (notice.seq) } { (tone_badge(level_tone(notice.level.as_str()), notice.level.as_str())) " " (notice.text) } } }
        }
    }
}

pub(super) fn draw_one(view: &OneExtension, id: &str, waiting: u64) -> Markup {
    let summary = &view.detail.summary;
    let name = summary.name.as_deref().unwrap_or(id);
    let shell = Shell { title: name, here: Here::Extensions, waiting, live: Live::Every(2000) };
    let back = format!("/extensions/{}", encode(id));
    page(
        &shell,
        html! {
            nav.crumbs aria-label="Breadcrumb" { a href="/extensions" { "Extensions" } (icon(Icon::Right)) span.mono { (id) } }
            header #ext-head.page-head data-live {
                div { h1 { (name) } p.run-meta { (life(summary.state)) @if let Some(version) = &summary.version { span.chip { (version) } }
                    @if let Some(trust) = summary.trust { span.chip { (trust.as_str().replace('_', " ")) } } @if let Some(pid) = summary.pid { span.num { "pid " (pid) } } }
                    @if let Some(why) = why(summary) { p.why { (why) } } }
                div.actions { (verbs(id, summary.state, &back)) }
            }
            div.run-grid {
                div.run-main {
                    section #ext-panels data-live { (panels(&view.ui, Some(id), &back)) }
                    section.card { h2 { (icon(Icon::Shield)) "Decisions" } div #ext-audit data-live { (audit_table(&view.audit)) } }
                    section.card { h2 { (icon(Icon::Terminal)) "Log" } pre.logs #ext-logs data-live data-stick tabindex="0" {
                        @if view.logs.is_empty() { span.sub { "It has said nothing yet." } }
                        @for line in &view.logs { span.sub { (line.ts) " " (line.stream.as_str()) } " " (line.msg) "\n" }
                    } }
                }
                aside.run-side aria-label="About this extension" {
                    section #ext-permissions.card data-live { (permissions(&view.detail, id)) }
                    section #ext-findings data-live { (findings(&view.detail)) }
                }
            }
        },
    )
}

fn permissions(detail: &Detail, id: &str) -> Markup {
    let granted = detail.permissions.as_ref().map(|list| list.granted.as_slice()).unwrap_or_default();
    let reason = |permission: Permission| {
        let denied = detail.permissions.as_ref().map(|list| list.denied.as_slice()).unwrap_or_default();
        denied.iter().find(|one| one.permission == permission).map(|one| one.reason.as_str())
    };
    html! {
        h2 { (icon(Icon::Shield)) "Permissions" }
        @if detail.declared.is_empty() { p.hint { "It asks for none." } }
        ul.permissions {
            @for permission in &detail.declared {
                @let has = granted.contains(permission);
                @let verb = if has { "revoke" } else { "grant" };
                li {
                    div { span.mono { (permission) } " " @if has { (tone_badge("good", "granted")) } @else { (tone_badge("quiet", "not granted")) }
                        @if let Some(reason) = reason(*permission) { span.sub { (reason.replace('_', " ")) } } }
                    form.inline method="post" action={ "/extensions/" (encode(id)) "/" (verb) } data-live-form {
                        input type="hidden" name="permission" value=(permission);
                        button.small.verb aria-label={ (verb) " " (permission) } { (verb) }
                    }
                }
            }
        }
    }
}

fn findings(detail: &Detail) -> Markup {
    html! {
        @if !detail.findings.is_empty() {
            div.card { h2 { (icon(Icon::Alert)) "Noticed" } ul.plain { @for finding in detail.findings.iter().take(20) { li { span.mono { (finding.code) } " " (finding.message) } } } }
        }
        @if !detail.exits.is_empty() {
            div.card { h2 { "Last ends" } ul.plain { @for exit in detail.exits.iter().rev().take(10) {
                li { span.chip { (exit.kind.as_str().replace('_', " ")) }
                    @if let Some(code) = exit.code { " code " (code) } @if let Some(signal) = exit.signal { " signal " (signal) }
                    @if let Some(detail) = &exit.detail { span.sub { (detail) } } }
            } } }
        }
        @if let Some(session) = &detail.session {
            div.card { h2 { "Session" } dl.facts { div { dt { "id" } dd.mono { (session.id) } } div { dt { "over" } dd { (session.transport) } }
                @if let Some(level) = session.sandbox["level"].as_str() { div { dt { "box" } dd { (level) } } } } }
        }
    }
}

fn audit_table(records: &[Value]) -> Markup {
    let text = |record: &Value, member: &str| record[member].as_str().unwrap_or("").to_owned();
    html! {
        @if records.is_empty() { p.hint { "Nothing was decided about it yet." } }
        @else {
            div.scroll tabindex="0" role="region" aria-label="Decisions" { table.list.tight { tbody {
                @for record in records {
                    tr { td.num.sub { (record["seq"]) } td { @if record["decision"] == "allow" { (tone_badge("good", "allow")) } @else { (tone_badge("bad", &text(record, "decision"))) } }
                        td.mono { (text(record, "method")) } td.sub { (text(record, "reason")) } }
                }
            } } }
        }
    }
}

fn why(one: &Summary) -> Option<String> {
    if one.state == Life::Ready {
        return None;
    }
    let word = one.disabled.map(|word| word.to_string()).or(one.failed.map(|word| word.to_string()));
    let words: Vec<String> = word.into_iter().chain(one.detail.clone()).collect();
    (!words.is_empty()).then(|| words.join(": "))
}

fn life(state: Life) -> Markup {
    let tone = match state {
        Life::Ready => "good",
        Life::Starting | Life::Stopping | Life::Pausing | Life::Resuming => "busy",
        Life::Failed | Life::Invalid | Life::Blocked | Life::Disabled => "bad",
        Life::Backoff | Life::Unresponsive | Life::NeedsConsent | Life::Unavailable => "warn",
        Life::Stopped | Life::Suspended | Life::Reclaimed | Life::Removed => "quiet",
    };
    tone_badge(tone, &state.as_str().replace('_', " "))
}

fn level_tone(level: &str) -> &'static str {
    match level {
        "success" => "good",
        "warning" => "warn",
        "error" => "bad",
        _ => "info",
    }
}
