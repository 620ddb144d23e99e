//! Where kept runs are, and the key that vouches for them.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use outrigger_mustard::host::HostKey;
use outrigger_mustard::host::store::{Capacity, Directory, Listed, RunId, Sqlite, Store, Ticket};

use super::args::StoreArgs;

/// How much is kept.
const CAPACITY: Capacity = Capacity { entries: 10_000, bytes: 1 << 30 };

/// A store and its key.
pub(crate) struct Keep {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) key: HostKey,
    pub(crate) path: PathBuf,
}

/// A kept run, as the user names it.
pub(crate) enum Kept {
    /// Parked behind a ticket.
    Ticket(Ticket),
    /// Left by a host that died.
    Run(RunId),
}

impl Kept {
    /// What `js inspect` lists it as.
    pub(crate) fn name(&self) -> &str {
        match self {
            Kept::Ticket(ticket) => ticket.as_str(),
            Kept::Run(run) => run.as_str(),
        }
    }

    pub(crate) fn ticket(&self) -> Option<&Ticket> {
        match self {
            Kept::Ticket(ticket) => Some(ticket),
            Kept::Run(_) => None,
        }
    }
}

/// Opens the store, and makes it if it is new.
pub(crate) fn open(args: &StoreArgs) -> anyhow::Result<Keep> {
    let named = args.store.clone().or_else(|| std::env::var_os("OUTRIGGER_JS_STORE").map(PathBuf::from));
    let path = match named {
        Some(path) => std::path::absolute(path).context("--store")?,
        None => {
            default_path().context("there is no place for kept runs: set HOME, XDG_DATA_HOME or --store")?
        }
    };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).with_context(|| format!("{} cannot be made", parent.display()))?;
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".key");
    let key = key(&PathBuf::from(beside))?;
    let is_database = path.extension().is_some_and(|ending| ending == "db" || ending == "sqlite");
    let opened = || format!("the store {} cannot be opened", path.display());
    let store: Arc<dyn Store> = if is_database {
        Arc::new(Sqlite::open(&path, key.clone(), CAPACITY).with_context(opened)?)
    } else {
        Arc::new(Directory::open(&path, key.clone(), CAPACITY).with_context(opened)?)
    };
    Ok(Keep { store, key, path })
}

fn default_path() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")))?;
    Some(data.join("outrigger/js"))
}

/// The key in a file that only its user can read. Whoever comes first makes it.
pub(crate) fn key(path: &Path) -> anyhow::Result<HostKey> {
    let name = path.display();
    let fresh = HostKey::random().context("the system has no randomness to give")?;
    // Written elsewhere and linked into place, so that nobody ever reads half a key.
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".{}", std::process::id()));
    let draft = PathBuf::from(draft);
    let made = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft);
    let mut file = made.with_context(|| format!("the key {name} cannot be made"))?;
    file.write_all(fresh.as_bytes())
        .and_then(|()| file.sync_all())
        .with_context(|| format!("the key {name}"))?;
    let linked = std::fs::hard_link(&draft, path);
    std::fs::remove_file(&draft).with_context(|| format!("the key {name}"))?;
    match linked {
        Ok(()) => return Ok(fresh),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error).with_context(|| format!("the key {name} cannot be made")),
    }
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(path).with_context(|| format!("the key {name} cannot be read"))?;
    opened
        .take(HostKey::BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("the key {name}"))?;
    match <[u8; HostKey::BYTES]>::try_from(bytes) {
        Ok(bytes) => Ok(HostKey::from_bytes(bytes)),
        Err(bytes) => bail!("the key {name} has {} bytes instead of {}", bytes.len(), HostKey::BYTES),
    }
}

impl Keep {
    /// The kept run whose ticket or run id begins like this.
    pub(crate) fn find(&self, beginning: &str) -> anyhow::Result<Kept> {
        let mut found: Vec<Kept> = Vec::new();
        let listed = self.store.list()?;
        found.extend(
            listed
                .into_iter()
                .filter(|listed| listed.ticket.as_str().starts_with(beginning))
                .map(|listed| Kept::Ticket(listed.ticket)),
        );
        let unfinished = self.store.unfinished()?;
        found.extend(unfinished.into_iter().filter(|run| run.as_str().starts_with(beginning)).map(Kept::Run));
        let path = self.path.display();
        match found.len() {
            0 => bail!("no kept run in {path} begins with `{beginning}`; `outrigger js inspect` lists them"),
            1 => Ok(found.swap_remove(0)),
            several => {
                bail!("{several} kept runs in {path} begin with `{beginning}`; give more of the ticket")
            }
        }
    }

    /// All tickets, the newest last.
    pub(crate) fn list(&self) -> anyhow::Result<Vec<Listed>> {
        let mut listed = self.store.list()?;
        listed.sort_by_key(|listed| listed.record.as_ref().map_or(0, |record| record.stored_at.0));
        Ok(listed)
    }
}
