//! One process has the store, and who comes second is told which one.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::engine::EngineError;

/// How long the lock of a process that is gone may stay: a child that it was just starting shares it until it is another program.
const LINGER: Duration = Duration::from_secs(2);

/// How often we look meanwhile.
const PAUSE: Duration = Duration::from_millis(10);

/// The lock of a store; it ends with the value, and with the process. The file stays: removing it would let two have it.
pub(super) struct Lock {
    file: File,
}

impl Lock {
    /// Takes the lock of the store at `path` and writes our number into it.
    pub(super) fn take(path: &Path) -> Result<Self, EngineError> {
        let lock = beside(path, ".lock");
        let failed =
            |why: String| EngineError::Failed { what: format!("`{}` cannot be locked", path.display()), why };
        let open = File::options().read(true).write(true).create(true).truncate(false).open(&lock);
        let mut file = open.map_err(|error| failed(format!("`{}`: {error}", lock.display())))?;
        let patience = Instant::now() + LINGER;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK) => {}
                Err(error) => return Err(failed(error.to_string())),
            }
            let holder = holder(&mut file);
            if let Some(pid) = holder
                && test_kill_process(pid) != Err(Errno::SRCH)
            {
                return Err(failed(format!("process {} has it open", pid.as_raw_nonzero())));
            }
            if Instant::now() >= patience {
                return Err(failed("another process has it open".to_owned()));
            }
            std::thread::sleep(PAUSE);
        }
        let mut write = || {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{}", std::process::id())
        };
        write().map_err(|error| failed(format!("`{}`: {error}", lock.display())))?;
        Ok(Self { file })
    }
}

impl Drop for Lock {
    /// Said outright: a child that is just being started shares the file, and closing ours alone would leave it locked.
    fn drop(&mut self) {
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// The path with something added to the name of the file.
pub(super) fn beside(path: &Path, end: &str) -> PathBuf {
    let mut whole = path.as_os_str().to_owned();
    whole.push(end);
    whole.into()
}

/// Who wrote their number into it.
fn holder(file: &mut File) -> Option<Pid> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(32).read_to_string(&mut text).ok()?;
    Pid::from_raw(text.trim().parse().ok()?)
}
