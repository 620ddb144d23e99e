//! What turns use that do not say: set by `updateConfig`, for all sessions or for one.

use std::collections::HashMap;

use crate::protocol::{PermissionMode, SendMessage};
use crate::provider::Change;

/// How many sessions may have settings of their own.
const SESSIONS: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Defaults {
    all: Values,
    sessions: HashMap<String, Values>,
}

#[derive(Clone, Debug, Default)]
struct Values {
    model: Option<String>,
    permission_mode: Option<PermissionMode>,
}

/// There are too many sessions with settings of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooMany;

impl Defaults {
    pub(super) fn change(&mut self, session: Option<&str>, change: &Change) -> Result<(), TooMany> {
        let values = match session {
            None => &mut self.all,
            Some(session) if self.sessions.len() >= SESSIONS && !self.sessions.contains_key(session) => {
                return Err(TooMany);
            }
            Some(session) => self.sessions.entry(session.to_owned()).or_default(),
        };
        if let Some(model) = &change.model {
            values.model.clone_from(model);
        }
        if let Some(mode) = change.permission_mode {
            values.permission_mode = mode;
        }
        if let Some(session) = session
            && self.sessions.get(session).is_some_and(|values| values.is_nothing())
        {
            self.sessions.remove(session);
        }
        Ok(())
    }

    /// Fills in what a turn does not say.
    pub(super) fn fill(&self, send: &mut SendMessage) {
        let own = self.sessions.get(&send.session_id);
        let model = own.and_then(|values| values.model.as_ref()).or(self.all.model.as_ref());
        let mode = own.and_then(|values| values.permission_mode).or(self.all.permission_mode);
        send.model = send.model.take().or_else(|| model.cloned());
        let mode = send.permission_mode.or(mode);
        send.permission_mode = Some(mode.unwrap_or(PermissionMode::BypassPermissions));
    }
}

impl Values {
    fn is_nothing(&self) -> bool {
        self.model.is_none() && self.permission_mode.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, value::to_raw_value};

    fn filled(defaults: &Defaults, more: serde_json::Value) -> (Option<String>, Option<PermissionMode>) {
        let mut params = json!({ "sessionId": "s", "prompt": "p", "provider": "claude" });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut send = SendMessage::read(&to_raw_value(&params).unwrap()).unwrap();
        defaults.fill(&mut send);
        (send.model, send.permission_mode)
    }

    #[test]
    fn what_a_turn_says_counts_before_what_its_session_says_before_what_all_say() {
        let mut defaults = Defaults::default();
        let bypass = Some(PermissionMode::BypassPermissions);
        assert_eq!(filled(&defaults, json!({})), (None, bypass));
        let all = Change {
            model: Some(Some("a".into())),
            permission_mode: Some(Some(PermissionMode::Plan)),
            ..Change::default()
        };
        defaults.change(None, &all).unwrap();
        assert_eq!(filled(&defaults, json!({})), (Some("a".into()), Some(PermissionMode::Plan)));
        let own = Change { model: Some(Some("b".into())), ..Change::default() };
        defaults.change(Some("s"), &own).unwrap();
        assert_eq!(filled(&defaults, json!({})), (Some("b".into()), Some(PermissionMode::Plan)));
        let said = json!({ "model": "c", "permissionMode": "nonsense" });
        assert_eq!(filled(&defaults, said), (Some("c".into()), bypass));
        let clear = Change { model: Some(None), ..Change::default() };
        defaults.change(Some("s"), &clear).unwrap();
        defaults.change(None, &clear).unwrap();
        assert_eq!(filled(&defaults, json!({})), (None, Some(PermissionMode::Plan)));
    }

    #[test]
    fn only_so_many_sessions_have_settings_of_their_own() {
        let mut defaults = Defaults::default();
        let set = Change { model: Some(Some("m".into())), ..Change::default() };
        for session in 0..SESSIONS {
            defaults.change(Some(&session.to_string()), &set).unwrap();
        }
        assert_eq!(defaults.change(Some("one more"), &set), Err(TooMany));
        assert_eq!(defaults.change(Some("0"), &set), Ok(()));
        let clear = Change { model: Some(None), ..Change::default() };
        defaults.change(Some("0"), &clear).unwrap();
        assert_eq!(defaults.change(Some("one more"), &set), Ok(()));
    }
}
