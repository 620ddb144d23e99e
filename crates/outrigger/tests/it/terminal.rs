//! A terminal for tests: `outrigger` on the one end, a typist on the other.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::process::{PATIENCE, wait_until};

/// A program on a terminal of 100 columns.
pub(crate) struct Terminal {
    child: Child,
    keyboard: File,
    /// Held so that the terminal can be asked for its mode after the program has gone.
    screen: OwnedFd,
    shown: Arc<(Mutex<String>, Condvar)>,
}

impl Terminal {
    pub(crate) fn start(command: &mut Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let open = || File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let screen: OwnedFd = open().into();
        tcsetwinsize(&screen, Winsize { ws_row: 40, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let stdio = || Stdio::from(screen.try_clone().unwrap());
        let child = command.stdin(stdio()).stdout(stdio()).stderr(stdio()).spawn().expect("outrigger starts");
        let shown = Arc::new((Mutex::new(String::new()), Condvar::new()));
        let shared = Arc::clone(&shown);
        let keyboard = File::from(master);
        let mut output = keyboard.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = output.read(&mut bytes) {
                let (text, changed) = &*shared;
                text.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..length]));
                changed.notify_all();
            }
        });
        Self { child, keyboard, screen, shown }
    }

    /// Types.
    pub(crate) fn type_in(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until this was shown since the last time something was waited for.
    pub(crate) fn wait_for(&self, wanted: &str) {
        let (text, changed) = &*self.shown;
        let missing = |text: &mut String| !text.contains(wanted);
        let (mut text, waited) = changed.wait_timeout_while(text.lock().unwrap(), PATIENCE, missing).unwrap();
        assert!(!waited.timed_out(), "never saw `{wanted}`, only:\n{text}");
        let end = text.find(wanted).unwrap() + wanted.len();
        text.drain(..end);
    }

    /// Waits for its end; the terminal must be as it was.
    pub(crate) fn finish(mut self) -> ExitStatus {
        let mut status = None;
        let ended = wait_until(PATIENCE, || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        let shown = self.shown.0.lock().unwrap().clone();
        if ended.is_err() {
            let _ = self.child.kill();
            panic!("it does not end; it showed:\n{shown}");
        }
        let modes = tcgetattr(&self.screen).unwrap().local_modes;
        assert!(modes.contains(LocalModes::ICANON | LocalModes::ECHO), "the terminal was left raw");
        status.unwrap()
    }
}
