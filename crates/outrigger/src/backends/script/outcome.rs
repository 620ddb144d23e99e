//! Host calls and what they came to, as ordinary JSON: in the log, in a replay and on the way to the script it is the same value.

use outrigger_mustard::host::store::Waiting;
use outrigger_mustard::host::{HostError, Plain, Reply};
use outrigger_policy::Digest;
use serde_json::{Value, json};

use crate::backends::tools::plain;
use crate::js::json::Json;
use crate::runs::entry::Call;

/// How deep arguments and results may nest. Readers of the log take twice that.
pub(super) const DEEPEST: usize = 60;

/// The largest arguments of one call, and the largest result, as JSON text.
pub(super) const LARGEST: usize = 1 << 20;

/// How much of arguments is in a suspension, which is for people: the snapshot has them all.
const SHOWN: usize = 4096;

/// The longest message of an error.
const LONGEST_MESSAGE: usize = 16 << 10;

/// A call that waits.
#[derive(Clone, Debug)]
pub(super) struct HostCall {
    pub(super) id: u64,
    pub(super) capability: String,
    /// An array.
    pub(super) args: Value,
    /// The same as text.
    pub(super) input: String,
    /// What the tool is given.
    pub(super) plain: Vec<Plain>,
    /// Why it cannot be made at all.
    pub(super) fault: Option<Thrown>,
}

/// What a call came to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outcome {
    Value(Value),
    Thrown(Thrown),
}

/// What a call throws.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Thrown {
    pub(super) name: String,
    pub(super) message: String,
    pub(super) code: Option<String>,
}

impl HostCall {
    pub(super) fn of(waiting: &Waiting) -> Self {
        let args: Vec<Json<'_>> = waiting.args.iter().map(Json).collect();
        // Strings, numbers and string keys: JSON has them all.
        let input = serde_json::to_string(&args).unwrap_or_default();
        let deep = waiting.args.iter().any(|arg| is_deeper(arg, DEEPEST - 1));
        let fault = if deep {
            Some(format!("its arguments are nested more than {DEEPEST} levels deep"))
        } else if input.len() > LARGEST {
            Some(format!("its arguments have {} bytes, and {LARGEST} may be", input.len()))
        } else {
            None
        };
        let name = &waiting.capability;
        let fault = fault.map(|why| Thrown::new("RangeError", format!("`{name}`: {why}"), "too_large"));
        let (args, input) = match &fault {
            None => (serde_json::from_str(&input).unwrap_or_default(), input),
            Some(_) => {
                let args = json!([beginning(&input)]);
                let input = args.to_string();
                (args, input)
            }
        };
        let (id, capability) = (waiting.call.0, waiting.capability.clone());
        Self { id, capability, args, input, plain: waiting.args.clone(), fault }
    }

    /// As the events name it.
    pub(super) fn use_id(&self) -> String {
        use_id(self.id)
    }

    pub(super) fn sha256(&self) -> Digest {
        Digest::of(self.input.as_bytes())
    }

    /// For people.
    pub(super) fn shown(&self) -> Call {
        let args = match self.input.len() {
            0..=SHOWN => self.args.clone(),
            _ => json!([beginning(&self.input)]),
        };
        Call { id: self.id, capability: self.capability.clone(), args }
    }

    /// As the script would write it.
    pub(super) fn text(&self) -> String {
        let inside = self.input.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        crate::say::short(&format!("{}({})", self.capability, inside.unwrap_or_default()))
    }
}

/// A call as the events name it.
pub(super) fn use_id(call: u64) -> String {
    format!("c{call}")
}

/// The call that the events name like this.
pub(super) fn call_of(use_id: &str) -> Option<u64> {
    use_id.strip_prefix('c')?.parse().ok()
}

impl Outcome {
    /// What a tool answered, if it can be kept.
    pub(super) fn of_tool(name: &str, result: Result<Plain, HostError>) -> Self {
        let value = match result {
            Ok(value) => value,
            Err(HostError { name, message, code, details: _ }) => {
                return Outcome::Thrown(Thrown { name, message, code }.cut());
            }
        };
        match kept(&value) {
            Ok(value) => Outcome::Value(value),
            Err(why) => {
                let message = format!("what `{name}` answered {why}");
                Outcome::Thrown(Thrown::new("RangeError", message, "too_large"))
            }
        }
    }

    /// What was written down: a value, or the object of an error.
    pub(super) fn of_written(output: &Result<Value, Value>) -> Self {
        let output = match output {
            Ok(value) => return Outcome::Value(value.clone()),
            Err(error) => error,
        };
        let text = |member: &str| output.get(member).and_then(Value::as_str).map(str::to_owned);
        Outcome::Thrown(Thrown {
            name: text("name").unwrap_or_else(|| "Error".to_owned()),
            message: text("message").unwrap_or_default(),
            code: text("code"),
        })
    }

    /// As it is written down.
    pub(super) fn written(&self) -> Result<Value, Value> {
        match self {
            Outcome::Value(value) => Ok(value.clone()),
            Outcome::Thrown(Thrown { name, message, code }) => {
                Err(json!({"name": name, "message": message, "code": code}))
            }
        }
    }

    /// As the script gets it.
    pub(super) fn reply(&self) -> Reply {
        match self {
            Outcome::Value(value) => Reply::Value(plain(value)),
            Outcome::Thrown(Thrown { name, message, code }) => Reply::Error(HostError {
                name: name.clone(),
                message: message.clone(),
                code: code.clone(),
                details: None,
            }),
        }
    }
}

impl Thrown {
    pub(super) fn new(name: &str, message: impl Into<String>, code: &str) -> Self {
        Self { name: name.to_owned(), message: message.into(), code: Some(code.to_owned()) }.cut()
    }

    fn cut(mut self) -> Self {
        if self.message.len() > LONGEST_MESSAGE {
            self.message.truncate(self.message.floor_char_boundary(LONGEST_MESSAGE));
            self.message.push('…');
        }
        self.name.truncate(self.name.floor_char_boundary(256));
        if let Some(code) = &mut self.code {
            code.truncate(code.floor_char_boundary(256));
        }
        self
    }
}

/// A value as it can be kept in the log; why not otherwise, as the end of a sentence.
pub(super) fn kept(value: &Plain) -> Result<Value, String> {
    if is_deeper(value, DEEPEST) {
        return Err(format!("is nested more than {DEEPEST} levels deep"));
    }
    // What is not too deep can be written, and what was written can be read.
    let text = Json(value).to_string();
    if text.len() > LARGEST {
        return Err(format!("has {} bytes, and {LARGEST} may be", text.len()));
    }
    Ok(serde_json::from_str(&text).unwrap_or_default())
}

/// Whether a value has more than so many levels of arrays and objects.
fn is_deeper(value: &Plain, levels: usize) -> bool {
    match value {
        Plain::Array(elements) => levels == 0 || elements.iter().any(|inner| is_deeper(inner, levels - 1)),
        Plain::Object(members) => {
            levels == 0 || members.iter().any(|(_, inner)| is_deeper(inner, levels - 1))
        }
        Plain::Undefined
        | Plain::Null
        | Plain::Hole
        | Plain::Bool(_)
        | Plain::Number(_)
        | Plain::String(_) => false,
    }
}

/// The beginning of a long text, and how long it is.
fn beginning(text: &str) -> String {
    let cut = &text[..text.floor_char_boundary(200)];
    format!("{cut}… ({} bytes)", text.len())
}

#[cfg(test)]
mod tests {
    use outrigger_mustard::host::store::CallId;

    use super::*;

    fn nested(levels: usize) -> Plain {
        (0..levels).fold(Plain::Null, |inner, _| Plain::Array(vec![inner]))
    }

    fn call(args: Vec<Plain>) -> HostCall {
        HostCall::of(&Waiting { call: CallId(3), capability: "f".into(), args })
    }

    #[test]
    fn results_are_kept_up_to_their_limits_and_thrown_back_past_them() {
        let text = |bytes: usize| Plain::String("x".repeat(bytes - 2));
        assert!(matches!(Outcome::of_tool("f", Ok(text(LARGEST))), Outcome::Value(_)));
        let Outcome::Thrown(thrown) = Outcome::of_tool("f", Ok(text(LARGEST + 1))) else { panic!() };
        assert_eq!(thrown.message, "what `f` answered has 1048577 bytes, and 1048576 may be");
        assert!(matches!(Outcome::of_tool("f", Ok(nested(DEEPEST))), Outcome::Value(_)));
        let Outcome::Thrown(thrown) = Outcome::of_tool("f", Ok(nested(DEEPEST + 1))) else { panic!() };
        assert_eq!(thrown.message, "what `f` answered is nested more than 60 levels deep");
    }

    #[test]
    fn arguments_past_their_limits_are_a_fault_of_the_call_and_stay_readable() {
        assert_eq!(call(vec![nested(DEEPEST - 1)]).fault, None);
        assert_eq!(call(vec![Plain::String("x".repeat(LARGEST - 4))]).fault, None);
        for wrong in [nested(DEEPEST), Plain::String("x".repeat(LARGEST - 3))] {
            let call = call(vec![wrong]);
            assert_eq!(call.fault.as_ref().map(|fault| fault.name.as_str()), Some("RangeError"));
            assert!(call.input.len() < 400, "{}", call.input);
        }
        let long = call(vec![Plain::String("y".repeat(SHOWN))]);
        assert!(long.fault.is_none() && long.shown().args.to_string().len() < 400);
        assert_eq!(long.text().chars().count(), 101);
    }

    #[test]
    fn what_a_call_came_to_is_the_same_after_it_was_in_the_log() {
        let thrown = Thrown { name: "Denied".into(), message: "no".into(), code: None };
        for outcome in [Outcome::Value(json!({"a": [1.5, null]})), Outcome::Thrown(thrown)] {
            assert_eq!(Outcome::of_written(&outcome.written()), outcome);
        }
        assert_eq!(call_of(&use_id(12)), Some(12));
        assert_eq!(call_of("x12"), None);
    }
}
