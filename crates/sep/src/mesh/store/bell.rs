//! How one node wakes another, in this process or in a different one: a named pipe a node. It is also what says that a node is
//! taken (its lock) and that somebody is there at all (its reading end), and the kernel lets go of both however a process ends.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{CWD, FileType, Mode, OFlags};

use crate::mesh::Address;

/// The pipes of all nodes of a mesh, in a folder beside the database.
#[derive(Clone, Debug)]
pub(in crate::mesh) struct Belfry {
    folder: PathBuf,
}

/// Why a node is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mesh) enum Ring {
    /// Something was asked of it in its own process.
    Work,
    /// Something was put into the database for it: a message, or news of one.
    Mail,
    /// Somebody came or went.
    Presence,
}

impl Ring {
    fn byte(self) -> u8 {
        match self {
            Self::Work => b'w',
            Self::Mail => b'm',
            Self::Presence => b'p',
        }
    }
}

/// What a node was woken for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::mesh) struct Woken {
    /// There may be mail.
    pub(in crate::mesh) mail: bool,
    /// Somebody came or went.
    pub(in crate::mesh) presence: bool,
}

/// Why there is no bell.
#[derive(Debug)]
pub(in crate::mesh) enum HangError {
    /// Somebody else is this node.
    Taken,
    /// The system says no.
    Io { what: &'static str, path: PathBuf, source: io::Error },
}

/// The bell of one node, held by whoever is that node.
#[derive(Debug)]
pub(in crate::mesh) struct Bell {
    pipe: File,
    /// Whether a call for work is on its way, so that a burst makes one system call.
    called: AtomicBool,
}

impl Belfry {
    /// The folder beside this database; it is made if there is none.
    pub(in crate::mesh) fn beside(database: &Path) -> Result<Self, HangError> {
        let mut folder = database.as_os_str().to_owned();
        folder.push("-nodes");
        let folder = PathBuf::from(folder);
        match DirBuilder::new().recursive(true).mode(0o700).create(&folder) {
            Ok(()) => Ok(Self { folder }),
            Err(source) => Err(HangError::Io { what: "make", path: folder, source }),
        }
    }

    /// Becomes this node: nobody else can as long as the bell is held.
    pub(in crate::mesh) fn hang(&self, node: Address) -> Result<Bell, HangError> {
        let path = self.path(node);
        let failed = |what| {
            let path = path.clone();
            move |source: io::Error| HangError::Io { what, path, source }
        };
        match rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(failed("make")(error.into())),
        }
        // Read and write: so that the open does not wait, and the pipe never ends.
        let pipe = open(&path, OpenOptions::new().read(true).write(true)).map_err(failed("open"))?;
        if !pipe.metadata().map_err(failed("look at"))?.file_type().is_fifo() {
            return Err(failed("use")(io::Error::other("it is not a named pipe")));
        }
        match pipe.try_lock() {
            Ok(()) => Ok(Bell { pipe, called: AtomicBool::new(false) }),
            Err(TryLockError::WouldBlock) => Err(HangError::Taken),
            Err(TryLockError::Error(source)) => Err(failed("lock")(source)),
        }
    }

    /// Wakes another node; `false` if nobody is there. A bell that is full has been rung enough.
    pub(in crate::mesh) fn ring(&self, node: Address, why: Ring) -> bool {
        match open(&self.path(node), OpenOptions::new().write(true)) {
            Ok(mut pipe) => {
                !matches!(pipe.write(&[why.byte()]), Err(error) if error.kind() == io::ErrorKind::BrokenPipe)
            }
            Err(_) => false,
        }
    }

    /// Whether some process is this node.
    pub(in crate::mesh) fn is_there(&self, node: Address) -> bool {
        open(&self.path(node), OpenOptions::new().write(true)).is_ok()
    }

    fn path(&self, node: Address) -> PathBuf {
        self.folder.join(node.to_string())
    }
}

impl Bell {
    /// Wakes this node for something that waits in its own process.
    pub(in crate::mesh) fn call(&self) {
        if !self.called.swap(true, Ordering::AcqRel) {
            // When the pipe is full the node is about to wake up anyway.
            let _ = (&self.pipe).write(&[Ring::Work.byte()]);
        }
    }

    /// Waits until the bell is rung or the time is over, and says what for.
    pub(in crate::mesh) fn wait(&self, at_most: Duration) -> Woken {
        let timeout = Timespec::try_from(at_most).ok();
        // An interrupted wait is a short one; the caller looks around and comes back.
        let _ = rustix::event::poll(&mut [PollFd::new(&self.pipe, PollFlags::IN)], timeout.as_ref());
        self.drain()
    }

    /// What the bell was rung for since it was last looked at. Whoever calls from now on rings again.
    pub(in crate::mesh) fn drain(&self) -> Woken {
        // Exchanged and not stored: who called before is then seen with everything it did before.
        self.called.swap(false, Ordering::AcqRel);
        let mut woken = Woken::default();
        let mut bytes = [0; 512];
        while let Ok(read @ 1..) = (&self.pipe).read(&mut bytes) {
            for byte in &bytes[..read] {
                woken.mail |= *byte == Ring::Mail.byte();
                woken.presence |= *byte == Ring::Presence.byte();
            }
            if read < bytes.len() {
                break;
            }
        }
        woken
    }
}

fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // Without waiting for the other end: who writes to a pipe that nobody reads gets an error, which is the answer wanted.
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC).bits();
    options.custom_flags(flags.cast_signed()).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Address = Address([1; 16]);

    #[test]
    fn a_node_is_one_process_at_a_time_and_is_free_when_that_lets_go() {
        let folder = tempfile::tempdir().unwrap();
        let belfry = Belfry::beside(&folder.path().join("mesh.db")).unwrap();
        assert!(!belfry.is_there(HERE));
        let bell = belfry.hang(HERE).unwrap();
        assert!(belfry.is_there(HERE));
        assert!(matches!(belfry.hang(HERE), Err(HangError::Taken)));
        drop(bell);
        assert!(!belfry.is_there(HERE));
        assert!(!belfry.ring(HERE, Ring::Mail));
        belfry.hang(HERE).unwrap();
    }

    #[test]
    fn a_node_hears_what_it_was_woken_for_also_when_the_bell_is_full() {
        let folder = tempfile::tempdir().unwrap();
        let belfry = Belfry::beside(&folder.path().join("mesh.db")).unwrap();
        let bell = belfry.hang(HERE).unwrap();
        assert!(belfry.ring(HERE, Ring::Mail));
        bell.call();
        assert_eq!(bell.wait(Duration::from_secs(10)), Woken { mail: true, presence: false });
        for _ in 0..100_000 {
            assert!(belfry.ring(HERE, Ring::Presence));
        }
        assert_eq!(bell.wait(Duration::from_secs(10)), Woken { mail: false, presence: true });
        while bell.drain() != Woken::default() {}
        assert_eq!(bell.wait(Duration::ZERO), Woken::default());
    }

    #[test]
    fn a_file_that_is_no_pipe_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let belfry = Belfry::beside(&folder.path().join("mesh.db")).unwrap();
        std::fs::write(belfry.path(HERE), "mine").unwrap();
        assert!(matches!(belfry.hang(HERE), Err(HangError::Io { what: "use", .. })));
    }
}
