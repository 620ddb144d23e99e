//! Short notices of extensions. Each says whose it is; the last ones are kept.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outrigger_policy::Millis;
use serde::Serialize;
use tokio::sync::watch;

use super::text::{Flaw, Flaws, TextRule, clean};
use crate::protocol::ExtensionId;
use crate::protocol::words::words;

/// How many notices are kept.
pub const MAX_NOTICES: usize = 200;
/// How long a notice is shown when it does not say.
pub const USUAL_DURATION: Duration = Duration::from_millis(5000);
const SHORTEST: Duration = Duration::from_millis(1000);
const LONGEST: Duration = Duration::from_millis(15_000);

words! {
    /// How much a notice matters.
    ToastLevel ("level") {
        /// Worth knowing.
        Info = "info",
        /// It went well.
        Success = "success",
        /// It may go wrong.
        Warning = "warning",
        /// It went wrong.
        Error = "error",
    }
}

words! {
    /// What became of a notice, if not simply shown.
    ToastFate ("fate of a notice") {
        /// The person does not want to be disturbed.
        SuppressedDnd = "suppressed_dnd",
        /// It took the place of one with the same key.
        Coalesced = "coalesced",
    }
}

/// A notice as an extension asks for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ToastDraft {
    /// One line.
    pub message: String,
    /// How much it matters.
    pub level: ToastLevel,
    /// How long it is shown.
    #[serde(skip)]
    pub duration: Duration,
    /// A later notice with the same key takes its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl ToastDraft {
    /// A notice that is shown for the usual time and stands alone.
    #[must_use]
    pub fn new(message: String, level: ToastLevel) -> Self {
        Self { message, level, duration: USUAL_DURATION, key: None }
    }

    /// Checks it.
    pub fn check(&self) -> Result<(), Vec<Flaw>> {
        let mut flaws = Flaws::default();
        flaws.text("/message", &self.message, TextRule::line(1, 280));
        if !(SHORTEST..=LONGEST).contains(&self.duration) {
            flaws.add("/durationMs", "not from 1000 to 15000");
        }
        if let Some(key) = &self.key {
            flaws.text("/key", key, TextRule::line(1, 64));
        }
        flaws.into_result()
    }
}

/// A notice that was shown, or would have been.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Notice {
    /// Its number; a notice that takes another's place has a new one.
    pub seq: u64,
    /// When, in milliseconds since the epoch.
    pub time_ms: u64,
    /// Whose it is.
    pub extension_id: ExtensionId,
    /// How much it matters.
    pub level: ToastLevel,
    /// What is shown: the name of the extension and its message.
    pub text: String,
    /// How long it is shown.
    pub duration_ms: u64,
    /// A later notice with the same key takes its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What became of it, if not simply shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fate: Option<ToastFate>,
}

/// What became of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Shown {
    /// Whether it can be seen.
    pub shown: bool,
    /// What happened, if it was not simply shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<ToastFate>,
}

/// Whether people want to be disturbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// Notices are shown.
    Allowed,
    /// Notices are only kept.
    Unwanted,
}

/// The notices of all extensions.
#[derive(Debug)]
pub struct Notices {
    books: Mutex<Books>,
    latest: watch::Sender<u64>,
}

#[derive(Debug)]
struct Books {
    kept: VecDeque<Notice>,
    seq: u64,
    disturbance: Disturbance,
}

impl Notices {
    /// No notices yet, and people may be disturbed.
    #[must_use]
    pub fn new() -> Self {
        let books = Books { kept: VecDeque::new(), seq: 0, disturbance: Disturbance::Allowed };
        Self { books: Mutex::new(books), latest: watch::Sender::new(0) }
    }

    /// Shows a notice of an extension whose people call it `name`.
    pub fn show(
        &self,
        now: Millis,
        extension: &ExtensionId,
        name: &str,
        draft: ToastDraft,
    ) -> Result<Shown, Vec<Flaw>> {
        draft.check()?;
        let mut books = self.lock();
        let reason = match books.disturbance {
            Disturbance::Unwanted => Some(ToastFate::SuppressedDnd),
            Disturbance::Allowed => None,
        };
        let replaced = books.take_replaced(now, extension, draft.key.as_deref());
        let reason = reason.or(replaced.then_some(ToastFate::Coalesced));
        books.seq += 1;
        let notice = Notice {
            seq: books.seq,
            time_ms: now.0,
            extension_id: extension.clone(),
            level: draft.level,
            text: format!("{}: {}", clean(name, 80), draft.message),
            duration_ms: u64::try_from(draft.duration.as_millis()).unwrap_or(u64::MAX),
            key: draft.key,
            fate: reason,
        };
        if books.kept.len() == MAX_NOTICES {
            books.kept.pop_front();
        }
        books.kept.push_back(notice);
        self.latest.send_replace(books.seq);
        Ok(Shown { shown: reason != Some(ToastFate::SuppressedDnd), reason })
    }

    /// Whether people want to be disturbed from now on.
    pub fn set_disturbance(&self, disturbance: Disturbance) {
        self.lock().disturbance = disturbance;
    }

    /// The notices after `seq`, oldest first; 0 gives all that are kept.
    #[must_use]
    pub fn after(&self, seq: u64) -> Vec<Notice> {
        self.lock().kept.iter().filter(|notice| notice.seq > seq).cloned().collect()
    }

    /// Tells the number of the latest notice, now and whenever there is a new one.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.latest.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Notices {
    fn default() -> Self {
        Self::new()
    }
}

impl Books {
    /// Removes the notice whose place a new one takes: same extension, same key, still on the screen.
    fn take_replaced(&mut self, now: Millis, extension: &ExtensionId, key: Option<&str>) -> bool {
        let Some(key) = key else { return false };
        let same = |notice: &Notice| {
            notice.extension_id == *extension
                && notice.key.as_deref() == Some(key)
                && notice.time_ms.saturating_add(notice.duration_ms) > now.0
        };
        let Some(at) = self.kept.iter().rposition(same) else { return false };
        self.kept.remove(at);
        true
    }
}
