//! What the host remembers of each session: whether it is busy, and what its provider can resume.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::protocol::{Event, ProviderName};

/// All sessions. What is remembered outlives the sidecar.
#[derive(Clone, Debug)]
pub(super) struct Sessions {
    memory: Arc<Mutex<Memory>>,
}

#[derive(Debug)]
struct Memory {
    sessions: HashMap<String, Session>,
    most: usize,
    /// Counts uses, so that the one that was longest not used is known.
    clock: u64,
}

#[derive(Debug)]
struct Session {
    resume: Option<(ProviderName, String)>,
    busy: Busy,
    used: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Busy {
    Idle,
    /// With the turn of this number.
    With(u64),
}

/// The turn of a session. Dropping it makes the session idle.
#[derive(Debug)]
pub(super) struct TurnGuard {
    sessions: Sessions,
    session: String,
    number: u64,
}

impl Sessions {
    pub(super) fn new(most: usize) -> Self {
        let memory = Memory { sessions: HashMap::new(), most: most.max(1), clock: 0 };
        Self { memory: Arc::new(Mutex::new(memory)) }
    }

    /// Begins a turn, unless one is under way.
    pub(super) fn begin(&self, session: &str) -> Option<TurnGuard> {
        let mut memory = self.memory();
        let used = memory.tick();
        let known = memory.session(session);
        if known.busy != Busy::Idle {
            return None;
        }
        known.busy = Busy::With(used);
        drop(memory);
        Some(TurnGuard { sessions: self.clone(), session: session.to_owned(), number: used })
    }

    /// What this provider can resume.
    pub(super) fn resume(&self, session: &str, provider: &ProviderName) -> Option<String> {
        let memory = self.memory();
        let (of, id) = memory.sessions.get(session)?.resume.as_ref()?;
        (of == provider).then(|| id.clone())
    }

    /// What can be resumed, and by whom.
    pub(super) fn resumable(&self, session: &str) -> Option<(ProviderName, String)> {
        self.memory().sessions.get(session)?.resume.clone()
    }

    pub(super) fn remember(&self, session: &str, provider: ProviderName, resume: String) {
        let mut memory = self.memory();
        memory.tick();
        memory.session(session).resume = Some((provider, resume));
    }

    pub(super) fn forget_resume(&self, session: &str) {
        if let Some(session) = self.memory().sessions.get_mut(session) {
            session.resume = None;
        }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// The session, used now. A new one may push out the idle one that was longest not used; busy ones always stay.
    fn session(&mut self, name: &str) -> &mut Session {
        if !self.sessions.contains_key(name) && self.sessions.len() >= self.most {
            let idle = self.sessions.iter().filter(|(_, session)| session.busy == Busy::Idle);
            let oldest = idle.min_by_key(|(_, session)| session.used).map(|(name, _)| name.clone());
            oldest.and_then(|name| self.sessions.remove(&name));
        }
        let used = self.clock;
        let session =
            self.sessions.entry(name.to_owned()).or_insert(Session { resume: None, busy: Busy::Idle, used });
        session.used = used;
        session
    }
}

impl Drop for TurnGuard {
    fn drop(&mut self) {
        let mut memory = self.sessions.memory();
        if let Some(session) = memory.sessions.get_mut(&self.session)
            && session.busy == Busy::With(self.number)
        {
            session.busy = Busy::Idle;
        }
    }
}

/// Looks for the provider's name of the session in one stream. The first one counts; after a reset the next one.
#[derive(Debug)]
pub(super) struct Adoption {
    provider: ProviderName,
    session: String,
    wanted: Wanted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Yes,
    No,
}

impl Adoption {
    pub(super) fn new(provider: ProviderName, session: String) -> Self {
        Self { provider, session, wanted: Wanted::Yes }
    }

    pub(super) fn provider(&self) -> &ProviderName {
        &self.provider
    }

    /// What an event says about it, if that is still wanted.
    pub(super) fn look(&mut self, event: &Event<'_>) -> Option<(ProviderName, String)> {
        if self.wanted == Wanted::No {
            return None;
        }
        let id = event.resume_id(&self.provider).filter(|id| *id != self.session)?;
        self.wanted = Wanted::No;
        Some((self.provider.clone(), id))
    }

    pub(super) fn again(&mut self) {
        self.wanted = Wanted::Yes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adopted(provider: ProviderName, lines: &[&str]) -> Vec<String> {
        let mut adoption = Adoption::new(provider, "host".to_owned());
        let mut ids = Vec::new();
        for line in lines {
            ids.extend(adoption.look(&Event::read(line).unwrap()).map(|(_, id)| id));
        }
        ids
    }

    #[test]
    fn claude_names_its_session_only_at_init_and_the_first_name_counts() {
        let lines = [
            r#"{"type":"system","subtype":"hook_started","session_id":"transient"}"#,
            r#"{"type":"assistant","session_id":"early"}"#,
            r#"{"type":"system","subtype":"init","session_id":""}"#,
            r#"{"type":"system","subtype":"init","session_id":"host"}"#,
            r#"{"type":"system","subtype":"init","session_id":"real"}"#,
            r#"{"type":"system","subtype":"init","session_id":"second"}"#,
        ];
        assert_eq!(adopted(ProviderName::Claude, &lines), ["real"]);
    }

    #[test]
    fn codex_names_its_thread_with_everything_and_others_only_when_they_begin() {
        let codex =
            [r#"{"type":"turn/started","session_id":"thread"}"#, r#"{"type":"x","session_id":"late"}"#];
        assert_eq!(adopted(ProviderName::Codex, &codex), ["thread"]);
        let cursor = [
            r#"{"type":"cursor/status","session_id":"no"}"#,
            r#"{"type":"cursor/agent_init","session_id":"cursor"}"#,
        ];
        assert_eq!(adopted(ProviderName::Cursor, &cursor), ["cursor"]);
        let acp = [r#"{"type":"acp/agent_init","session_id":"acp"}"#];
        assert_eq!(adopted(ProviderName::Acp("gemini".to_owned()), &acp), ["acp"]);
    }

    #[test]
    fn a_session_is_busy_until_its_turn_is_dropped_and_an_old_turn_frees_no_new_one() {
        let sessions = Sessions::new(10);
        let first = sessions.begin("s").unwrap();
        assert!(sessions.begin("s").is_none());
        assert!(sessions.begin("other").is_some());
        drop(first);
        assert!(sessions.begin("s").is_some());
    }

    #[test]
    fn a_name_is_only_for_the_provider_that_gave_it() {
        let sessions = Sessions::new(10);
        sessions.remember("s", ProviderName::Claude, "id".to_owned());
        assert_eq!(sessions.resume("s", &ProviderName::Claude).as_deref(), Some("id"));
        assert_eq!(sessions.resume("s", &ProviderName::Codex), None);
        sessions.forget_resume("s");
        assert_eq!(sessions.resumable("s"), None);
    }

    #[test]
    fn the_session_that_was_longest_not_used_is_forgotten_and_never_a_busy_one() {
        let sessions = Sessions::new(2);
        let busy = sessions.begin("busy").unwrap();
        sessions.remember("busy", ProviderName::Claude, "b".to_owned());
        sessions.remember("old", ProviderName::Claude, "o".to_owned());
        sessions.remember("new", ProviderName::Claude, "n".to_owned());
        assert!(sessions.resumable("busy").is_some());
        assert_eq!(sessions.resumable("old"), None);
        assert!(sessions.resumable("new").is_some());
        drop(busy);
    }
}
