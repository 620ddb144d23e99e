//! `outrigger runs`: the runs of the daemon, from any terminal of its user.

pub(crate) mod args;
mod show;

use std::io::Read;
use std::process::ExitCode;

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};

use self::args::{Answering, RunsArgs, RunsCommand, Submit};
use crate::config::Config;
use crate::daemon::client::{Client, Seen};
use crate::daemon::place::Place;
use crate::say::Format;

/// The longest request that is read from a file.
const MAX_REQUEST: u64 = 8 << 20;

/// The exit code of a run that failed or was cancelled.
const NOT_COMPLETED: u8 = 1;

/// Does what `outrigger runs` was asked for.
pub(crate) fn run(args: RunsArgs, format: Format) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("the async runtime could not be started")?.block_on(go(args, format))
}

async fn go(args: RunsArgs, format: Format) -> anyhow::Result<ExitCode> {
    let place = Place::chosen(args.state.as_deref(), &Config::find(None)?)?;
    let client = Client::find(&place)?;
    let command = args.command.unwrap_or(RunsCommand::List { phase: None, limit: 20 });
    match command {
        RunsCommand::List { phase, limit } => {
            let phase = phase.map(|phase| format!("&phase={phase}")).unwrap_or_default();
            let page = client.get(&format!("/v1/runs?limit={limit}{phase}")).await?;
            show::list(&page, format);
        }
        RunsCommand::Show { run } => {
            let run = find(&client, &run).await?;
            show::run(&client.get(&format!("/v1/runs/{run}")).await?, format);
        }
        RunsCommand::Watch { run, after } => {
            let run = find(&client, &run).await?;
            return watch(&client, &run, after, format).await;
        }
        RunsCommand::Submit(submit) => {
            let body = request(&submit)?;
            let state = client.post("/v1/runs", &body).await?;
            let run = state.get("id").and_then(Value::as_str).context("the daemon did not name the run")?;
            if !submit.watch {
                show::accepted(&state, format);
                return Ok(ExitCode::SUCCESS);
            }
            return watch(&client, run, 0, format).await;
        }
        RunsCommand::Waiting => show::waiting(&client.get("/v1/approvals").await?, format),
        RunsCommand::Approve { answering, always } => {
            let choice = if always { "approve_always" } else { "approve" };
            answer(&client, &answering, json!({"choice": choice}), format).await?;
        }
        RunsCommand::Deny { answering, reason } => {
            let mut body = json!({"choice": "deny"});
            if let Some(reason) = reason {
                body["reason"] = reason.into();
            }
            answer(&client, &answering, body, format).await?;
        }
        RunsCommand::Edit { answering, arguments } => {
            let arguments = json_word("--arguments", &arguments)?;
            answer(&client, &answering, json!({"choice": "edit", "arguments": arguments}), format).await?;
        }
        RunsCommand::Answer { answering, value } => {
            let value = json_word("--value", &value)?;
            answer(&client, &answering, json!({"choice": "answer", "value": value}), format).await?;
        }
        RunsCommand::Steer { run, text } => {
            let run = find(&client, &run).await?;
            client.post(&format!("/v1/runs/{run}/steer"), &json!({"text": text})).await?;
            show::done(&run, "told", format);
        }
        RunsCommand::Cancel { run, why } => {
            let run = find(&client, &run).await?;
            let state = client.post(&format!("/v1/runs/{run}/cancel"), &json!({"why": why})).await?;
            show::run(&state, format);
        }
        RunsCommand::Resume { run } => act(&client, &run, "resume", json!({}), format).await?,
        RunsCommand::Fork { run, at } => {
            let body = at.map_or_else(|| json!({}), |at| json!({"at": at}));
            act(&client, &run, "fork", body, format).await?;
        }
        RunsCommand::Replay { run } => act(&client, &run, "replay", json!({}), format).await?,
        RunsCommand::Receipt { run, check } => {
            let run = find(&client, &run).await?;
            if check {
                let checked = client.get(&format!("/v1/runs/{run}/receipt/check")).await?;
                return Ok(show::checked(&checked, format));
            }
            let text = client.text(&format!("/v1/runs/{run}/receipt")).await?;
            anstream::println!("{}", text.trim_end());
        }
        RunsCommand::Forget { run } => {
            let run = find(&client, &run).await?;
            client.delete(&format!("/v1/runs/{run}")).await?;
            show::done(&run, "forgotten", format);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The run whose id begins like this.
async fn find(client: &Client, beginning: &str) -> anyhow::Result<String> {
    let page = client.get("/v1/runs?limit=200").await?;
    let runs = page.get("runs").and_then(Value::as_array).cloned().unwrap_or_default();
    let ids: Vec<&str> = runs.iter().filter_map(|run| run.get("id")?.as_str()).collect();
    if beginning == "last" {
        return ids.first().map(|id| (*id).to_owned()).context("there are no runs yet");
    }
    let found: Vec<&&str> = ids.iter().filter(|id| id.starts_with(beginning)).collect();
    match (ids.contains(&beginning), found.as_slice()) {
        (true, _) => Ok(beginning.to_owned()),
        (false, [one]) => Ok((**one).to_owned()),
        // It may be older than the page; then its whole id is needed.
        (false, []) => Ok(beginning.to_owned()),
        (false, several) => bail!("{} runs begin with `{beginning}`; give more of the id", several.len()),
    }
}

/// Does something to a run that gives a run.
async fn act(client: &Client, run: &str, verb: &str, body: Value, format: Format) -> anyhow::Result<()> {
    let run = find(client, run).await?;
    show::accepted(&client.post(&format!("/v1/runs/{run}/{verb}"), &body).await?, format);
    Ok(())
}

/// Answers what waits: what is named, or the only thing that does.
async fn answer(client: &Client, answering: &Answering, body: Value, format: Format) -> anyhow::Result<()> {
    let run = find(client, &answering.run).await?;
    let approval = match &answering.approval {
        Some(approval) => approval.clone(),
        None => only_open(&client.get(&format!("/v1/runs/{run}")).await?)?,
    };
    let state = client.post(&format!("/v1/runs/{run}/approvals/{approval}"), &body).await?;
    show::run(&state, format);
    Ok(())
}

fn only_open(state: &Value) -> anyhow::Result<String> {
    let approvals = state.get("approvals").and_then(Value::as_array).cloned().unwrap_or_default();
    let open = approvals.iter().filter(|approval| approval.get("given").is_none_or(Value::is_null));
    let open: Vec<&str> = open.filter_map(|approval| approval.get("id")?.as_str()).collect();
    match open.as_slice() {
        [one] => Ok((*one).to_owned()),
        [] => bail!("nothing waits in this run"),
        several => bail!("{} things wait; name one of {}", several.len(), several.join(", ")),
    }
}

/// Shows what happens in a run until it is over.
async fn watch(client: &Client, run: &str, after: u64, format: Format) -> anyhow::Result<ExitCode> {
    let mut screen = show::Screen::new(format);
    let path = format!("/v1/runs/{run}/events?after={after}");
    client
        .stream(&path, |_, data| {
            if let Ok(record) = serde_json::from_str::<Value>(data) {
                screen.record(&record);
            }
            if screen.is_over() { Seen::Enough } else { Seen::More }
        })
        .await?;
    Ok(if screen.completed() { ExitCode::SUCCESS } else { ExitCode::from(NOT_COMPLETED) })
}

/// What is asked for, from a file and from the arguments, which win.
fn request(submit: &Submit) -> anyhow::Result<Value> {
    let mut body = match &submit.file {
        None => Map::new(),
        Some(path) => {
            let name = path.display();
            let text = match path.as_os_str() == "-" {
                true => read(std::io::stdin(), "standard input")?,
                false => {
                    let file =
                        std::fs::File::open(path).with_context(|| format!("{name} cannot be opened"))?;
                    read(file, &name.to_string())?
                }
            };
            serde_json::from_str(&text).with_context(|| format!("{name} is not a JSON object"))?
        }
    };
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            body.insert(name.to_owned(), value);
        }
    };
    set("task", submit.task.clone().map(Value::from));
    set("backend", submit.backend.clone().map(Value::from));
    set("title", submit.title.clone().map(Value::from));
    set("id", submit.id.clone().map(Value::from));
    if let Some(path) = &submit.script {
        let name = path.display();
        let file =
            std::fs::File::open(path).with_context(|| format!("the script {name} cannot be opened"))?;
        set("script", Some(read(file, &name.to_string())?.into()));
    }
    if submit.step {
        set("step", Some(true.into()));
    }
    if let Some(root) = &submit.workspace {
        let root = std::path::absolute(root).with_context(|| format!("{} is not a path", root.display()))?;
        set(
            "workspace",
            Some(json!({"root": root, "mode": if submit.in_place { "pass_through" } else { "staged" }})),
        );
    }
    if !submit.tools.is_empty() {
        let tools: Map<String, Value> =
            submit.tools.iter().map(|tool| tool.member()).collect::<anyhow::Result<_>>()?;
        set("tools", Some(Value::Object(tools)));
    }
    Ok(Value::Object(body))
}

fn read(from: impl Read, name: &str) -> anyhow::Result<String> {
    let mut text = String::new();
    from.take(MAX_REQUEST + 1).read_to_string(&mut text).with_context(|| format!("{name} cannot be read"))?;
    if text.len() as u64 > MAX_REQUEST {
        bail!("{name} is longer than {MAX_REQUEST} bytes");
    }
    Ok(text)
}

fn json_word(name: &str, text: &str) -> anyhow::Result<Value> {
    serde_json::from_str(text).with_context(|| format!("{name} is not JSON: {text}"))
}
