//! The calls that were denied or wait for a person, so that asking for one, reporting it and telling its result are known
//! to be about the same call, in whatever order a child does them.

use std::collections::VecDeque;

use outrigger_policy::Digest;

use super::approvals::ApprovalId;

/// The most calls that are remembered. The oldest that waits for nobody is forgotten first.
const MAX_CALLS: usize = 1024;

/// One call.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) tool_use_id: Option<String>,
    pub(super) tool_name: String,
    pub(super) input: Digest,
    /// The child's question that waits for an answer or had one.
    pub(super) asked: Option<String>,
    /// Whether the call was reported.
    pub(super) reported: bool,
    pub(super) state: State,
}

/// How a call stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// A person is asked.
    Waiting(ApprovalId),
    /// It may be made, once.
    Allowed,
    /// It may not, and why.
    Denied(String),
}

/// What a call is known by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key<'a> {
    pub(super) tool_use_id: Option<&'a str>,
    pub(super) tool_name: &'a str,
    pub(super) input: Digest,
}

/// The calls of a run that matter.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: VecDeque<Call>,
}

impl Calls {
    pub(super) fn push(&mut self, call: Call) {
        if self.calls.len() >= MAX_CALLS {
            let settled = |call: &Call| !matches!(call.state, State::Waiting(_));
            // More than a thousand cannot wait: there are far fewer open requests than that.
            let oldest = self.calls.iter().position(settled).unwrap_or(0);
            self.calls.remove(oldest);
        }
        self.calls.push_back(call);
    }

    /// The call that a question is about, if it was reported before it was asked for.
    pub(super) fn not_yet_asked(&mut self, key: Key<'_>) -> Option<&mut Call> {
        self.calls.iter_mut().find(|call| call.asked.is_none() && call.is(key))
    }

    /// The call that a report is about, if it was asked for before. It is reported once: the same again is another call.
    pub(super) fn not_yet_reported(&mut self, key: Key<'_>) -> Option<&mut Call> {
        self.calls.iter_mut().find(|call| !call.reported && call.is(key))
    }

    /// Whether a person has allowed this very call. Only an id makes that certain.
    pub(super) fn was_approved(&self, key: Key<'_>) -> bool {
        let allowed = |call: &&Call| call.state == State::Allowed && call.tool_use_id.is_some();
        key.tool_use_id.is_some() && self.calls.iter().filter(allowed).any(|call| call.is(key))
    }

    /// The call that waits for a request.
    pub(super) fn waiting_for(&mut self, id: &ApprovalId) -> Option<&mut Call> {
        self.calls.iter_mut().find(|call| call.state == State::Waiting(id.clone()))
    }

    /// Takes out the call that a result is of. Only an id makes that certain, and a suspicion must not end a run.
    pub(super) fn finished(&mut self, tool_use_id: &str) -> Option<Call> {
        let known = known_by(tool_use_id);
        let at = self.calls.iter().position(|call| call.tool_use_id.as_ref() == Some(&known))?;
        match self.calls[at].state {
            // Its answer is still to come.
            State::Waiting(_) => None,
            State::Allowed | State::Denied(_) => self.calls.remove(at),
        }
    }
}

/// An id as it is remembered: a child may choose a long one, but not so that we keep it.
pub(super) fn known_by(tool_use_id: &str) -> String {
    const KEPT: usize = 256;
    if tool_use_id.len() <= KEPT {
        tool_use_id.to_owned()
    } else {
        Digest::of(tool_use_id.as_bytes()).to_string()
    }
}

impl Call {
    /// Same tool, same input, and no other id.
    fn is(&self, key: Key<'_>) -> bool {
        let same_id = match (self.tool_use_id.as_deref(), key.tool_use_id) {
            (Some(known), Some(told)) => known == known_by(told),
            (None, _) | (_, None) => true,
        };
        same_id && self.tool_name == key.tool_name && self.input == key.input
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(number: usize, state: State) -> Call {
        Call {
            tool_use_id: Some(format!("t{number}")),
            tool_name: "Bash".to_owned(),
            input: Digest::of(b"{}"),
            asked: None,
            reported: true,
            state,
        }
    }

    #[test]
    fn so_many_calls_are_remembered_and_one_that_waits_is_never_forgotten() {
        let mut calls = Calls::default();
        let id = ApprovalId::new("x-1");
        calls.push(call(0, State::Waiting(id.clone())));
        for number in 1..MAX_CALLS {
            calls.push(call(number, State::Allowed));
        }
        assert_eq!(calls.calls.len(), MAX_CALLS);
        calls.push(call(MAX_CALLS, State::Allowed));
        assert_eq!(calls.calls.len(), MAX_CALLS);
        assert!(calls.waiting_for(&id).is_some());
        assert!(calls.finished("t1").is_none(), "the oldest that is settled");
        assert!(calls.finished("t2").is_some());
        assert!(calls.finished("t0").is_none(), "its answer is still to come");
    }

    #[test]
    fn a_long_id_is_known_by_its_hash() {
        assert_eq!(known_by(&"i".repeat(256)), "i".repeat(256));
        let (one, other) = (known_by(&"i".repeat(257)), known_by(&"i".repeat(258)));
        assert_eq!(one.len(), 64);
        assert_ne!(one, other);
    }
}
