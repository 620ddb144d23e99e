//! `outrigger up`: the daemon from its first breath to its last.

use std::io::IsTerminal;
use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::app::{App, Entrance};
use super::args::{DownArgs, UpArgs};
use super::client::Client;
use super::place::{Place, UpNote};
use super::{assemble, browser, example};
use crate::args::StdinArg;
use crate::config::Config;
use crate::exec::owner::{Owner, Wish};
use crate::http;
use crate::runs::service::Complaints;
use crate::say::{self, Format, label};

/// How many ports are tried.
const PORTS: u16 = 20;

/// How long what is under way may take to stand still.
const DRAIN: Duration = Duration::from_secs(20);

/// How often old runs are looked for.
const TIDY: Duration = Duration::from_secs(3600);

/// Does what `outrigger up` was asked for.
pub(crate) fn up(args: UpArgs, format: Format) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("the async runtime could not be started")?;
    let code = runtime.block_on(go(args, format));
    // What does not let itself be stopped does not hold up the exit.
    runtime.shutdown_timeout(Duration::from_secs(2));
    code
}

/// Does what `outrigger down` was asked for.
pub(crate) fn down(args: DownArgs, format: Format) -> anyhow::Result<ExitCode> {
    let place = Place::chosen(args.place.state.as_deref(), &Config::find(None)?)?;
    let Some(note) = place.read_note()? else {
        bail!("no daemon is up in {}", place.root().display());
    };
    let Some(pid) = place.holder() else {
        place.remove_note();
        bail!("no daemon is up in {}; the last one was killed", place.root().display());
    };
    let holder = pid.as_raw_nonzero();
    // The number was read from a lock that is held now, so it is nobody else's.
    rustix::process::kill_process(pid, rustix::process::Signal::TERM)
        .with_context(|| format!("process {holder} cannot be told to leave"))?;
    let until = Instant::now() + DRAIN + Duration::from_secs(15);
    while place.holder().is_some() {
        if Instant::now() > until {
            bail!(
                "process {holder} was told to leave and is still there; `kill -9 {holder}` loses nothing that was accepted"
            );
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    match format {
        Format::Json => say::line(&json!({ "event": "down", "pid": holder.get() })),
        Format::Text => anstream::eprintln!("{}: the daemon at {} is down", label(), note.address),
    }
    Ok(ExitCode::SUCCESS)
}

async fn go(args: UpArgs, format: Format) -> anyhow::Result<ExitCode> {
    let config = Config::find(args.config.as_deref())?;
    let place = Place::chosen(args.place.state.as_deref(), &config)?;
    if args.link {
        return link(&place, format).await;
    }
    place.make()?;
    let mut owner = Owner::watch(StdinArg::Null)?;
    let opened = match crate::engine::sqlite::Sqlite::open(&place.store()) {
        Ok(opened) => opened,
        Err(error) => return second(&place, error, format).await,
    };
    let is_new = crate::engine::Engine::labels(&opened).await?.is_empty();
    let complaints = complaints(format);
    let store = opened.clone();
    let built = assemble::assemble(&config, &place, Arc::new(opened), complaints).await?;
    let listener = bind(&args, &config)?;
    let address = listener.local_addr().context("the port cannot be told")?;
    let entrance = Entrance::new(place.token()?);
    let code = entrance.code().context("the system has no randomness to give")?;
    let app = Arc::new(App {
        runs: built.runs.clone(),
        supervisor: built.supervisor.clone(),
        extensions: built.extensions,
        entrance,
        since: Instant::now(),
        address,
        store_bytes: Box::new(move || store.size()),
        hosts: config.server.hosts.clone(),
    });
    let (leave, leaving) = watch::channel(false);
    let mut serving =
        tokio::spawn(http::serve(listener, Arc::clone(&app), assemble::limits(&config), gone(leaving)));
    built.runs.work();
    if is_new && !args.no_example {
        example::submit(&built.runs).await.context("the example cannot be made")?;
    }
    place.write_note(&UpNote { address, pid: std::process::id() })?;
    let url = format!("http://{address}/login?code={code}");
    announce(&place, address, &url, format);
    if !args.no_open && format == Format::Text && std::io::stderr().is_terminal() {
        browser::open(&built.supervisor, &url);
    }
    let housekeeping = tokio::spawn(keep_house(Arc::clone(&app)));
    let stopped = tokio::select! {
        wish = owner.next() => Ok(wish),
        served = &mut serving => Err(served),
    };
    housekeeping.abort();
    if let Ok(Wish::Stop) = stopped {
        if format == Format::Text {
            anstream::eprintln!(
                "{}: letting what is under way stand still; once more to leave at once",
                label()
            );
        }
        let draining = async {
            built.runs.drain(DRAIN).await;
            leave.send_replace(true);
            // A reader that does not read does not hold us up; the server has its own patience.
            let _ = (&mut serving).await;
            if let super::Extensions::On(fleet) = &app.extensions {
                fleet.shutdown().await;
            }
        };
        tokio::select! {
            () = draining => {}
            _ = owner.next() => {}
        }
    }
    place.remove_note();
    if let Err(served) = stopped {
        served.context("the server failed inside")?;
    }
    match format {
        Format::Json => say::line(&json!({ "event": "down" })),
        Format::Text => anstream::eprintln!("{}: down", label()),
    }
    Ok(ExitCode::SUCCESS)
}

async fn gone(mut leaving: watch::Receiver<bool>) {
    // A sender that is gone is as good as one that says so.
    let _ = leaving.wait_for(|leaving| *leaving).await;
}

/// Somebody else has the store: says who and where.
async fn second(
    place: &Place,
    error: crate::engine::EngineError,
    format: Format,
) -> anyhow::Result<ExitCode> {
    let Some(holder) = place.holder().map(|pid| pid.as_raw_nonzero()) else { return Err(error.into()) };
    let Some(note) = place.read_note()? else {
        bail!("another daemon (process {holder}) is starting or leaving in {}", place.root().display());
    };
    let link = match Client::find(place) {
        Ok(client) => client.post("/v1/links", &json!({})).await.ok(),
        Err(_) => None,
    };
    let link = link.and_then(|link| Some(link.get("url")?.as_str()?.to_owned()));
    if format == Format::Json {
        say::line(
            &json!({ "event": "already_up", "pid": holder.get(), "address": note.address, "link": link }),
        );
        return Ok(ExitCode::FAILURE);
    }
    let link = link.map(|link| format!("\n  dashboard  {link}")).unwrap_or_default();
    anstream::eprintln!(
        "{}: a daemon is up already: process {holder}, http://{}{link}\n  `outrigger down` ends it; --state gives another one a folder of its own",
        label(),
        note.address
    );
    Ok(ExitCode::FAILURE)
}

/// Another link to the daemon that is up.
async fn link(place: &Place, format: Format) -> anyhow::Result<ExitCode> {
    let made = Client::find(place)?.post("/v1/links", &json!({})).await?;
    let url = made.get("url").and_then(serde_json::Value::as_str).context("the daemon made no link")?;
    match format {
        Format::Json => say::line(&made),
        Format::Text => anstream::println!("{url}"),
    }
    Ok(ExitCode::SUCCESS)
}

/// The port that was asked for, or the first free one.
fn bind(args: &UpArgs, config: &Config) -> anyhow::Result<TcpListener> {
    let ip: IpAddr = config.server.address;
    if let Some(port) = args.port {
        let address = SocketAddr::new(ip, port);
        return http::listen(address)
            .with_context(|| format!("{address} cannot be listened on; --port takes another"));
    }
    let first = config.server.port;
    let mut last = None;
    for port in (first..=first.saturating_add(PORTS)).filter(|port| *port > 0) {
        match http::listen(SocketAddr::new(ip, port)) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = Some(error),
        }
    }
    let why = last.map(|error| error.to_string()).unwrap_or_default();
    bail!(
        "none of the ports {first} to {} of {ip} can be listened on: {why}; --port takes another",
        first.saturating_add(PORTS)
    )
}

fn announce(place: &Place, address: SocketAddr, url: &str, format: Format) {
    if format == Format::Json {
        return say::members(&[
            ("event", "up".into()),
            ("address", address.to_string().into()),
            ("pid", std::process::id().into()),
            ("link", url.into()),
            ("state", place.root().display().to_string().into()),
            ("token_file", place.token_path().display().to_string().into()),
        ]);
    }
    anstream::eprintln!("{}: up", label());
    anstream::eprintln!("  dashboard  {url}  (this link lets one browser in, once)");
    anstream::eprintln!(
        "  API        http://{address}/v1/  with the token in {}",
        place.token_path().display()
    );
    anstream::eprintln!("  kept in    {}", place.root().display());
    anstream::eprintln!("  Ctrl-C ends it; `outrigger runs` talks to it from another terminal");
}

/// Where complaints of the daemon go: the terminal, or the one who reads JSON.
fn complaints(format: Format) -> Complaints {
    Box::new(move |what| match format {
        Format::Json => say::line(&json!({ "event": "warning", "message": what })),
        Format::Text => anstream::eprintln!("{}: {}", label(), say::printable(what)),
    })
}

/// Forgets old runs now and then for as long as the daemon is up.
async fn keep_house(app: Arc<App>) {
    let mut tidy = tokio::time::interval(TIDY);
    loop {
        tidy.tick().await;
        // A store that cannot be tidied complains elsewhere, in whatever is done next.
        let _ = app.runs.tidy().await;
    }
}
