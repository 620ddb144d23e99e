//! Agents loop: the same call, failing the same way, again and again. This counts.

use crate::chat::ToolCall;

/// How often a call may fail in a row before the model is told so.
const TOLD_AFTER: u32 = 3;
/// How often it may fail before the turn ends.
const ENDS_AFTER: u32 = 5;

/// The calls that failed last.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    last: Option<(String, String)>,
    times: u32,
}

/// What a failure means after those before it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Repeated {
    /// Nothing yet.
    Fine,
    /// The model is told; so often did the call fail.
    Tell(u32),
    /// The turn ends; so often did the call fail.
    Enough(u32),
}

impl Repeats {
    /// A call failed.
    pub(super) fn failed(&mut self, call: &ToolCall) -> Repeated {
        let same = self
            .last
            .as_ref()
            .is_some_and(|(name, arguments)| *name == call.name && arguments == call.arguments.get());
        if same {
            self.times = self.times.saturating_add(1);
        } else {
            self.last = Some((call.name.clone(), call.arguments.get().to_owned()));
            self.times = 1;
        }
        match self.times {
            times if times >= ENDS_AFTER => Repeated::Enough(times),
            times if times >= TOLD_AFTER => Repeated::Tell(times),
            _ => Repeated::Fine,
        }
    }

    /// A call succeeded, so nothing is repeated any more.
    pub(super) fn succeeded(&mut self) {
        self.last = None;
        self.times = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;

    fn call(name: &str, arguments: &str) -> ToolCall {
        ToolCall {
            id: "c".to_owned(),
            name: name.to_owned(),
            arguments: RawValue::from_string(arguments.to_owned()).unwrap(),
        }
    }

    #[test]
    fn the_third_failure_in_a_row_is_told_and_the_fifth_is_enough() {
        let mut repeats = Repeats::default();
        let seen: Vec<Repeated> = (0..5).map(|_| repeats.failed(&call("a", "{}"))).collect();
        let expected =
            [Repeated::Fine, Repeated::Fine, Repeated::Tell(3), Repeated::Tell(4), Repeated::Enough(5)];
        assert_eq!(seen, expected);
    }

    #[test]
    fn other_arguments_another_tool_or_a_success_begin_anew() {
        let mut repeats = Repeats::default();
        repeats.failed(&call("a", "{}"));
        repeats.failed(&call("a", "{}"));
        assert_eq!(repeats.failed(&call("a", r#"{"x":1}"#)), Repeated::Fine);
        assert_eq!(repeats.failed(&call("b", r#"{"x":1}"#)), Repeated::Fine);
        repeats.failed(&call("b", r#"{"x":1}"#));
        repeats.succeeded();
        assert_eq!(repeats.failed(&call("b", r#"{"x":1}"#)), Repeated::Fine);
    }
}
