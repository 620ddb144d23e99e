//! `outrigger ext up`: the host itself, in the foreground.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anstyle::{AnsiColor, Style};
use anyhow::{Context, bail};
use outrigger_sep::config::{Activation, TracePolicy};
use outrigger_sep::host::control::{AddressBook, Door, SOCKET};
use outrigger_sep::host::life::platform::{Script, SimPlatform};
use outrigger_sep::host::{Begin, Fleet, FleetOptions, Happening};
use outrigger_sep::mesh::lxmf::{Interface, Lxmf, LxmfOptions};
use outrigger_sep::mesh::{Address, Embedded, EmbeddedOptions, Entry, Messaging};
use outrigger_sep::protocol::{Profile, State};
use outrigger_supervise::driver::{Settings, Supervisor};
use outrigger_supervise::launch::Launcher;
use outrigger_supervise::sandbox::{Level, probe};
use outrigger_wire::peer::BoxFuture;
use serde_json::json;
use tokio::sync::Notify;
use tokio::sync::broadcast::error::RecvError;

use super::args::{Backend, Place, UpArgs};
use super::place::{Site, facts_of};
use crate::args::StdinArg;
use crate::exec::owner::{Owner, Wish};
use crate::say::{self, Format, printable};
use crate::trees;

/// Extensions that may be starting at the same time.
const STARTING: NonZeroUsize = NonZeroUsize::new(4).unwrap();

pub(crate) async fn up(args: UpArgs, format: Format) -> anyhow::Result<ExitCode> {
    let mut site = args.place.site()?;
    if args.trace && site.policy.trace == TracePolicy::Off {
        site.policy.trace = TracePolicy::Redacted;
    }
    if args.lazy {
        site.policy.activation = Activation::Lazy;
    }
    if let Some(pid) = already_up(&site).await {
        bail!("a host is up in {} already: process {pid}", site.home.display());
    }
    let launcher = Launcher::current_exe().with_spare();
    let settings = Settings { launcher: launcher.clone(), starting_at_once: STARTING };
    let supervisor = match trees::open() {
        Ok((leftovers, _)) => Supervisor::with_leftovers(settings, leftovers),
        Err(_) => Supervisor::new(settings),
    };
    let node = Node::open(&args, &site, &supervisor).await?;
    let profile = if args.phone.is_some() { Profile::Android } else { Profile::Desktop };
    let fleet = start(&site, supervisor, &launcher, Arc::clone(&node.messaging), profile).await?;
    let door = Door::open(&fleet)?;
    let happenings = fleet.listen();
    announce(&site, &node, &door, format);

    let mut owner = Owner::watch(StdinArg::Lifeline)?;
    let stop = Arc::new(Notify::new());
    let wish = tokio::select! {
        wish = owner.next() => wish,
        () = stop.notified() => Wish::Stop,
        () = door.serve(fleet.clone(), node.book, Arc::clone(&stop)) => Wish::Stop,
        () = tell(happenings, format) => Wish::Stop,
        () = play(&fleet, args.phone.clone()) => Wish::Stop,
        scanned = fleet.keep_scanning() => {
            scanned.context("the folders of extensions cannot be watched")?;
            Wish::Stop
        }
    };
    if wish == Wish::Stop {
        let mut happenings = fleet.listen();
        let leaving = fleet.shutdown();
        let talking = async {
            while let Ok(happening) = happenings.recv().await {
                show(&happening, format);
            }
        };
        tokio::select! {
            () = leaving => {}
            () = talking => {}
            _ = owner.next() => {}
        }
    }
    if format == Format::Json {
        say::line(&json!({ "event": "down" }));
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts the host of a site.
async fn start(
    site: &Site,
    supervisor: Supervisor,
    launcher: &Launcher,
    messaging: Arc<dyn Messaging>,
    profile: Profile,
) -> anyhow::Result<Fleet> {
    for folder in &site.policy.extensions_dirs {
        std::fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    }
    let auto_level =
        match probe(launcher).await.context("no program can be launched on this machine")?.auto_level {
            Level::Off => "off",
            Level::Basic => "basic",
            Level::Strict | Level::Auto | Level::Required => "strict",
        };
    let options = FleetOptions {
        policy: site.policy.clone(),
        facts: facts_of(profile),
        supervisor,
        messaging,
        auto_level,
        seed: std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos() as u64),
        begin: Begin::Running,
    };
    Ok(Fleet::start(options).await?)
}

/// A host inside the daemon: with the embedded network, and with the same door for `outrigger ext`.
pub(crate) struct Hosted {
    pub(crate) fleet: Fleet,
    door: Door,
    book: Arc<dyn AddressBook>,
}

impl Hosted {
    /// Starts it in this folder, or in the user's own.
    pub(crate) async fn open(home: Option<PathBuf>, supervisor: &Supervisor) -> anyhow::Result<Self> {
        let site = Place { home, policy: None, extensions: Vec::new() }.site()?;
        if let Some(pid) = already_up(&site).await {
            bail!(
                "a host is up in {} already: process {pid}; `outrigger ext down` ends it",
                site.home.display()
            );
        }
        let node = Node::embedded(&site, None, Node::name(None))?;
        let launcher = Launcher::current_exe();
        let fleet = start(&site, supervisor.clone(), &launcher, node.messaging, Profile::Desktop).await?;
        let door = Door::open(&fleet)?;
        Ok(Self { fleet, door, book: node.book })
    }

    /// Serves the door and watches the folders for as long as this is awaited.
    pub(crate) async fn serve(self) {
        let stop = Arc::new(Notify::new());
        tokio::select! {
            () = self.door.serve(self.fleet.clone(), self.book, stop) => {}
            // Folders that cannot be watched are scanned when somebody asks.
            _ = self.fleet.keep_scanning() => {}
        }
    }
}

/// Plays what a phone does; when it has nothing more to do, things stay as they are.
async fn play(fleet: &Fleet, script: Option<Script>) {
    if let Some(script) = script {
        fleet.follow(SimPlatform::new(script)).await;
    }
    std::future::pending().await
}

/// The process that serves the socket in the state, if one does. The lock of the state decides; this is for the message.
async fn already_up(site: &Site) -> Option<i32> {
    let stream = tokio::net::UnixStream::connect(site.policy.state_dir.join(SOCKET)).await.ok()?;
    stream.peer_cred().ok()?.pid()
}

/// The network and the people it knows.
struct Node {
    messaging: Arc<dyn Messaging>,
    book: Arc<dyn AddressBook>,
    name: String,
    what: String,
}

impl Node {
    /// What a node is called.
    fn name(given: Option<String>) -> String {
        let name = given.or_else(|| std::env::var("USER").ok().filter(|user| !user.is_empty()));
        name.unwrap_or_else(|| "outrigger".to_owned())
    }

    /// The network in a SQLite file.
    fn embedded(site: &Site, mesh: Option<PathBuf>, name: String) -> anyhow::Result<Self> {
        std::fs::create_dir_all(&site.home)
            .with_context(|| format!("{} cannot be made", site.home.display()))?;
        let path = mesh.unwrap_or_else(|| site.home.join("mesh.sqlite"));
        let mesh = Arc::new(open_mesh(&path, &name)?);
        let what = path.display().to_string();
        Ok(Self { messaging: Arc::clone(&mesh) as _, book: Arc::new(Book(mesh)), name, what })
    }

    async fn open(args: &UpArgs, site: &Site, supervisor: &Supervisor) -> anyhow::Result<Self> {
        let name = Self::name(args.name.clone());
        match args.backend {
            Backend::Embedded => Self::embedded(site, args.mesh.clone(), name),
            Backend::Lxmf => {
                std::fs::create_dir_all(&site.home)
                    .with_context(|| format!("{} cannot be made", site.home.display()))?;
                let listen = args.listen.map(Interface::Listen);
                let options = LxmfOptions {
                    packages: args.packages.clone(),
                    interfaces: listen.into_iter().chain(args.connect.map(Interface::Connect)).collect(),
                    ..LxmfOptions::usual(site.home.join("lxmf"), name.clone())
                };
                let lxmf = Arc::new(Lxmf::start(supervisor, options).await?);
                Ok(Self {
                    messaging: Arc::clone(&lxmf) as _,
                    book: Arc::new(LxmfBook(lxmf)),
                    name,
                    what: "LXMF over Reticulum".to_owned(),
                })
            }
        }
    }
}

fn open_mesh(path: &Path, name: &str) -> anyhow::Result<Embedded> {
    Ok(Embedded::open(path, EmbeddedOptions::named(name))?)
}

struct Book(Arc<Embedded>);

impl AddressBook for Book {
    fn add(&self, name: String, address: Address) -> BoxFuture<Result<u64, String>> {
        let adding = self.0.contact_add(entry(name, address));
        Box::pin(async move { adding.await.map_err(|error| error.to_string()) })
    }

    fn remove(&self, number: u64) -> BoxFuture<Result<(), String>> {
        let removing = self.0.contact_remove(number);
        Box::pin(async move { removing.await.map_err(|error| error.to_string()) })
    }
}

struct LxmfBook(Arc<Lxmf>);

impl AddressBook for LxmfBook {
    fn add(&self, name: String, address: Address) -> BoxFuture<Result<u64, String>> {
        let adding = self.0.contact_add(entry(name, address));
        Box::pin(async move { adding.await.map_err(|error| error.to_string()) })
    }

    fn remove(&self, number: u64) -> BoxFuture<Result<(), String>> {
        let removing = self.0.contact_remove(number);
        Box::pin(async move { removing.await.map_err(|error| error.to_string()) })
    }
}

fn entry(name: String, address: Address) -> Entry {
    Entry { name, identity: address, lxmf: Some(address), lxst: None }
}

fn announce(site: &Site, node: &Node, door: &Door, format: Format) {
    let address = node.messaging.own_address();
    match format {
        Format::Json => say::line(&json!({
            "event": "up",
            "home": site.home.display().to_string(),
            "control": door.path().display().to_string(),
            "node": node.name,
            "address": address,
            "extensions": site.policy.extensions_dirs.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>(),
        })),
        Format::Text => {
            let bold = Style::new().bold();
            anstream::eprintln!("{bold}up{bold:#} in {}", site.home.display());
            anstream::eprintln!("  node        {} {address}, {}", printable(&node.name), node.what);
            for dir in &site.policy.extensions_dirs {
                anstream::eprintln!("  extensions  {}", dir.display());
            }
            anstream::eprintln!("  Ctrl-C stops everything");
        }
    }
}

async fn tell(mut happenings: tokio::sync::broadcast::Receiver<Arc<Happening>>, format: Format) {
    loop {
        match happenings.recv().await {
            Ok(happening) => show(&happening, format),
            Err(RecvError::Lagged(missed)) => match format {
                Format::Json => say::line(&json!({ "event": "missed", "count": missed })),
                Format::Text => anstream::eprintln!("  … {missed} changes were too fast to be shown"),
            },
            Err(RecvError::Closed) => return,
        }
    }
}

/// One happening, as a line.
pub(crate) fn show(happening: &Happening, format: Format) {
    if format == Format::Json {
        return say::object(happening);
    }
    match happening {
        Happening::Changed { ext, to, cause, detail, .. } => {
            let style = match to {
                State::Ready => Style::new().fg_color(Some(AnsiColor::Green.into())),
                State::Failed | State::Disabled | State::Invalid | State::Blocked => {
                    Style::new().fg_color(Some(AnsiColor::Red.into()))
                }
                State::Backoff | State::Unresponsive | State::NeedsConsent => {
                    Style::new().fg_color(Some(AnsiColor::Yellow.into()))
                }
                _ => Style::new(),
            };
            let name = ext.as_ref().map_or_else(|| "?".to_owned(), ToString::to_string);
            let detail =
                detail.as_ref().map_or_else(String::new, |detail| format!(": {}", printable(detail)));
            anstream::eprintln!("  {name:<40} {style}{to:<13}{style:#} {cause}{detail}");
        }
        Happening::Ended { ext, exit } => {
            let name = ext.as_ref().map_or_else(|| "?".to_owned(), ToString::to_string);
            if exit.counted {
                for words in exit.last_words.iter().rev().take(5).rev() {
                    anstream::eprintln!("  {name:<40} | {}", printable(words));
                }
            }
        }
        Happening::Scanned { found: 0, .. } => {
            anstream::eprintln!(
                "  there are no extensions yet; `outrigger ext new org.example.hello` makes one"
            );
        }
        Happening::Scanned { .. } => {}
    }
}
