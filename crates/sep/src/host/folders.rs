//! Notices that something changed in the folders of extensions, without looking at them all the time.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::net::unix::pipe;
use tokio::time::timeout;

/// A change is reported when it has been quiet for this long: an editor or a copy is not one change but many.
const QUIET: Duration = Duration::from_millis(500);
/// A folder that never becomes quiet is looked at all the same.
const AT_LATEST: Duration = Duration::from_secs(5);

/// Watches some folders, not what is below them.
#[derive(Debug)]
pub(super) struct Folders {
    /// Not a pipe, but it is read like one.
    events: pipe::Receiver,
    /// Those that could not be watched because they are not there.
    pub(super) absent: Vec<PathBuf>,
}

impl Folders {
    /// Watches `folders` from now on. Must be called within a tokio runtime.
    pub(super) fn watch<'a>(folders: impl IntoIterator<Item = &'a Path>) -> io::Result<Self> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let wanted = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::ATTRIB
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR;
        let mut absent = Vec::new();
        for folder in folders {
            match inotify::add_watch(&inotify, folder, wanted) {
                Ok(_) => {}
                Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => absent.push(folder.to_owned()),
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(Self { events: pipe::Receiver::from_owned_fd_unchecked(inotify)?, absent })
    }

    /// Waits until something has changed and then has been quiet for a moment.
    pub(super) async fn changed(&self) -> io::Result<()> {
        self.happened().await?;
        // Whether it became quiet or went on for too long, it is time to look.
        let _ = timeout(AT_LATEST, async { while timeout(QUIET, self.happened()).await.is_ok() {} }).await;
        Ok(())
    }

    /// Waits for something and takes all that waits. What it is does not matter, also not that some of it was lost.
    async fn happened(&self) -> io::Result<()> {
        let mut buffer = [0; 4096];
        let mut any = false;
        loop {
            if !any {
                self.events.readable().await?;
            }
            match self.events.try_read(&mut buffer) {
                Ok(_) => any = true,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && any => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_new_folder_is_noticed_and_nothing_is_not() {
        let place = tempfile::tempdir().expect("a folder");
        let gone = place.path().join("gone");
        let folders = Folders::watch([place.path(), gone.as_path()]).expect("inotify");
        assert_eq!(folders.absent, [gone]);
        assert!(timeout(Duration::from_millis(20), folders.changed()).await.is_err());
        std::fs::create_dir(place.path().join("new")).expect("a folder");
        timeout(Duration::from_secs(10), folders.changed()).await.expect("noticed").expect("readable");
    }
}
