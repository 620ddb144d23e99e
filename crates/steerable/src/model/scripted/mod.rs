//! A model that is a file: every line is one answer. For tests, and for showing a runtime without a provider.
//!
//! A script has no memory. Which line is played follows from the request alone, so that a turn that is resumed goes on where it was.

mod read;

use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

use tokio::time::sleep;

use super::calls::{Arguments, Fragment};
use super::failure::{Failure, FailureKind, Voice};
use super::request::Request;
use super::telling::Telling;
use crate::chat::{Message, Role, Usage};

/// How large a script may be.
const LIMIT: u64 = 16 << 20;
/// How much is told before the listener must have taken it.
const BETWEEN_FLUSHES: usize = 32 << 10;

/// Why a script cannot be played.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("cannot read the script `{path}`: {problem}")]
    Read {
        /// The file.
        path: String,
        /// What went wrong.
        problem: String,
    },
    /// A line is wrong.
    #[error("line {line} of the script: {problem}")]
    Line {
        /// Which, from one.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
}

/// The answers of a scripted model.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    lines: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq)]
struct Line {
    when: Option<String>,
    act: Act,
}

#[derive(Clone, Debug, PartialEq)]
enum Act {
    Answer { delay: Duration, chunks: Vec<Chunk> },
    Fail { failure: Failure, times: Option<u32> },
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Chunk {
    sleep: Duration,
    reasoning: String,
    delta: String,
    call: Option<Call>,
    finish: String,
    usage: Option<Usage>,
}

#[derive(Clone, Debug, PartialEq)]
struct Call {
    id: String,
    name: String,
    arguments: String,
}

impl Script {
    /// Reads a script and judges every line of it.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or one of its lines is wrong.
    pub fn open(path: &Path) -> Result<Self, ScriptError> {
        let wrong = |problem: String| ScriptError::Read { path: path.display().to_string(), problem };
        if path.as_os_str().is_empty() {
            return Err(wrong("`baseUrl` must be its path".to_owned()));
        }
        let size = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?.len();
        if size > LIMIT {
            return Err(wrong(format!("it is larger than {LIMIT} bytes")));
        }
        Self::read(&std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?)
    }

    /// Reads a script from its text.
    ///
    /// # Errors
    ///
    /// If a line is wrong, or there is none.
    pub fn read(text: &str) -> Result<Self, ScriptError> {
        let mut lines = Vec::new();
        for (at, line) in text.lines().enumerate() {
            if !line.trim().is_empty() {
                let read = Line::read(line);
                lines.push(read.map_err(|problem| ScriptError::Line { line: at + 1, problem })?);
            }
        }
        if lines.is_empty() {
            return Err(ScriptError::Line { line: 1, problem: "there is no answer in it".to_owned() });
        }
        Ok(Self { lines })
    }

    /// Plays the line that fits the request.
    pub(super) async fn play(
        &self,
        request: &Request,
        attempt: u32,
        told: &mut Telling<'_>,
        voice: Voice<'_>,
    ) -> Result<(), Failure> {
        let nothing =
            || voice.failure(FailureKind::InvalidRequest, "no line of the script fits the conversation");
        match self.choose(&request.messages, attempt).ok_or_else(nothing)? {
            Act::Fail { failure, .. } => {
                Err(Failure { message: format!("scripted: {}", failure.message), ..failure.clone() })
            }
            Act::Answer { delay, chunks } => {
                wait(*delay, request.patience.connect, voice).await?;
                let mut since_flush = 0;
                for chunk in chunks {
                    if !chunk.sleep.is_zero() || since_flush > BETWEEN_FLUSHES {
                        told.flush().await?;
                        since_flush = 0;
                        wait(chunk.sleep, request.patience.idle, voice).await?;
                    }
                    since_flush += chunk.delta.len() + chunk.reasoning.len();
                    chunk.tell(told)?;
                }
                Ok(())
            }
        }
    }

    /// The line for a conversation. `attempt` is how often it was asked for, from one.
    fn choose(&self, messages: &[Message], attempt: u32) -> Option<&Act> {
        let last = messages.iter().rev().find(|message| matches!(message.role, Role::User | Role::Tool));
        let last = last.map(Message::plain_text).unwrap_or_default();
        let fits = |line: &&Line| line.when.as_ref().is_some_and(|text| last.contains(text.as_str()));
        let when = self.lines.iter().filter(fits);
        let spoken = messages.iter().filter(|message| message.role == Role::Assistant).count();
        let mut failed = attempt - 1;
        for act in when.chain(self.numbered(spoken)).map(|line| &line.act) {
            match act {
                Act::Fail { times: Some(times), .. } if failed >= *times => failed -= times,
                Act::Fail { .. } | Act::Answer { .. } => return Some(act),
            }
        }
        None
    }

    /// The answer with a number, or the last one; before it the errors that go away and stand before it.
    fn numbered(&self, number: usize) -> impl Iterator<Item = &Line> {
        self.range(number).filter(|line| line.when.is_none())
    }

    fn range(&self, number: usize) -> std::slice::Iter<'_, Line> {
        let plain: Vec<usize> = (0..self.lines.len()).filter(|at| self.lines[*at].when.is_none()).collect();
        let passes = |at: &usize| matches!(self.lines[*at].act, Act::Fail { times: Some(_), .. });
        let answers: Vec<usize> = plain.iter().copied().filter(|at| !passes(at)).collect();
        let Some(last) = answers.last() else { return [].iter() };
        let Some(at) = answers.get(number) else { return self.lines[*last..=*last].iter() };
        let mut before = plain.iter().copied().take_while(|plain| plain < at);
        let first = before.find(|plain| number == 0 || *plain > answers[number - 1]).unwrap_or(*at);
        self.lines[first..=*at].iter()
    }
}

async fn wait(time: Duration, patience: Duration, voice: Voice<'_>) -> Result<(), Failure> {
    if time.is_zero() {
        return Ok(());
    }
    sleep(time.min(patience)).await;
    if time > patience {
        return Err(voice.failure(FailureKind::Timeout, &format!("silent for {patience:?}")));
    }
    Ok(())
}

impl Chunk {
    fn tell(&self, told: &mut Telling<'_>) -> Result<(), Failure> {
        told.reasoning(Cow::Borrowed(&self.reasoning));
        told.delta(Cow::Borrowed(&self.delta));
        if let Some(call) = &self.call {
            // Every call of a script is whole and another one, whatever its id.
            let arguments = Arguments::Whole(&call.arguments);
            told.another_call(Fragment {
                index: None,
                id: Some(&call.id),
                name: Some(&call.name),
                arguments,
            })?;
        }
        told.finish(Cow::Borrowed(&self.finish));
        if let Some(usage) = self.usage {
            told.usage(usage);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(text: &str) -> Script {
        Script::read(text).unwrap()
    }

    /// What a script says to a conversation, given as roles (`u`, `a`, `t`) with the text of the last one.
    fn says(script: &Script, roles: &str, last: &str, attempt: u32) -> Option<String> {
        let role = |letter| match letter {
            'a' => Role::Assistant,
            't' => Role::Tool,
            _ => Role::User,
        };
        let mut messages: Vec<Message> =
            roles.chars().map(|letter| Message::text(role(letter), "")).collect();
        messages.push(Message::text(role(roles.chars().last().unwrap_or('u')), last));
        script.choose(&messages, attempt).map(|act| match act {
            Act::Answer { chunks, .. } => chunks.iter().map(|chunk| chunk.delta.as_str()).collect(),
            Act::Fail { failure, .. } => format!("! {}", failure.message),
        })
    }

    const THREE: &str = r#"{"chunks":[{"delta":"zero"}]}

{"when":"weather","chunks":[{"delta":"sunny"}]}
{"chunks":[{"delta":"one"}]}
{"when":"weather in","chunks":[{"delta":"never"}]}
{"chunks":[{"delta":"two"}]}"#;

    #[test]
    fn lines_without_a_condition_are_played_by_the_number_of_answers_so_far() {
        let script = script(THREE);
        assert_eq!(says(&script, "u", "hi", 1).unwrap(), "zero");
        assert_eq!(says(&script, "uat", "hi", 1).unwrap(), "one");
        assert_eq!(says(&script, "uau", "hi", 1).unwrap(), "one");
        assert_eq!(says(&script, "uauau", "hi", 1).unwrap(), "two");
        assert_eq!(says(&script, "uauauauau", "hi", 1).unwrap(), "two");
    }

    #[test]
    fn the_first_line_whose_text_was_said_last_is_played_before_all_others() {
        let script = script(THREE);
        assert_eq!(says(&script, "u", "the weather in Rome", 1).unwrap(), "sunny");
        assert_eq!(says(&script, "uat", "weather: 20", 1).unwrap(), "sunny");
    }

    #[test]
    fn an_error_that_goes_away_stands_before_an_answer_and_is_not_counted() {
        let script = script(
            r#"{"error":{"kind":"server","message":"busy"},"times":2}
{"chunks":[{"delta":"zero"}]}
{"when":"x","error":{"kind":"timeout"},"times":1}
{"error":{"kind":"rate_limit"},"times":1}
{"chunks":[{"delta":"one"}]}"#,
        );
        let at = |roles, last, attempt| says(&script, roles, last, attempt).unwrap();
        assert_eq!([at("u", "", 1), at("u", "", 2), at("u", "", 3)], ["! busy", "! busy", "zero"]);
        assert_eq!([at("uau", "", 1), at("uau", "", 2)], ["! rate_limit", "one"]);
        assert_eq!(
            [at("uau", "x", 1), at("uau", "x", 2), at("uau", "x", 3)],
            ["! timeout", "! rate_limit", "one"]
        );
        assert_eq!(at("uauau", "", 1), "one");
    }

    #[test]
    fn a_script_of_nothing_but_conditions_may_have_no_answer() {
        let script = script(r#"{"when":"x","chunks":[]}"#);
        assert_eq!(says(&script, "u", "y", 1), None);
    }

    #[test]
    fn every_mistake_is_named_with_its_line() {
        for (line, problem) in [
            ("{", "no JSON: EOF while parsing an object at line 1 column 1"),
            ("[]", "it must be an object"),
            ("{}", "it must have either `chunks` or `error`"),
            (r#"{"chunks":[],"error":{"kind":"auth"}}"#, "it must have either `chunks` or `error`"),
            (r#"{"chunks":{}}"#, "`chunks` must be an array"),
            (r#"{"chunks":[1]}"#, "a chunk must be an object"),
            (r#"{"chunks":[],"delay":1}"#, "`delay` is not one of when, chunks, delayMs"),
            (r#"{"chunks":[{"delta":1}]}"#, "`delta` must be a string"),
            (r#"{"chunks":[{"sleepMs":-1}]}"#, "`sleepMs` must be a whole number"),
            (r#"{"chunks":[{"toolCall":{"id":"a"}}]}"#, "`toolCall.name` is missing"),
            (
                r#"{"chunks":[{"toolCall":{"name":"a","arguments":[]}}]}"#,
                "`toolCall.arguments` must be an object",
            ),
            (r#"{"error":{}}"#, "`error.kind` is missing"),
            (r#"{"error":{"kind":"oops"}}"#, "`error.kind` cannot be `oops`"),
            (r#"{"error":{"kind":"auth"},"chunk":[]}"#, "`chunk` is not one of when, error, times"),
            (r#"{"error":{"kind":"auth","status":70000}}"#, "`error.status` is too large"),
        ] {
            let error = Script::read(&format!("{{\"chunks\":[]}}\n\n{line}")).unwrap_err();
            assert_eq!(error.to_string(), format!("line 3 of the script: {problem}"));
        }
        assert_eq!(
            Script::read("\n").unwrap_err().to_string(),
            "line 1 of the script: there is no answer in it"
        );
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = Script::open(Path::new("/nowhere/script.jsonl")).unwrap_err().to_string();
        assert!(error.starts_with("cannot read the script `/nowhere/script.jsonl`: "), "{error}");
        assert!(Script::open(Path::new("")).unwrap_err().to_string().ends_with("`baseUrl` must be its path"));
    }
}
