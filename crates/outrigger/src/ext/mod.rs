//! `outrigger ext`: the host of extensions and everything that can be asked of it.

pub(crate) mod args;
mod ask;
mod author;
mod place;
mod show;
pub(crate) mod up;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use outrigger_sep::host::control::{HAPPENED, MISSED};
use outrigger_sep::host::record::{audit, log};
use outrigger_sep::protocol::{ExtensionId, Permission, TrustLevel};
use outrigger_supervise::launch::Launcher;
use outrigger_supervise::sandbox::{Level, probe};
use outrigger_wire::peer::{Answer, BoxFuture, Call, Deadline, Handler, NoMethods, Note};
use serde_json::{Value, json};

use self::args::{
    AuditCommand, CallArgs, ContactsCommand, ExtCommand, LogsArgs, MessageCommand, One, Permissions, Place,
    SandboxCommand, UiArgs,
};
use self::ask::{Host, Needs};
use crate::say::{self, Format};

/// Does what `outrigger ext` was asked for.
pub(crate) fn run(command: ExtCommand, format: Format) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.context("the async runtime could not be started")?;
    let outcome = runtime.block_on(serve(command, format));
    // Whatever still reads standard input must not hold us.
    runtime.shutdown_background();
    outcome
}

async fn serve(command: ExtCommand, format: Format) -> anyhow::Result<ExitCode> {
    match command {
        ExtCommand::Up(args) => return up::up(*args, format).await,
        ExtCommand::Down(place) => {
            let Host::Up(peer) = Host::find(&place.site()?, Needs::Up).await? else {
                return Ok(ExitCode::FAILURE);
            };
            peer.call("shutdown", None, Deadline::After(std::time::Duration::from_secs(10))).await?;
            // It serves until its extensions are gone.
            peer.ended().await;
            if format == Format::Json {
                say::line(&json!({ "event": "down" }));
            }
        }
        ExtCommand::Validate(args) => return author::validate(&args, format),
        ExtCommand::New(args) => author::new(&args, format)?,
        ExtCommand::Sign(args) => author::sign(&args, format)?,
        ExtCommand::Trust(One { id, place }) => author::trust(&id, &place, format)?,
        ExtCommand::List(place) => {
            let list = ask(&place, Needs::Any, "list", json!({})).await?;
            show::list(&list, format);
        }
        ExtCommand::Show(One { id, place }) => {
            let detail = ask(&place, Needs::Any, "show", json!({ "id": id })).await?;
            show::detail(&detail, format);
        }
        ExtCommand::Start(one) => change(one, Needs::Up, "start", format).await?,
        ExtCommand::Stop(one) => change(one, Needs::Up, "stop", format).await?,
        ExtCommand::Restart(one) => change(one, Needs::Up, "restart", format).await?,
        ExtCommand::Enable(one) => change(one, Needs::Any, "enable", format).await?,
        ExtCommand::Disable(one) => change(one, Needs::Any, "disable", format).await?,
        ExtCommand::Reset(one) => change(one, Needs::Any, "reset", format).await?,
        ExtCommand::Grant(wanted) => permit(wanted, "grant", format).await?,
        ExtCommand::Revoke(wanted) => permit(wanted, "revoke", format).await?,
        ExtCommand::Call(args) => return call(args, format).await,
        ExtCommand::Logs(args) => logs(args, format).await?,
        ExtCommand::Ui(UiArgs { notices, place }) => {
            let ui = ask(&place, Needs::Any, "ui", json!({})).await?;
            show::ui(&ui, format);
            if notices {
                let notices = ask(&place, Needs::Any, "notices", json!({})).await?;
                show::notices(&notices, format);
            }
        }
        ExtCommand::Metrics(place) => {
            let metrics = ask(&place, Needs::Up, "metrics", json!({})).await?;
            show::metrics(&metrics, format);
        }
        ExtCommand::Trace(One { id, place }) => {
            let frames = ask(&place, Needs::Up, "trace", json!({ "id": id })).await?;
            show::trace(&frames, &id, format);
        }
        ExtCommand::Rescan(place) => {
            let scan = ask(&place, Needs::Up, "rescan", json!({})).await?;
            show::scan(&scan, format);
        }
        ExtCommand::Watch(place) => watch(&place, format).await?,
        ExtCommand::Node(place) => {
            let node = ask(&place, Needs::Up, "node", json!({})).await?;
            match format {
                Format::Json => {
                    say::members(&[("event", json!("node")), ("address", node["address"].clone())])
                }
                Format::Text => anstream::println!("{}", node["address"].as_str().unwrap_or_default()),
            }
        }
        ExtCommand::Message { command } => message(command, format).await?,
        ExtCommand::Contacts { command } => contacts(command, format).await?,
        ExtCommand::Audit { command: AuditCommand::Verify(place) } => return verify(&place, format),
        ExtCommand::Audit { command: AuditCommand::Show { id, lines, place } } => {
            audit_show(&place, id.as_deref(), lines, format)?;
        }
        ExtCommand::Sandbox { command: SandboxCommand::Probe } => return sandbox(format).await,
        ExtCommand::Policy(place) => {
            let policy = place.site()?.policy.to_toml();
            match format {
                Format::Json => say::line(&json!({ "event": "policy", "toml": policy })),
                Format::Text => anstream::print!("{policy}"),
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn ask(place: &Place, needs: Needs, method: &str, params: Value) -> anyhow::Result<Value> {
    let host = Host::find(&place.site()?, needs).await?;
    let answer = host.ask(method, params).await;
    host.done().await;
    answer
}

async fn change(one: One, needs: Needs, method: &str, format: Format) -> anyhow::Result<()> {
    let One { id, place } = one;
    let view = ask(&place, needs, method, json!({ "id": id })).await?;
    show::state(&id, &view, format);
    Ok(())
}

async fn permit(wanted: Permissions, method: &str, format: Format) -> anyhow::Result<()> {
    let Permissions { id, permissions, place } = wanted;
    let permissions =
        permissions.iter().map(|word| Permission::parse(word)).collect::<Result<Vec<_>, _>>()?;
    let params = json!({ "id": id, "permissions": permissions });
    let done = ask(&place, Needs::Any, method, params).await?;
    show::permitted(&id, method, &done, format);
    Ok(())
}

async fn call(args: CallArgs, format: Format) -> anyhow::Result<ExitCode> {
    let CallArgs { id, panel, action, input, place } = args;
    let params = json!({ "panel": format!("{id}/{panel}"), "action": action, "input": input });
    let invoked = ask(&place, Needs::Up, "call", params).await?;
    show::invoked(&invoked, format);
    Ok(ExitCode::from(u8::from(invoked["outcome"] != "ok")))
}

async fn logs(args: LogsArgs, format: Format) -> anyhow::Result<()> {
    let LogsArgs { id, lines, follow, place } = args;
    let site = place.site()?;
    let id = ExtensionId::new(&id)?;
    let folder = site.policy.state_dir.join("logs").join(id.as_str());
    if !folder.is_dir() {
        bail!("{id} has no log: no host has started it in {}", site.home.display());
    }
    // As many files as anybody may have.
    let limits = outrigger_sep::manifest::ceilings(TrustLevel::FirstParty);
    let mut seen = 0;
    let mut wanted = lines;
    loop {
        for line in log::tail_of(&folder, &limits, wanted) {
            if line.seq > seen {
                seen = line.seq;
                show::log_line(&line, format);
            }
        }
        if !follow {
            return Ok(());
        }
        wanted = 1000;
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
}

async fn watch(place: &Place, format: Format) -> anyhow::Result<()> {
    let site = place.site()?;
    let Some(peer) = Host::up(&site, Arc::new(Ear { format })).await? else {
        bail!("no host is up in {}; `outrigger ext up` is one", site.home.display());
    };
    peer.call("watch", None, Deadline::After(std::time::Duration::from_secs(10))).await?;
    let end = peer.ended().await;
    if format == Format::Text {
        anstream::eprintln!("the host is gone: {end}");
    }
    Ok(())
}

/// Hears what a host tells.
struct Ear {
    format: Format,
}

impl Handler for Ear {
    fn request(&self, call: Call) -> Answer {
        NoMethods.request(call)
    }

    fn notification(&self, note: Note) -> Option<BoxFuture<()>> {
        let params: Value =
            note.params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default();
        match note.method.as_str() {
            HAPPENED => show::happened(&params, self.format),
            MISSED => show::missed(&params, self.format),
            _ => {}
        }
        None
    }
}

async fn message(command: MessageCommand, format: Format) -> anyhow::Result<()> {
    match command {
        MessageCommand::Send { to, text, place } => {
            let sent = ask(&place, Needs::Up, "message.send", json!({ "to": to, "text": text })).await?;
            show::sent(&sent, format);
        }
        MessageCommand::List { limit, place } => {
            let messages = ask(&place, Needs::Up, "message.list", json!({ "limit": limit })).await?;
            show::messages(&messages, format);
        }
    }
    Ok(())
}

async fn contacts(command: ContactsCommand, format: Format) -> anyhow::Result<()> {
    match command {
        ContactsCommand::List(place) => {
            let contacts = ask(&place, Needs::Up, "contacts.list", json!({})).await?;
            show::contacts(&contacts, format);
        }
        ContactsCommand::Add { name, address, place } => {
            let params = json!({ "name": name, "address": address });
            let added = ask(&place, Needs::Up, "contacts.add", params).await?;
            show::fields("contact", &added, format);
        }
        ContactsCommand::Remove { number, place } => {
            ask(&place, Needs::Up, "contacts.remove", json!({ "number": number })).await?;
            show::fields("removed", &json!({ "number": number }), format);
        }
    }
    Ok(())
}

fn verify(place: &Place, format: Format) -> anyhow::Result<ExitCode> {
    let folder = place.site()?.policy.state_dir.join("audit");
    match audit::verify(&folder) {
        Ok(verified) => {
            show::verified(&folder, &verified, format);
            Ok(ExitCode::SUCCESS)
        }
        Err(broken) => {
            show::broken(&broken, format);
            Ok(ExitCode::FAILURE)
        }
    }
}

fn audit_show(place: &Place, id: Option<&str>, lines: usize, format: Format) -> anyhow::Result<()> {
    let folder = place.site()?.policy.state_dir.join("audit");
    let path = folder.join("audit.log");
    let text =
        std::fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    let about = |line: &&str| {
        id.is_none_or(|id| serde_json::from_str::<Value>(line).is_ok_and(|record| record["ext"] == id))
    };
    let wanted: Vec<&str> = text.lines().filter(about).collect();
    for line in &wanted[wanted.len().saturating_sub(lines)..] {
        show::record(line, format);
    }
    Ok(())
}

async fn sandbox(format: Format) -> anyhow::Result<ExitCode> {
    let found =
        probe(&Launcher::current_exe()).await.context("no program can be launched on this machine")?;
    let strict = found.auto_level == Level::Strict;
    show::sandbox(&found, format)?;
    Ok(ExitCode::from(u8::from(!strict)))
}
