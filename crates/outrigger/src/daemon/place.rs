//! Where a daemon keeps things: one folder that only its user can read.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::Pid;
use serde::{Deserialize, Serialize};

use super::app::secret;
use crate::config::Config;

/// The longest token file, and note.
const MAX_SMALL: u64 = 4096;

/// A daemon's folder.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    root: PathBuf,
}

/// What a daemon that is up leaves for those who want to talk to it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct UpNote {
    pub(crate) address: SocketAddr,
    pub(crate) pid: u32,
}

impl Place {
    /// The folder: as said, as configured, or the user's own.
    pub(crate) fn chosen(named: Option<&Path>, config: &Config) -> anyhow::Result<Self> {
        Self::find(named.or(config.store.state_dir.as_deref()))
    }

    /// The folder that is named, or the user's own.
    fn find(named: Option<&Path>) -> anyhow::Result<Self> {
        if let Some(named) = named {
            let root =
                std::path::absolute(named).with_context(|| format!("{} is not a path", named.display()))?;
            return Ok(Self { root });
        }
        let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
        let state =
            state.context("there is no place for state: give --state, or set XDG_STATE_HOME or HOME")?;
        Ok(Self { root: state.join("outrigger/daemon") })
    }

    /// Makes the folder, for its user alone.
    pub(crate) fn make(&self) -> anyhow::Result<()> {
        let name = self.root.display();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.root)
            .with_context(|| format!("the folder {name} cannot be made"))?;
        // One that was there before may be open to others.
        std::fs::set_permissions(&self.root, std::os::unix::fs::PermissionsExt::from_mode(0o700))
            .with_context(|| format!("the folder {name} cannot be closed to others"))
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.root.join("runs.sqlite")
    }

    pub(crate) fn receipts(&self) -> PathBuf {
        self.root.join("receipts")
    }

    pub(crate) fn stages(&self) -> PathBuf {
        self.root.join("stages")
    }

    /// Folders of runs that were given none.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.root.join("work")
    }

    /// The process that has the store open, if one has.
    pub(crate) fn holder(&self) -> Option<Pid> {
        let lock = File::open(self.root.join("runs.sqlite.lock")).ok()?;
        match flock(&lock, FlockOperation::NonBlockingLockShared) {
            Err(Errno::WOULDBLOCK) => {}
            // Closing the file gives it back.
            Ok(()) | Err(_) => return None,
        }
        let mut text = String::new();
        lock.take(32).read_to_string(&mut text).ok()?;
        Pid::from_raw(text.trim().parse().ok()?)
    }

    /// The token of the API, made when it is first asked for.
    pub(crate) fn token(&self) -> anyhow::Result<String> {
        let path = self.token_path();
        if let Some(token) = self.read_token()? {
            return Ok(token);
        }
        let token = secret().context("the system has no randomness to give")?;
        write_private(&path, &token)?;
        Ok(token)
    }

    /// The token, if there is one.
    pub(crate) fn read_token(&self) -> anyhow::Result<Option<String>> {
        let path = self.token_path();
        let Some(text) = read_small(&path)? else { return Ok(None) };
        let token = text.trim();
        if token.len() < 32 {
            bail!("{} is not a token; remove it, and `outrigger up` makes a new one", path.display());
        }
        Ok(Some(token.to_owned()))
    }

    pub(crate) fn token_path(&self) -> PathBuf {
        self.root.join("token")
    }

    fn note_path(&self) -> PathBuf {
        self.root.join("up.json")
    }

    /// Says where the daemon is.
    pub(crate) fn write_note(&self, note: &UpNote) -> anyhow::Result<()> {
        write_private(&self.note_path(), &serde_json::to_string(note)?)
    }

    /// Where the daemon is, or was when it was killed.
    pub(crate) fn read_note(&self) -> anyhow::Result<Option<UpNote>> {
        let path = self.note_path();
        let Some(text) = read_small(&path)? else { return Ok(None) };
        let note =
            serde_json::from_str(&text).with_context(|| format!("{} cannot be read", path.display()))?;
        Ok(Some(note))
    }

    /// The daemon is gone.
    pub(crate) fn remove_note(&self) {
        // One that stays says where nobody is; whoever believes it finds nobody there.
        let _ = std::fs::remove_file(self.note_path());
    }
}

/// Writes a file that only its user can read, whole or not at all.
fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    let draft = path.with_extension(format!("draft-{}", std::process::id()));
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&draft, path)
    })();
    written.with_context(|| format!("{} cannot be written", path.display()))
}

fn read_small(path: &Path) -> anyhow::Result<Option<String>> {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("{} cannot be read", path.display())),
        Ok(data) if data.len() > MAX_SMALL => {
            bail!("{} has {} bytes; that is not one of ours", path.display(), data.len())
        }
        Ok(_) => {}
    }
    std::fs::read_to_string(path).map(Some).with_context(|| format!("{} cannot be read", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_token_is_made_once_and_only_its_user_can_read_it() {
        let temporary = tempfile::tempdir().unwrap();
        let place = Place::find(Some(&temporary.path().join("state"))).unwrap();
        place.make().unwrap();
        let token = place.token().unwrap();
        assert_eq!(token.len(), 48);
        assert_eq!(place.token().unwrap(), token);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&place.token_path()), mode(place.root())), (0o600, 0o700));
        std::fs::write(place.token_path(), "short").unwrap();
        assert!(place.token().unwrap_err().to_string().contains("remove it"));
    }

    #[test]
    fn the_note_of_a_daemon_is_there_while_it_is_up() {
        let temporary = tempfile::tempdir().unwrap();
        let place = Place::find(Some(temporary.path())).unwrap();
        assert!(place.read_note().unwrap().is_none());
        place.write_note(&UpNote { address: "127.0.0.1:7700".parse().unwrap(), pid: 7 }).unwrap();
        assert_eq!(place.read_note().unwrap().unwrap().pid, 7);
        place.remove_note();
        assert!(place.read_note().unwrap().is_none());
        std::fs::write(place.root().join("up.json"), "x".repeat(5000)).unwrap();
        assert!(place.read_note().is_err());
    }
}
