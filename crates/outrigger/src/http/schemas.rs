//! How answers look, where their types do not say it themselves. A test holds them against what is really sent.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::runs::state::Spent;
use crate::runs::{Answer, BackendView, Choice, DefaultAnswer, Phase};

/// Types that are only the name of a shape.
macro_rules! shapes {
    ($( $(#[doc = $about:literal])+ $name:ident |$generator:ident| $shape:expr; )+) => { $(
        $(#[doc = $about])+
        pub(super) struct $name;

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema($generator: &mut SchemaGenerator) -> Schema {
                let mut schema: Schema = $shape;
                schema.insert("description".to_owned(), concat!($($about),+).trim().into());
                schema
            }
        }
    )+ };
}

shapes! {
    /// A run: what it came to so far.
    Run |generator| json_schema!({
        "type": "object",
        "required": ["id", "phase", "title", "backend", "script", "created_at", "updated_at", "approvals", "spent", "links"],
        "properties": {
            "id": { "type": "string" },
            "phase": generator.subschema_for::<Phase>(),
            "title": { "type": "string" },
            "backend": { "type": "string", "description": "Who does it, or will." },
            "script": { "type": "boolean", "description": "Whether it is a script." },
            "in_place": { "type": "boolean", "description": "Whether it works in a folder of its caller, not in a copy." },
            "fallback": { "type": "array", "items": { "type": "string" } },
            "retries_left": { "type": "integer" },
            "attempt": { "type": "integer", "description": "The attempt under way, or the last one; 0 before the first." },
            "underway": { "type": "boolean" },
            "attempt_events": { "type": "integer" },
            "thread": { "type": ["string", "null"] },
            "origin": {
                "type": ["object", "null"],
                "properties": {
                    "how": { "enum": ["fork", "replay"] },
                    "run": { "type": "string" },
                    "at": { "type": "integer" },
                },
            },
            "created_at": moment(),
            "started_at": moment_or_none(),
            "updated_at": moment(),
            "finished_at": moment_or_none(),
            "cancelling": { "type": ["string", "null"], "description": "Why somebody wants it to end." },
            "approvals": { "type": "array", "items": generator.subschema_for::<Approval>() },
            "suspended": {
                "type": ["object", "null"],
                "description": "Where a script stands still.",
                "properties": {
                    "attempt": { "type": "integer" },
                    "step": { "type": "integer" },
                    "snapshot": { "type": "string" },
                    "snapshot_bytes": { "type": "integer" },
                    "calls": { "type": "array", "items": {
                        "type": "object",
                        "properties": { "id": { "type": "integer" }, "capability": { "type": "string" }, "args": {} },
                    } },
                },
            },
            "spent": generator.subschema_for::<Spent>(),
            "error": { "type": ["string", "null"] },
            "ending": { "type": ["string", "null"] },
            "result": { "type": ["string", "null"], "description": "What a script gave, or the last words of an agent; the beginning of it." },
            "receipt": receipt(),
            "earlier": { "type": "array", "items": receipt(), "description": "Receipts of earlier attempts." },
            "patch": { "type": ["string", "null"], "description": "The name of the file with what changed." },
            "links": { "type": "object", "additionalProperties": { "type": "string" } },
        },
    });
    /// Something that waits for a person, or did.
    Approval |generator| json_schema!({
        "type": "object",
        "required": ["id", "tool", "input", "choices", "asked_at"],
        "properties": {
            "id": { "type": "string", "examples": ["a1"] },
            "attempt": { "type": "integer" },
            "key": { "type": "string" },
            "tool": { "type": "string", "description": "What wants to be called, or `question`." },
            "input": { "type": "string", "description": "What it would be given, as JSON text; the beginning of it when it is long." },
            "input_sha256": { "type": "string" },
            "reason": { "type": "string" },
            "choices": { "type": "array", "items": generator.subschema_for::<Choice>() },
            "asked_at": moment(),
            "deadline": moment_or_none(),
            "default": generator.subschema_for::<DefaultAnswer>(),
            "given": {
                "type": ["object", "null"],
                "properties": { "answer": generator.subschema_for::<Answer>(), "by": { "type": "string" }, "at": moment() },
            },
        },
    });
    /// A page of runs, the newest first.
    RunPage |generator| json_schema!({
        "type": "object",
        "required": ["runs", "next"],
        "properties": {
            "runs": { "type": "array", "items": generator.subschema_for::<Run>() },
            "next": { "type": ["integer", "null"], "description": "`before` of the next page." },
        },
    });
    /// What waits for a person, over all runs.
    ApprovalList |generator| json_schema!({
        "type": "object",
        "required": ["approvals", "total"],
        "properties": {
            "approvals": { "type": "array", "items": generator.subschema_for::<Waiting>() },
            "total": { "type": "integer" },
        },
    });
    /// Something that waits for a person, with the run that it belongs to.
    Waiting |generator| json_schema!({
        "type": "object",
        "required": ["run", "title", "backend", "approval", "links"],
        "properties": {
            "run": { "type": "string" },
            "title": { "type": "string" },
            "backend": { "type": "string" },
            "approval": generator.subschema_for::<Approval>(),
            "links": { "type": "object", "additionalProperties": { "type": "string" } },
        },
    });
    /// A one-time link to the dashboard.
    Link |_generator| json_schema!({
        "type": "object",
        "required": ["url"],
        "properties": { "url": { "type": "string" } },
    });
    /// A page of the log of a run.
    EventPage |generator| json_schema!({
        "type": "object",
        "required": ["events", "after"],
        "properties": {
            "events": { "type": "array", "items": generator.subschema_for::<Record>() },
            "after": { "type": "integer", "description": "The number of the last record; `after` of the next page." },
        },
    });
    /// A record of the log of a run.
    Record |_generator| json_schema!({
        "type": "object",
        "required": ["seq", "v", "at", "kind", "data"],
        "properties": {
            "seq": { "type": "integer" },
            "v": { "type": "integer" },
            "at": moment(),
            "kind": { "type": "string", "examples": ["accepted", "started", "event", "suspended", "asked", "answered", "steered", "cancelling", "attempted", "note", "finished"] },
            "data": {},
        },
    });
    /// Whether a receipt holds.
    ReceiptCheck |_generator| json_schema!({
        "type": "object",
        "required": ["valid", "file", "check"],
        "properties": {
            "valid": { "type": "boolean" },
            "file": { "type": "string" },
            "check": { "type": "object", "description": "What was looked at: `events`, `hash`, `signature`, `previous`, `problems`, `receipt`." },
        },
    });
    /// Who does runs.
    Backends |generator| json_schema!({
        "type": "object",
        "required": ["backends"],
        "properties": { "backends": { "type": "array", "items": generator.subschema_for::<BackendView>() } },
    });
    /// The tools that scripts can be given by name.
    Tools |_generator| json_schema!({
        "type": "object",
        "required": ["tools"],
        "properties": { "tools": { "type": "array", "items": {
            "type": "object",
            "required": ["name", "about"],
            "properties": { "name": { "type": "string" }, "about": { "type": "string" } },
        } } },
    });
    /// A process.
    Sidecar |_generator| json_schema!({
        "type": "object",
        "required": ["id", "name", "phase"],
        "properties": {
            "id": { "type": "integer" },
            "name": { "type": "string" },
            "phase": { "type": "string" },
            "pid": { "type": ["integer", "null"] },
            "incarnation": { "type": "integer", "description": "Which process of it this is." },
            "uptime_ms": { "type": ["integer", "null"] },
            "rss_bytes": { "type": ["integer", "null"], "description": "Resident memory of all that it started." },
            "processes": { "type": ["integer", "null"] },
            "how": { "type": ["string", "null"], "description": "How it ended." },
        },
    });
    /// The processes that the daemon runs.
    SidecarList |generator| json_schema!({
        "type": "object",
        "required": ["sidecars", "starts", "restarts"],
        "properties": {
            "sidecars": { "type": "array", "items": generator.subschema_for::<Sidecar>() },
            "starts": { "type": "integer" },
            "restarts": { "type": "integer" },
        },
    });
    /// What a process said last.
    SidecarLogs |_generator| json_schema!({
        "type": "object",
        "required": ["id", "name", "stderr", "stdout"],
        "properties": {
            "id": { "type": "integer" },
            "name": { "type": "string" },
            "stderr": lines(),
            "stdout": lines(),
        },
    });
    /// The extensions.
    ExtensionList |generator| json_schema!({
        "type": "object",
        "required": ["extensions"],
        "properties": { "extensions": { "type": "array", "items": generator.subschema_for::<Extension>() } },
    });
    /// One line about an extension.
    Extension |_generator| json_schema!({
        "type": "object",
        "required": ["id", "state"],
        "properties": {
            "id": { "type": ["string", "null"] },
            "name": { "type": ["string", "null"] },
            "version": { "type": ["string", "null"] },
            "state": { "type": "string" },
            "detail": { "type": ["string", "null"] },
            "trust": { "type": ["string", "null"] },
            "pid": { "type": ["integer", "null"] },
        },
    });
    /// Everything about an extension: what it is, asks for, may, and how its last processes ended.
    ExtensionDetail |generator| json_schema!({
        "type": "object",
        "required": ["summary"],
        "properties": { "summary": generator.subschema_for::<Extension>() },
    });
    /// Where an extension is in its life.
    ExtensionChange |_generator| json_schema!({
        "type": "object",
        "required": ["state"],
        "properties": {
            "state": { "type": "string" },
            "disabled": { "type": ["string", "null"] },
            "failed": { "type": ["string", "null"] },
            "detail": { "type": ["string", "null"] },
        },
    });
    /// The panels of an extension.
    ExtensionPanels |_generator| json_schema!({
        "type": "object",
        "required": ["revision", "panels"],
        "properties": {
            "revision": { "type": "integer" },
            "panels": { "type": "array", "items": {
                "type": "object",
                "required": ["slot", "panel"],
                "properties": { "slot": { "type": "string" }, "panel": { "type": "object" } },
            } },
        },
    });
    /// What came of an action.
    ExtensionCall |_generator| json_schema!({
        "type": "object",
        "required": ["outcome"],
        "properties": { "outcome": { "type": "string" }, "message": { "type": ["string", "null"] } },
    });
    /// What an extension was given.
    Granted |_generator| json_schema!({
        "type": "object",
        "required": ["granted"],
        "properties": { "granted": words() },
    });
    /// What was taken from an extension.
    Revoked |_generator| json_schema!({
        "type": "object",
        "required": ["revoked"],
        "properties": { "revoked": words() },
    });
    /// What an extension was allowed and denied.
    ExtensionAudit |_generator| json_schema!({
        "type": "object",
        "required": ["records"],
        "properties": { "records": { "type": "array", "items": { "type": "object" } } },
    });
    /// What an extension said last.
    ExtensionLogs |_generator| json_schema!({
        "type": "object",
        "required": ["lines"],
        "properties": { "lines": { "type": "array", "items": { "type": "object" } } },
    });
    /// Whether the daemon is up.
    Health |_generator| json_schema!({
        "type": "object",
        "required": ["ok", "version", "draining"],
        "properties": { "ok": { "type": "boolean" }, "version": { "type": "string" }, "draining": { "type": "boolean" } },
    });
    /// Which program this is.
    VersionInfo |_generator| json_schema!({
        "type": "object",
        "required": ["version", "api", "uptime_seconds"],
        "properties": { "version": { "type": "string" }, "api": { "type": "string" }, "uptime_seconds": { "type": "integer" } },
    });
    /// What went wrong.
    Problem |_generator| json_schema!({
        "type": "object",
        "required": ["error"],
        "properties": { "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": { "type": "string", "description": "For programs; it stays what it is." },
                "message": { "type": "string", "description": "For people." },
                "field": { "type": "string", "description": "What of the request is meant." },
                "hint": { "type": "string", "description": "What to do about it." },
            },
        } },
    });
}

fn moment() -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}

fn moment_or_none() -> Schema {
    json_schema!({ "type": ["string", "null"], "format": "date-time" })
}

fn receipt() -> Schema {
    json_schema!({
        "type": ["object", "null"],
        "properties": { "file": { "type": "string" }, "sha256": { "type": "string" } },
    })
}

fn lines() -> Schema {
    json_schema!({ "type": "array", "items": {
        "type": "object",
        "properties": { "text": { "type": "string" }, "cut_bytes": { "type": "integer" } },
    } })
}

fn words() -> Schema {
    json_schema!({ "type": "array", "items": { "type": "string" } })
}
