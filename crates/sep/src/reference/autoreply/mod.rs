//! The extension that shows everything: it answers messages, counts them in a panel, and uses all six permissions.
//!
//! It reads messages to count them, sends replies, knows its contacts by name, hears events, has a panel with three actions, and
//! shows a notice when a stranger writes for the first time. With a host that speaks 1.0 it does without what came later.

mod book;
mod options;
mod panel;
#[cfg(test)]
mod tests;

pub use options::{BadOption, Options};

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};
use std::{fs, io};

use book::{Book, Counts, Kept, MAX_TEXT, Verdict};

use crate::extension::{
    self, About, ActionReply, Event, Extension, HostClient, HostError, Lifecycle, Message, News, Shutdown,
    Trouble, Welcome, exit,
};
use crate::mesh::Direction;
use crate::protocol::{
    ActionCall, ListContacts, ListMessages, LogLevel, Permission, SendResult, Toast, ToastLevel, V1_1,
};

/// How long a host that is busy is waited for before a reply is given up.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Earlier messages that are counted at the start.
const HISTORY: usize = 500;

/// Is the extension, with these arguments.
#[must_use]
pub fn run(args: &[String]) -> ExitCode {
    match Options::read(args) {
        Ok(options) => extension::run(AutoReply::new(options)),
        Err(error) => {
            let _ = io::Write::write_all(&mut io::stderr(), format!("{error}\n").as_bytes());
            ExitCode::from(exit::USAGE)
        }
    }
}

/// The extension.
#[derive(Debug)]
pub struct AutoReply {
    options: Options,
    book: Mutex<Book>,
    /// Where it keeps what it knows.
    file: OnceLock<PathBuf>,
    granted: OnceLock<Vec<Permission>>,
}

impl AutoReply {
    /// An auto-reply with these options.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let kept = Kept { text: options.text.clone(), paused: false, counts: Counts::default() };
        let book = Mutex::new(Book::new(kept, options.quiet_ms));
        Self { options, book, file: OnceLock::new(), granted: OnceLock::new() }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn may(&self, permission: Permission) -> bool {
        self.granted.get().is_some_and(|granted| granted.contains(&permission))
    }

    fn learn_names(&self, host: &HostClient) -> Result<(), HostError> {
        if !self.may(Permission::ContactsRead) {
            return Ok(());
        }
        let mut names = Vec::new();
        for contact in host.contacts(ListContacts { limit: Some(500), ..ListContacts::default() }) {
            let contact = contact?;
            names.extend(contact.lxmf_address.map(|address| (address, contact.name.clone().into_owned())));
            names.push((contact.identity_hash, contact.name.into_owned()));
        }
        self.book().know(names);
        Ok(())
    }

    fn received(&self, host: &HostClient, message: &Message) -> Result<(), Trouble> {
        let sender = message.source_hash;
        let (verdict, is_new) = {
            let mut book = self.book();
            (book.consider(message, now_ms()), message.incoming && book.is_new_stranger(sender))
        };
        if is_new && self.may(Permission::NotificationsCreate) {
            // A notice that cannot be shown is no reason not to answer.
            let _ = host.toast(&Toast {
                message: format!("first message from {sender}"),
                level: ToastLevel::Info,
                duration_ms: None,
                key: Some(format!("stranger-{sender}")),
            });
        }
        let result = match verdict {
            Verdict::Skip(why) => {
                host.log(LogLevel::Debug, &format!("not answered: {why}")).map_err(Trouble::from)
            }
            Verdict::Reply(reply) => match patiently(|| host.messages_send(&reply)) {
                Ok(SendResult { message_hash, .. }) => {
                    self.book().replied(message_hash);
                    Ok(())
                }
                Err(error) => {
                    self.book().failed(sender);
                    Err(error.into())
                }
            },
        };
        self.show(host)?;
        result
    }

    /// Brings the panel up to date, where panels can change.
    fn show(&self, host: &HostClient) -> Result<(), Trouble> {
        if !host.version().serves(V1_1) || !self.may(Permission::ToolsRegister) {
            return Ok(());
        }
        let change = panel::content(&self.book());
        match host.update_panel(panel::ID, change) {
            Ok(()) => Ok(()),
            // The permission was taken back meanwhile, and the panel with it.
            Err(error) if error.is_denied() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads what an earlier process kept. A file that makes no sense is a new beginning, and said so.
    fn recall(&self, host: &HostClient) -> Result<(), HostError> {
        let Some(file) = self.file.get() else { return Ok(()) };
        match fs::read(file).map(|bytes| serde_json::from_slice::<Kept>(&bytes)) {
            Ok(Ok(kept)) => self.book().kept = kept,
            Ok(Err(error)) => host.log(LogLevel::Warn, &format!("what was kept cannot be read: {error}"))?,
            Err(_) => {}
        }
        Ok(())
    }

    fn keep(&self) -> io::Result<()> {
        let Some(file) = self.file.get() else { return Ok(()) };
        let kept = serde_json::to_vec(&self.book().kept)?;
        let new = file.with_extension("new");
        fs::write(&new, kept)?;
        fs::rename(&new, file)
    }
}

impl Extension for AutoReply {
    fn about(&self) -> About {
        About {
            name: Some("Auto-reply".to_owned()),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            highest: self.options.highest,
            ..About::default()
        }
    }

    fn on_initialize(&self, host: &HostClient, welcome: &Welcome) -> Result<(), Trouble> {
        if !welcome.data_dir.as_os_str().is_empty() {
            let _ = self.file.set(welcome.data_dir.join("autoreply.json"));
        }
        let _ = self.granted.set(welcome.permissions.clone());
        self.recall(host)?;
        if welcome.may(Permission::ToolsRegister) {
            host.register_panel(&panel::draft())?;
        }
        self.learn_names(host)?;
        if welcome.may(Permission::MessagesRead) {
            let query = ListMessages {
                direction: Some(Direction::Incoming),
                limit: Some(200),
                ..ListMessages::default()
            };
            let earlier = host.messages(query).take(HISTORY).collect::<Result<Vec<_>, _>>()?.len();
            host.log(LogLevel::Info, &format!("ready; {earlier} messages came in before"))?;
        }
        self.show(host)
    }

    fn on_event(&self, host: &HostClient, event: &Event) -> Result<(), Trouble> {
        match event.news()? {
            News::Received(message) => self.received(host, &message),
            News::Contact { .. } => Ok(self.learn_names(host)?),
            News::Sent(_) | News::State { .. } | News::Online { .. } | News::Offline { .. } | News::Other => {
                Ok(())
            }
        }
    }

    fn on_action(&self, host: &HostClient, action: &ActionCall) -> Result<ActionReply, Trouble> {
        let said = {
            let mut book = self.book();
            match action.action_id.as_str() {
                "reset" => {
                    book.kept.counts = Counts::default();
                    "the counters are at zero".to_owned()
                }
                "set-reply" => {
                    let text = action.input.as_deref().unwrap_or_default().trim();
                    if text.is_empty() || text.len() > MAX_TEXT {
                        return Ok(ActionReply::error(&format!("a reply has 1 to {MAX_TEXT} bytes")));
                    }
                    text.clone_into(&mut book.kept.text);
                    "the reply is set".to_owned()
                }
                "pause" => {
                    book.kept.paused = !book.kept.paused;
                    let counts = book.kept.counts;
                    let state = if book.kept.paused { "paused" } else { "answering" };
                    format!("{state}; {} received, {} answered", counts.received, counts.replied)
                }
                other => return Ok(ActionReply::error(&format!("there is no action `{other}`"))),
            }
        };
        self.keep()?;
        let _ = host.log(LogLevel::Info, &said);
        Ok(ActionReply::ok().say(ToastLevel::Success, &said).show(panel::content(&self.book())))
    }

    fn on_lifecycle(&self, _: &HostClient, change: &Lifecycle) -> Result<(), Trouble> {
        match change {
            Lifecycle::Pausing | Lifecycle::Trim(_) => Ok(self.keep()?),
            Lifecycle::Resumed | Lifecycle::Background | Lifecycle::Other(_) => Ok(()),
        }
    }

    fn on_shutdown(&self, _: &Shutdown) {
        // There is nobody left to tell.
        let _ = self.keep();
    }
}

/// Asks again when the host says that it can succeed later, for as long as a reply is worth something.
fn patiently<T>(ask: impl Fn() -> Result<T, HostError>) -> Result<T, HostError> {
    let mut left = LONGEST_PAUSE;
    loop {
        match ask() {
            Err(error) if error.is_temporary() && !left.is_zero() => {
                let pause = error.retry_after().unwrap_or(Duration::from_millis(500)).min(left);
                thread::sleep(pause.max(Duration::from_millis(1)));
                left = left.saturating_sub(pause.max(Duration::from_millis(1)));
            }
            answer => return answer,
        }
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
