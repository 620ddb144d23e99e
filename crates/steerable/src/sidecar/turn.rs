//! An agent's turn as a stream: params become a turn, the servers of its tools are reached, and its end is told.

use std::sync::Arc;

use outrigger_wire::rpc::ErrorObject;
use serde_json::{Map, json};
use tokio::sync::mpsc;

use super::outlet::Outlet;
use super::plain::failed;
use super::port::Port;
use super::runtime::Runtime;
use super::streams::Place;
use crate::agent::{self, Ended, Notice, Output, Steer, World};
use crate::model::Request;
use crate::protocol::{
    Approval, CommandsWish, ContentMode, GrantWishes, Kind, SpanKind, SpanStatus, SteerMode, Terminal,
    TurnEnd, TurnParams,
};
use crate::store::{RecordId, Tracer};
use crate::tools::mcp::{McpSpec, Since};
use crate::tools::{Commands, Grants, Hosts, Stated, Toolbox};

/// What a turn needs beside its request, judged before it is promised.
pub(super) struct Plan {
    params: TurnParams,
    servers: Vec<McpSpec>,
    grants: Grants,
    pub(super) record: RecordId,
}

impl Plan {
    /// Judges what params say about a turn.
    pub(super) fn new(runtime: &Runtime, params: TurnParams) -> Result<Self, ErrorObject> {
        let servers = match &params.mcp {
            None => Vec::new(),
            Some(value) => {
                McpSpec::read_list(value).map_err(|error| Kind::InvalidParams.error(error.to_string()))?
            }
        };
        let grants = Grants::settle(&runtime.options.grants, &stated(&params.grants)?);
        let record = params.record_id.clone().map_or_else(RecordId::fresh, RecordId::new);
        Ok(Self { params, servers, grants, record })
    }

    pub(super) fn chat_id(&self) -> Option<String> {
        self.params.chat_id.clone()
    }

    pub(super) fn user_id(&self) -> Option<String> {
        self.params.user_id.clone()
    }
}

/// Runs a turn to its end, and tells it.
pub(super) async fn run(
    runtime: Arc<Runtime>,
    place: Place,
    mut request: Request,
    plan: Plan,
    tracer: Tracer,
    steering: mpsc::Receiver<Steer>,
    mut outlet: Outlet,
) {
    let Plan { params, servers, grants, record } = plan;
    let mut toolbox = runtime.toolbox(&grants, params.tool_names.as_deref());
    let cancel = place.live.cancel.clone();
    tokio::select! {
        biased;
        // The turn itself sees that it is cancelled, and says so.
        () = cancel.cancelled() => {}
        () = reach(&runtime, &record, &servers, &tracer, &mut toolbox, &mut outlet) => {}
    }
    request.response_schema = params.response_schema.clone();
    let messages = request.messages.to_vec();
    request.messages = Vec::new().into();
    let turn = agent::Turn {
        host_tools: std::mem::take(&mut request.tools),
        request,
        record: record.clone(),
        history: if params.resume { agent::History::Resume } else { agent::History::Ignore },
        messages,
        system_prompt: params.system_prompt,
        routing: if params.tools_via_host { agent::Routing::HostOnly } else { agent::Routing::OwnFirst },
        approval: match params.approval {
            None => agent::Approval::Nobody,
            Some(Approval::Auto) => agent::Approval::Auto,
            Some(Approval::Host { timeout }) => agent::Approval::Host { patience: timeout },
        },
        questions: if params.ask_user { agent::Questions::Allowed } else { agent::Questions::Refused },
        chat_id: params.chat_id.clone(),
        tool_context: params.tool_context,
        budgets: agent::Budgets {
            rounds: params.max_rounds,
            tokens: params.budget_tokens,
            tool_calls: params.budget_max_tool_calls,
            tool_errors: params.max_tool_errors,
        },
        tool_timeout: params.tool_timeout.unwrap_or(runtime.settings().tool_timeout),
        soft_timeout: params.soft_timeout,
        max_context_tokens: params.max_context_tokens,
        steer_mode: steer_mode(params.steer_mode),
        content: match params.content_mode {
            ContentMode::All => agent::ContentMode::All,
            ContentMode::Final => agent::ContentMode::Final,
        },
    };
    let world = World {
        model: Arc::new(runtime.client.clone()),
        store: runtime.store.clone(),
        tracer: tracer.clone(),
        toolbox: Arc::new(toolbox),
        host: Arc::new(Port::new(outlet.peer().clone(), params.chat_id)),
        grants: Arc::new(grants),
        consents: runtime.consents.clone(),
    };
    let ended = agent::run(turn, world, steering, cancel, &mut outlet).await;
    place.leave_record();
    tell(&runtime, &place, &tracer, &record, &ended, &mut outlet).await;
}

/// What steering does in the agent's words.
pub(super) const fn steer_mode(mode: SteerMode) -> agent::SteerMode {
    match mode {
        SteerMode::Boundary => agent::SteerMode::Boundary,
        SteerMode::Interrupt => agent::SteerMode::Interrupt,
    }
}

async fn tell(
    runtime: &Runtime,
    place: &Place,
    tracer: &Tracer,
    record: &RecordId,
    ended: &Ended,
    outlet: &mut Outlet,
) {
    let names = (tracer.id(), record.as_str());
    let problem = outlet.take_problem();
    let failure = match (&ended.status, &problem) {
        (_, Some(problem)) => Some(problem),
        (agent::Status::Failed(failure), None) => Some(failure),
        (agent::Status::Completed | agent::Status::BudgetExhausted | agent::Status::Cancelled, None) => None,
    };
    if let Some(failure) = failure {
        runtime.log.warning("steerable.turn", format_args!("{}: {}", place.live.id, failure.message));
        return outlet.end(&place.live, &Terminal::Failed(failed(failure, Some(names)))).await;
    }
    let status = match ended.status {
        agent::Status::Completed => "completed",
        agent::Status::BudgetExhausted => "budget_exhausted",
        agent::Status::Cancelled | agent::Status::Failed(_) => "cancelled",
    };
    let (trace_id, record_id) = names;
    let turn = TurnEnd {
        status,
        reason: ended.reason.as_deref(),
        trace_id,
        record_id,
        usage: ended.usage,
        output: ended.output.as_ref(),
    };
    outlet.end(&place.live, &Terminal::Turn(turn)).await;
}

/// Reaches the servers of a turn's tools. One that cannot be reached is told to the host, in the trace and in the log.
async fn reach(
    runtime: &Runtime,
    record: &RecordId,
    servers: &[McpSpec],
    tracer: &Tracer,
    toolbox: &mut Toolbox,
    outlet: &mut Outlet,
) {
    if servers.is_empty() {
        return;
    }
    let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    let told = Map::from_iter([("servers".to_owned(), json!(names))]);
    let span = tracer.span("mcp.connect", SpanKind::Transport, None, told);
    let offer = runtime.servers().tools_of(record.as_str(), servers).await;
    let mut told = Map::new();
    let mut status = SpanStatus::Ok;
    for server in &offer.servers {
        let since = match server.since {
            Since::Now => "now",
            Since::Before => "before",
        };
        let mut about = json!({"tools": server.tools, "since": since});
        if let Some(error) = &server.error {
            status = SpanStatus::Error;
            about["error"] = error.problem.as_str().into();
            runtime.log.warning("steerable.mcp", error);
            outlet.notice(Notice::McpUnreachable { server: &server.name, error: &error.problem });
        }
        told.insert(server.name.clone(), about);
    }
    tracer.end_span(span, status, told);
    for tool in offer.tools {
        toolbox.add(tool);
    }
}

fn stated(wishes: &GrantWishes) -> Result<Stated, ErrorObject> {
    let hosts = match &wishes.allowed_hosts {
        None => None,
        Some(hosts) => Some(Hosts::new(hosts).map_err(|(pattern, error)| {
            let message = format!("allowedHosts must be an array of hosts: {pattern}: {error}");
            Kind::InvalidParams.error(message)
        })?),
    };
    Ok(Stated {
        read_roots: wishes.read_roots.clone(),
        write_roots: wishes.write_roots.clone(),
        hosts,
        commands: wishes.commands.map(|commands| match commands {
            CommandsWish::Deny => Commands::Deny,
            CommandsWish::Ask => Commands::Ask,
            CommandsWish::Allow => Commands::Allow,
        }),
    })
}
