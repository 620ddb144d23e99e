//! `outrigger trace`: what a turn did, as a waterfall; or its events; or the whole of it for a collector.

mod waterfall;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use outrigger_steerable::net::Http;
use outrigger_steerable::protocol::{Privacy, Span, Trace, TraceEvent};
use outrigger_steerable::store::TraceTree;
use outrigger_steerable::store::otlp;
use serde_json::{Value, json};

use crate::chat;
use crate::say::{self, Format, printable, short};

/// How long a collector has to answer.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// How many traces are listed.
const LISTED: usize = 20;

#[derive(Args)]
#[command(after_help = "\
Examples:
  outrigger trace                            the last turns of all conversations
  outrigger trace trace_0123…                one of them, as a picture
  outrigger trace trace_0123… --events       and everything that happened in it
  outrigger trace trace_0123… --json | jq .spans
  outrigger trace trace_0123… --export http://127.0.0.1:4318")]
pub(crate) struct TraceArgs {
    /// Which trace, or the beginning of its name; without one the last are listed.
    id: Option<String>,

    /// The storage to look into [default: those of all conversations].
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,

    /// Show the events too.
    #[arg(long)]
    events: bool,

    /// Send it to an OpenTelemetry collector (OTLP over HTTP, as JSON).
    #[arg(long, value_name = "URL", requires = "id")]
    export: Option<String>,

    /// How much of it is exported.
    #[arg(long, value_enum, value_name = "WHAT", default_value = "metadata", requires = "export")]
    privacy: PrivacyArg,

    /// The name of the service that is exported.
    #[arg(long, value_name = "NAME", default_value = "outrigger", requires = "export")]
    service: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum PrivacyArg {
    /// Names, times, counts.
    Metadata,
    /// Texts too, without secrets.
    Full,
}

/// Does what `outrigger trace` was asked for.
pub(crate) fn run(args: TraceArgs, format: Format) -> anyhow::Result<ExitCode> {
    let Some(id) = &args.id else {
        return list(&args, format);
    };
    let tree = chat::find_trace(id, args.store.as_deref())?;
    if let Some(endpoint) = &args.export {
        return export(&tree, endpoint, &args, format);
    }
    match format {
        Format::Json => {
            say::object(&json!({ "trace": tree.trace, "spans": tree.spans, "events": tree.events }))
        }
        Format::Text => {
            print(&tree.trace, &tree.spans);
            if args.events {
                print_events(&tree.trace, &tree.events);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Draws a trace on standard output.
pub(crate) fn print(trace: &Trace, spans: &[Span]) {
    let dim = anstyle::Style::new().dimmed();
    let mut facts = vec![trace.status.to_string()];
    facts.extend(trace.duration_ms.map(waterfall::duration));
    facts.extend(trace.model_id.clone());
    facts.extend(trace.total_tokens.map(|tokens| format!("{tokens} tokens")));
    facts.push(format!("{} events", trace.event_count));
    anstream::println!("{} {dim}{}{dim:#}", printable(&trace.trace_id), printable(&facts.join(" · ")));
    if let Some(error) = &trace.error_message {
        anstream::println!("  {}", short(error));
    }
    anstream::print!("{}", waterfall::draw(trace, spans, columns()));
}

fn print_events(trace: &Trace, events: &[TraceEvent]) {
    let dim = anstyle::Style::new().dimmed();
    let began = trace.started_at_ms.or_else(|| events.first().map(|event| event.timestamp_ms)).unwrap_or(0);
    for event in events {
        let after = waterfall::duration(event.timestamp_ms.saturating_sub(began));
        let payload =
            event.payload.clone().map(|members| Value::Object(members).to_string()).unwrap_or_default();
        let (kind, name) = (event.kind.to_string(), printable(&event.name));
        anstream::println!("{after:>10}  {kind:<13} {name} {dim}{}{dim:#}", short(&payload));
    }
}

fn list(args: &TraceArgs, format: Format) -> anyhow::Result<ExitCode> {
    let traces = chat::recent_traces(args.store.as_deref(), LISTED)?;
    for trace in &traces {
        match format {
            Format::Json => say::object(trace),
            Format::Text => {
                let took = trace.duration_ms.map(waterfall::duration).unwrap_or_default();
                let model = trace.model_id.as_deref().unwrap_or("-");
                let at = trace.created_at.as_str().get(..19).unwrap_or_default().replace('T', " ");
                anstream::println!(
                    "{}  {at}  {:<16} {took:>9}  {}",
                    trace.trace_id,
                    trace.status.to_string(),
                    short(model)
                );
            }
        }
    }
    if traces.is_empty() && format == Format::Text {
        anstream::eprintln!("there are none yet; outrigger chat makes some");
    }
    Ok(ExitCode::SUCCESS)
}

fn export(tree: &TraceTree, endpoint: &str, args: &TraceArgs, format: Format) -> anyhow::Result<ExitCode> {
    let privacy = match args.privacy {
        PrivacyArg::Metadata => Privacy::Metadata,
        PrivacyArg::Full => Privacy::Full,
    };
    let body = otlp::body(tree, privacy, &args.service);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("the async runtime could not be started")?;
    let status = runtime.block_on(send(endpoint, &body))?;
    if !(200..300).contains(&status) {
        bail!("the collector at {endpoint} answered with {status}");
    }
    match format {
        Format::Json => {
            say::object(&json!({ "event": "exported", "trace": tree.trace.trace_id, "status": status }))
        }
        Format::Text => anstream::println!("{} was sent: {status}", tree.trace.trace_id),
    }
    Ok(ExitCode::SUCCESS)
}

/// Sends the body of a request to a collector; its answer's status.
async fn send(endpoint: &str, body: &Value) -> anyhow::Result<u16> {
    let (client, mut url) = Http::new().open(endpoint).with_context(|| format!("--export {endpoint}"))?;
    if matches!(url.path(), "" | "/") {
        url.set_path("/v1/traces");
    }
    let request = client.post(url).timeout(PATIENCE).header("content-type", "application/json");
    let answer = request.body(body.to_string()).send().await;
    Ok(answer.with_context(|| format!("the collector at {endpoint} cannot be reached"))?.status().as_u16())
}

/// How many columns there are.
fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    size.ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0).unwrap_or(100)
}
