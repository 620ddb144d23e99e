//! The table of everything that can be asked. The router is built from it, and so is the OpenAPI document.

use std::sync::Arc;

use axum::handler::Handler;
use axum::routing::{self, MethodRouter};
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::door::Door;
use super::schemas::{
    ApprovalList, Backends, EventPage, ExtensionAudit, ExtensionCall, ExtensionChange, ExtensionDetail,
    ExtensionList, ExtensionLogs, ExtensionPanels, Granted, Health, Link, ReceiptCheck, Revoked, Run,
    RunPage, Sidecar, SidecarList, SidecarLogs, Tools, VersionInfo, Waiting,
};
use super::{about, approvals, changes, events, extensions, pages, receipts, runs, sidecars};
use crate::runs::{Answer, NewRun};

/// One line of the table.
pub(super) struct Route {
    pub(super) verb: Verb,
    pub(super) path: &'static str,
    /// Its name for programs that are made from the document.
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) query: &'static [Param],
    pub(super) body: Option<Shape>,
    pub(super) answers: Vec<Given>,
    pub(super) entry: Entry,
    pub(super) handler: MethodRouter<Arc<Door>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Get,
    Post,
    Delete,
}

/// What has to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// The token or the cookie.
    Shown,
    /// Nothing.
    Open,
}

/// A name in a query.
pub(super) struct Param {
    pub(super) name: &'static str,
    pub(super) kind: &'static str,
    pub(super) about: &'static str,
}

/// An answer when all is well.
pub(super) struct Given {
    pub(super) status: u16,
    pub(super) about: &'static str,
    pub(super) content: Content,
}

pub(super) enum Content {
    Json(Shape),
    /// Of this media type.
    Text(&'static str),
    Nothing,
}

/// How something in JSON looks.
pub(super) type Shape = fn(&mut SchemaGenerator) -> Schema;

fn shape<T: JsonSchema>() -> Shape {
    |generator| generator.subschema_for::<T>()
}

const LIMIT: Param = Param { name: "limit", kind: "integer", about: "How many at most." };

/// Everything that can be asked.
pub(super) fn routes() -> Vec<Route> {
    let mut table = of_runs();
    table.extend(of_one_run());
    table.extend(of_processes());
    table.extend(of_extensions());
    table.extend(of_the_daemon());
    table
}

fn of_runs() -> Vec<Route> {
    const PHASE: Param = Param {
        name: "phase",
        kind: "string",
        about: "Only runs in these phases, joined with commas: queued, running, waiting, completed, failed, cancelled.",
    };
    const BEFORE: Param = Param { name: "before", kind: "integer", about: "`next` of the page before." };
    vec![
        post("/v1/runs", "submitRun", "Begin a run. When this is answered the run cannot be lost.", runs::submit)
            .takes::<NewRun>()
            .gives::<Run>(201, "It was accepted; `Location` is where it is.")
            .gives::<Run>(200, "The id was known, with the same order; nothing happened."),
        get("/v1/runs", "listRuns", "Runs, the newest first.", runs::list)
            .query(&[PHASE, BEFORE, LIMIT])
            .gives::<RunPage>(200, "A page of runs; `next` is where the next one begins."),
        get("/v1/approvals", "listApprovals", "What waits for a person, over all runs, the oldest first.", approvals::waiting)
            .query(&[LIMIT])
            .gives::<ApprovalList>(200, "What waits."),
        get("/v1/changes", "watchRuns", "A server-sent event for each run that changed, at most five a second for each: `run` with the run, `gone` with its id, `reset` when the list has to be read again.", changes::changes)
            .text(200, "Events until somebody leaves.", "text/event-stream"),
    ]
}

fn of_one_run() -> Vec<Route> {
    const AFTER: Param = Param {
        name: "after",
        kind: "integer",
        about: "Only records after this number; `Last-Event-ID` wins over it.",
    };
    vec![
        get("/v1/runs/{id}", "showRun", "One run.", runs::show).gives::<Run>(200, "The run."),
        delete("/v1/runs/{id}", "forgetRun", "Forget a run that is over. Its receipt stays.", runs::forget)
            .nothing(204, "It is forgotten."),
        get("/v1/runs/{id}/request", "showRequest", "What was asked for.", runs::request)
            .gives::<NewRun>(200, "As it was asked for."),
        get("/v1/runs/{id}/events", "listEvents", "The log of a run. With `Accept: text/event-stream` all of it as it grows: `id` is the number of a record, `event` its kind; `end` follows the last one.", events::events)
            .query(&[AFTER, LIMIT])
            .gives::<EventPage>(200, "A page of records.")
            .text(200, "A page of records, or events until the run is over.", "text/event-stream")
            .nothing(204, "The run is over and `Last-Event-ID` was its last record."),
        get(
            "/v1/runs/{id}/approvals/{approval}",
            "showApproval",
            "What waits for a person, with its whole input.",
            approvals::show,
        )
        .gives::<Waiting>(200, "What is asked."),
        post("/v1/runs/{id}/approvals/{approval}", "answerApproval", "Answer what waits: approve, deny, edit the arguments, or answer in the tool's place. Whoever comes second is told who was first.", approvals::answer)
            .takes::<Answer>()
            .gives::<Run>(200, "The run afterwards."),
        post("/v1/runs/{id}/approve", "approve", "Approve the one thing that waits, or the one that is named.", approvals::approve)
            .takes::<approvals::Verdict>()
            .gives::<Run>(200, "The run afterwards."),
        post("/v1/runs/{id}/deny", "deny", "Deny the one thing that waits, or the one that is named.", approvals::deny)
            .takes::<approvals::Verdict>()
            .gives::<Run>(200, "The run afterwards."),
        post("/v1/runs/{id}/steer", "steerRun", "Say something to the agent.", runs::steer)
            .takes::<runs::Steer>()
            .gives::<Run>(200, "The run afterwards."),
        post("/v1/runs/{id}/cancel", "cancelRun", "End a run: soon if it is under way, at once if it waits.", runs::cancel)
            .takes::<runs::Cancel>()
            .gives::<Run>(200, "The run afterwards."),
        post("/v1/runs/{id}/resume", "resumeRun", "Try a run now that waits to be tried again; one that failed or was cancelled goes on as a run of its own.", runs::resume)
            .takes::<runs::Nothing>()
            .gives::<Run>(200, "It is tried.")
            .gives::<Run>(201, "The run that goes on."),
        post("/v1/runs/{id}/fork", "forkRun", "The same again as a run of its own; a script from one of its suspensions on.", runs::fork)
            .takes::<runs::Fork>()
            .gives::<Run>(201, "The new run."),
        post("/v1/runs/{id}/replay", "replayRun", "A script again with the answers that it got. Nothing is called.", runs::replay)
            .takes::<runs::Nothing>()
            .gives::<Run>(201, "The new run."),
        get("/v1/runs/{id}/receipt", "showReceipt", "The receipt, as it is in its file.", receipts::receipt)
            .text(200, "The file.", "application/json"),
        get("/v1/runs/{id}/receipt/check", "checkReceipt", "Whether the receipt holds: its hash, its signature, the contract.", receipts::check)
            .gives::<ReceiptCheck>(200, "What came out."),
        get("/v1/runs/{id}/patch", "showPatch", "What changed in the workspace.", receipts::patch)
            .text(200, "A unified diff.", "text/x-diff"),
    ]
}

fn of_processes() -> Vec<Route> {
    vec![
        get(
            "/v1/backends",
            "listBackends",
            "Who does runs: health, capabilities, how much there is to do. Looked at now.",
            about::backends,
        )
        .gives::<Backends>(200, "The backends."),
        get("/v1/tools", "listTools", "The tools that scripts can be given by name.", about::tools)
            .gives::<Tools>(200, "The tools."),
        get(
            "/v1/sidecars",
            "listSidecars",
            "The processes that the daemon runs, and what they use.",
            sidecars::list,
        )
        .gives::<SidecarList>(200, "The processes."),
        get("/v1/sidecars/{id}/logs", "showSidecarLogs", "What a process said last.", sidecars::logs)
            .gives::<SidecarLogs>(200, "Its last lines."),
        post(
            "/v1/sidecars/{id}/stop",
            "stopSidecar",
            "Stop a process: asked, then terminated, then killed with all that it started.",
            sidecars::stop,
        )
        .gives::<Sidecar>(200, "It is gone."),
        post(
            "/v1/sidecars/{id}/restart",
            "restartSidecar",
            "Replace a process by a fresh one.",
            sidecars::restart,
        )
        .gives::<Sidecar>(200, "It is being replaced."),
    ]
}

fn of_extensions() -> Vec<Route> {
    vec![
        get("/v1/extensions", "listExtensions", "One line about each extension.", extensions::list)
            .gives::<ExtensionList>(200, "The extensions."),
        get("/v1/extensions/{key}", "showExtension", "Everything about an extension.", extensions::show)
            .gives::<ExtensionDetail>(200, "The extension."),
        get(
            "/v1/extensions/{key}/panel",
            "showPanel",
            "What the panels of an extension show.",
            extensions::panel,
        )
        .gives::<ExtensionPanels>(200, "Its panels."),
        post(
            "/v1/extensions/{key}/start",
            "startExtension",
            "Start it, whatever its activation.",
            extensions::start,
        )
        .changes(),
        post(
            "/v1/extensions/{key}/stop",
            "stopExtension",
            "Stop it and wait until it is gone.",
            extensions::stop,
        )
        .changes(),
        post(
            "/v1/extensions/{key}/restart",
            "restartExtension",
            "Stop it and start it again.",
            extensions::restart,
        )
        .changes(),
        post(
            "/v1/extensions/{key}/enable",
            "enableExtension",
            "Let it run again, and agree to what it declares.",
            extensions::enable,
        )
        .changes(),
        post(
            "/v1/extensions/{key}/disable",
            "disableExtension",
            "Switch it off, also for the next daemon.",
            extensions::disable,
        )
        .changes(),
        post("/v1/extensions/{key}/reset", "resetExtension", "Forget its crashes.", extensions::reset)
            .changes(),
        post(
            "/v1/extensions/{key}/call",
            "callExtension",
            "Invoke an action of a panel, as a click would.",
            extensions::call,
        )
        .takes::<extensions::Call>()
        .gives::<ExtensionCall>(200, "What came of it."),
        post(
            "/v1/extensions/{key}/grant",
            "grantPermission",
            "Give it a permission that it declares; all of them if none is named.",
            extensions::grant,
        )
        .takes::<extensions::Permit>()
        .gives::<Granted>(200, "What it was given."),
        post(
            "/v1/extensions/{key}/revoke",
            "revokePermission",
            "Take a permission back; all of them if none is named.",
            extensions::revoke,
        )
        .takes::<extensions::Permit>()
        .gives::<Revoked>(200, "What was taken."),
        get(
            "/v1/extensions/{key}/audit",
            "showAudit",
            "What it was allowed and denied, the latest last.",
            extensions::audit,
        )
        .query(&[LIMIT])
        .gives::<ExtensionAudit>(200, "The records."),
        get("/v1/extensions/{key}/logs", "showExtensionLogs", "What it said last.", extensions::logs)
            .query(&[LIMIT])
            .gives::<ExtensionLogs>(200, "The lines."),
    ]
}

fn of_the_daemon() -> Vec<Route> {
    const CODE: Param =
        Param { name: "code", kind: "string", about: "The code of a link from `outrigger up --link`." };
    vec![
        get("/healthz", "health", "Whether the daemon is up.", about::health)
            .open()
            .gives::<Health>(200, "It is up.")
            .gives::<Health>(503, "It is leaving."),
        get(
            "/login",
            "login",
            "Use a one-time link: the browser gets a cookie and goes on to the dashboard.",
            pages::login,
        )
        .open()
        .query(&[CODE])
        .text(200, "On to the dashboard.", "text/html")
        .nothing(303, "On to the dashboard."),
        post(
            "/v1/links",
            "makeLink",
            "Make a one-time link to the dashboard. Needs the token; a cookie is not enough.",
            pages::link,
        )
        .gives::<Link>(200, "The link. It is good for one browser and ten minutes."),
        get("/metrics", "metrics", "Numbers for Prometheus.", about::metrics).text(
            200,
            "The text exposition format.",
            "text/plain",
        ),
        get("/v1/version", "version", "Which program this is.", about::version)
            .gives::<VersionInfo>(200, "The version."),
        get("/v1/openapi.json", "openapi", "This document.", about::document).text(
            200,
            "OpenAPI 3.1.",
            "application/json",
        ),
    ]
}

fn get<H, T>(path: &'static str, name: &'static str, about: &'static str, handler: H) -> Route
where
    H: Handler<T, Arc<Door>>,
    T: 'static,
{
    Route::new(Verb::Get, path, name, about, routing::get(handler))
}

fn post<H, T>(path: &'static str, name: &'static str, about: &'static str, handler: H) -> Route
where
    H: Handler<T, Arc<Door>>,
    T: 'static,
{
    Route::new(Verb::Post, path, name, about, routing::post(handler))
}

fn delete<H, T>(path: &'static str, name: &'static str, about: &'static str, handler: H) -> Route
where
    H: Handler<T, Arc<Door>>,
    T: 'static,
{
    Route::new(Verb::Delete, path, name, about, routing::delete(handler))
}

impl Route {
    fn new(
        verb: Verb,
        path: &'static str,
        name: &'static str,
        about: &'static str,
        handler: MethodRouter<Arc<Door>>,
    ) -> Self {
        Self {
            verb,
            path,
            name,
            about,
            query: &[],
            body: None,
            answers: Vec::new(),
            entry: Entry::Shown,
            handler,
        }
    }

    fn query(self, query: &'static [Param]) -> Self {
        Self { query, ..self }
    }

    fn takes<T: JsonSchema>(self) -> Self {
        Self { body: Some(shape::<T>()), ..self }
    }

    fn open(self) -> Self {
        Self { entry: Entry::Open, ..self }
    }

    fn gives<T: JsonSchema>(self, status: u16, about: &'static str) -> Self {
        self.answer(status, about, Content::Json(shape::<T>()))
    }

    fn changes(self) -> Self {
        self.gives::<ExtensionChange>(200, "Where it is in its life now.")
    }

    fn text(self, status: u16, about: &'static str, media: &'static str) -> Self {
        self.answer(status, about, Content::Text(media))
    }

    fn nothing(self, status: u16, about: &'static str) -> Self {
        self.answer(status, about, Content::Nothing)
    }

    fn answer(mut self, status: u16, about: &'static str, content: Content) -> Self {
        self.answers.push(Given { status, about, content });
        self
    }
}

impl Verb {
    pub(super) fn word(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::Post => "post",
            Verb::Delete => "delete",
        }
    }
}
