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
