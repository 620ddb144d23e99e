//! What a session is made from, and which ones are wanted.

use serde_json::value::RawValue;

use super::id::fresh_id;
use crate::protocol::{Session, Timestamp};

/// A session to be made. If there is one of that name, it is overwritten, but keeps its transcript and when it was made.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// Its name; also that of its transcript.
    pub session_id: String,
    /// Whose it is.
    pub user_id: String,
    /// The chat it belongs to.
    pub chat_id: String,
    /// Where its state machine is.
    pub current_stage: String,
    /// Which state machine it is.
    pub scenario: String,
    /// What the host keeps with the stage; an object.
    pub stage_data: Option<Box<RawValue>>,
    /// The project it belongs to.
    pub project_id: Option<String>,
}

impl NewSession {
    /// A session of a chat, with what the contract says for everything that is not said.
    #[must_use]
    pub fn of_chat(chat_id: impl Into<String>) -> Self {
        Self {
            session_id: fresh_id("sess_"),
            user_id: "local".to_owned(),
            chat_id: chat_id.into(),
            current_stage: "plan".to_owned(),
            scenario: "agent-entry".to_owned(),
            stage_data: None,
            project_id: None,
        }
    }

    /// Another session that begins as this one is now.
    pub(super) fn copy_of(session: &Session, session_id: &str) -> Self {
        Self {
            session_id: session_id.to_owned(),
            user_id: session.user_id.clone(),
            chat_id: session.chat_id.clone(),
            current_stage: session.current_stage.clone(),
            scenario: session.scenario.clone(),
            stage_data: session.stage_data.clone(),
            project_id: session.project_id.clone(),
        }
    }

    /// The session, made now, or first at another time.
    pub(super) fn into_session(self, created_at: Option<Timestamp>) -> Session {
        let now = Timestamp::now();
        // A clock that was set back must not make a session older than its own beginning.
        let updated_at =
            created_at.as_ref().map_or_else(|| now.clone(), |created| now.clone().max(created.clone()));
        Session {
            session_id: self.session_id,
            user_id: self.user_id,
            project_id: self.project_id,
            chat_id: self.chat_id,
            current_stage: self.current_stage,
            next_stage: None,
            scenario: self.scenario,
            stage_data: self.stage_data,
            is_active: true,
            created_at: created_at.unwrap_or(now),
            updated_at,
            id: None,
        }
    }
}

/// Which sessions are wanted. What is `None` does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Those of this user.
    pub user_id: Option<String>,
    /// Those of this chat.
    pub chat_id: Option<String>,
    /// Those that still take turns, or all.
    pub which: Which,
    /// At most so many.
    pub limit: Option<usize>,
}

/// Whether sessions that are over are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Which {
    /// All.
    #[default]
    All,
    /// Only those that still take turns.
    Active,
}

impl Filter {
    pub(super) fn admits(&self, session: &Session) -> bool {
        self.user_id.as_ref().is_none_or(|user| *user == session.user_id)
            && self.chat_id.as_ref().is_none_or(|chat| *chat == session.chat_id)
            && (self.which == Which::All || session.is_active)
    }
}
