//! What the policy of a work order says when there is no host to ask. What needs a person's approval is denied, because nobody
//! can give it.

use std::path::Path;

use outrigger_policy::{Decision, Policy, Subject};

use super::ask::{Answered, By, Question};
use crate::govern::address::{Address, address};
use crate::govern::names::{Access, access};
use crate::govern::place::Root;
use crate::govern::reach::reach;
use crate::protocol::{AskAction, AskDecision, WorkOrder};

/// The policy of one order, ready to be asked.
pub(super) struct Gate {
    policy: Result<Policy, String>,
    root: Result<Root, String>,
    subject: Subject,
}

impl Gate {
    pub(super) fn new(order: &WorkOrder, backend: &str) -> Self {
        Self {
            policy: order.policy.compile().map_err(|error| error.to_string()),
            root: Root::open(Path::new(&order.workspace.root)).map_err(|error| error.to_string()),
            subject: Subject::new(backend),
        }
    }

    pub(super) fn judge(&self, question: &Question) -> Answered {
        let (decision, reason) = match self.objection(question) {
            Some(reason) => (AskDecision::Deny, reason),
            None => (AskDecision::Allow, "nothing in the policy forbids it".to_owned()),
        };
        Answered { decision, reason, by: By::Policy, content: None }
    }

    /// Why it may not be done.
    fn objection(&self, question: &Question) -> Option<String> {
        let policy = match &self.policy {
            Ok(policy) => policy,
            Err(error) => return Some(error.clone()),
        };
        let path = question.path.as_deref().unwrap_or_default();
        match &question.action {
            AskAction::Tool => self.tool(policy, question),
            AskAction::Read => self.file(policy, Access::Read, path),
            AskAction::Write => self.file(policy, Access::Write, path),
            AskAction::Network => self.host(policy, question.host.as_deref().unwrap_or_default()),
            AskAction::Question => Some("nobody is here to answer questions".to_owned()),
            AskAction::Other(word) => Some(format!("`{word}` is not an action that a policy knows")),
        }
    }

    fn tool(&self, policy: &Policy, question: &Question) -> Option<String> {
        let name = question.tool_name.as_deref().unwrap_or_default();
        if question.needs.is_some() {
            return Some(format!("`{name}` needs a person's approval, and nobody can be asked"));
        }
        if let Some(reason) = objection(policy.check_tool(&self.subject, name)) {
            return Some(reason);
        }
        let reached = reach(question.input.as_ref().map_or("{}", |input| input.as_str()));
        if let Some(unread) = reached.unread {
            return Some(unread.to_string());
        }
        let does = access(name);
        let file = |path: &String| self.file(policy, does, path);
        let host = |text: &String| self.host(policy, text);
        reached.paths.iter().find_map(file).or_else(|| reached.addresses.iter().find_map(host))
    }

    fn file(&self, policy: &Policy, does: Access, path: &str) -> Option<String> {
        let root = match &self.root {
            Ok(root) => root,
            Err(error) => return Some(error.clone()),
        };
        let place = match root.locate(path) {
            Ok(place) => place,
            Err(reason) => return Some(format!("`{path}` may not be used: {}", reason.code())),
        };
        let spellings = [&place.named, &place.real];
        let read = |path: &&String| objection(policy.check_read(&self.subject, path));
        let write = |path: &&String| objection(policy.check_write(&self.subject, path));
        match does {
            Access::Read => spellings.iter().find_map(read),
            Access::Write => spellings.iter().find_map(write),
            Access::Both => spellings.iter().find_map(|path| read(path).or_else(|| write(path))),
        }
    }

    fn host(&self, policy: &Policy, text: &str) -> Option<String> {
        match address(text) {
            Address::Local => None,
            Address::Host(host) => objection(policy.check_network(&self.subject, &host)),
        }
    }
}

fn objection(decision: Decision) -> Option<String> {
    let decision = decision.without_approver();
    (!decision.is_allowed()).then(|| decision.explain())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{OrderId, Raw};

    fn gate(root: &Path) -> Gate {
        let mut order = WorkOrder::new(OrderId::new("o"), "x");
        order.workspace.root = root.to_str().unwrap().to_owned();
        order.policy.disallowed_tools = vec!["Kill*".into()];
        order.policy.require_approval_for = vec!["Bash".into()];
        order.policy.deny_read = vec!["**/.env".into()];
        order.policy.deny_network = vec!["*.example.org".into()];
        Gate::new(&order, "kit")
    }

    #[test]
    fn without_a_host_to_ask_the_policy_decides_and_approval_cannot_be_had() {
        let root = tempfile::tempdir().unwrap();
        let gate = gate(root.path());
        let tool = |name: &str, input: &'static str| Question::tool(name, Raw::new(input).unwrap());
        let table = [
            (tool("Read", r#"{"file_path":"a.txt"}"#), AskDecision::Allow),
            (tool("Read", r#"{"file_path":"b/.env"}"#), AskDecision::Deny),
            (tool("Read", r#"{"file_path":"../a"}"#), AskDecision::Deny),
            (tool("KillBash", "{}"), AskDecision::Deny),
            (tool("Bash", "{}"), AskDecision::Deny),
            (tool("WebFetch", r#"{"url":"https://a.example.org/x"}"#), AskDecision::Deny),
            (Question::read(".env"), AskDecision::Deny),
            (Question::write(".env"), AskDecision::Allow),
            (Question::write("/etc/passwd"), AskDecision::Deny),
            (Question::network("a.example.org"), AskDecision::Deny),
            (Question::network("example.com:443"), AskDecision::Allow),
        ];
        for (question, expected) in table {
            let answered = gate.judge(&question);
            assert_eq!(
                (answered.decision, answered.by),
                (expected, By::Policy),
                "{question:?}: {}",
                answered.reason
            );
        }
        assert!(gate.judge(&tool("Bash", "{}")).reason.contains("approv"));
    }

    #[test]
    fn a_policy_that_cannot_be_read_allows_nothing() {
        let mut order = WorkOrder::new(OrderId::new("o"), "x");
        order.policy.deny_read = vec!["[".into()];
        let answered = Gate::new(&order, "kit").judge(&Question::network("example.com"));
        assert_eq!(answered.decision, AskDecision::Deny);
    }
}
