//! What people said to earlier attempts of the same run, so that nobody is asked twice because a daemon was restarted.

use outrigger_policy::Digest;

use crate::runs::{Actor, Answer, Approval, ApprovalId, Choice, RunState};

/// Answers of earlier attempts. Each is good once, as it was then; one that was given for every call of a tool stays good.
#[derive(Debug)]
pub(in crate::backends) struct Memory {
    given: Vec<Approval>,
}

/// An answer that is used again.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::backends) struct Recalled {
    pub(in crate::backends) id: ApprovalId,
    pub(in crate::backends) answer: Answer,
    pub(in crate::backends) by: Actor,
}

impl Memory {
    /// What the attempts before this one were told. What only a rule said is asked again: somebody may be there now.
    pub(in crate::backends) fn of(state: &RunState) -> Self {
        let by_a_person =
            |approval: &&Approval| approval.given.as_ref().is_some_and(|given| given.by.is_somebody());
        Self { given: state.approvals.iter().filter(by_a_person).cloned().collect() }
    }

    /// What was said to the same call before.
    pub(in crate::backends) fn recall(&mut self, tool: &str, input: &Digest) -> Option<Recalled> {
        let same = |approval: &Approval| approval.tool == tool && approval.input_sha256 == *input;
        if let Some(at) = self.given.iter().position(same) {
            let recalled = recalled(&self.given[at])?;
            if recalled.answer.choice != Choice::ApproveAlways {
                self.given.remove(at);
            }
            return Some(recalled);
        }
        let always = |given: &Recalled| given.answer.choice == Choice::ApproveAlways;
        let of_tool = self.given.iter().filter(|approval| approval.tool == tool);
        of_tool.filter_map(recalled).find(always)
    }
}

fn recalled(approval: &Approval) -> Option<Recalled> {
    let given = approval.given.as_ref()?;
    Some(Recalled { id: approval.id.clone(), answer: given.answer.clone(), by: given.by.clone() })
}
