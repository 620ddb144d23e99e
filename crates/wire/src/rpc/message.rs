//! The four sorts of messages, borrowed from the line they came in.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::code::Code;
use super::id::Id;
use super::parse::Refusal;

/// What a line held.
#[derive(Debug)]
pub enum Incoming<'a> {
    /// One message.
    One(Message<'a>),
    /// A batch, each message judged by itself; never empty.
    Batch(Vec<Result<Message<'a>, Refusal>>),
}

/// One message. A message that could be two of these is none of them.
#[derive(Debug)]
pub enum Message<'a> {
    /// Has a method and an id, and wants an answer.
    Request {
        /// To be echoed in the answer.
        id: Id,
        /// What is called.
        method: Cow<'a, str>,
        /// The params as they were written; `None` if the member is missing.
        params: Option<&'a RawValue>,
        /// Other members, if the policy keeps them.
        extra: Extra<'a>,
    },
    /// Has a method and no id, and is not answered.
    Notification {
        /// What is called.
        method: Cow<'a, str>,
        /// The params as they were written; `None` if the member is missing.
        params: Option<&'a RawValue>,
        /// Other members, if the policy keeps them.
        extra: Extra<'a>,
    },
    /// A success.
    Response {
        /// The id of the request.
        id: Id,
        /// The result as it was written; `None` if the member is missing and the policy allows that.
        result: Option<&'a RawValue>,
        /// Other members, if the policy keeps them.
        extra: Extra<'a>,
    },
    /// A failure.
    Error {
        /// The id of the request; `None` if the member is missing and the policy allows that.
        id: Option<Id>,
        /// What went wrong.
        error: ErrorObject,
        /// Other members, if the policy keeps them.
        extra: Extra<'a>,
    },
}

/// Top-level members that JSON-RPC does not know, in the order they came.
pub type Extra<'a> = Vec<(Cow<'a, str>, &'a RawValue)>;

/// The error of a failed call, in both directions.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message} (code {code})")]
pub struct ErrorObject {
    /// The stable number.
    pub code: Code,
    /// A sentence for people.
    pub message: String,
    /// Details for programs.
    pub data: Option<Box<RawValue>>,
    /// Further members of the error object, such as steerable's `kind`, in order.
    pub extra: Vec<(String, Box<RawValue>)>,
}

impl ErrorObject {
    /// An error with a code and a sentence.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None, extra: Vec::new() }
    }

    /// Adds details.
    #[must_use]
    pub fn with_data(mut self, data: Box<RawValue>) -> Self {
        self.data = Some(data);
        self
    }

    /// Adds a member beside `code`, `message` and `data`.
    #[must_use]
    pub fn with_member(mut self, name: impl Into<String>, value: Box<RawValue>) -> Self {
        self.extra.push((name.into(), value));
        self
    }

    /// The further member of this name, if there is one.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&RawValue> {
        self.extra.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }
}

/// Raw values are compared as they are written.
impl PartialEq for ErrorObject {
    fn eq(&self, other: &Self) -> bool {
        fn members(object: &ErrorObject) -> impl Iterator<Item = (&str, &str)> {
            object.extra.iter().map(|(name, value)| (name.as_str(), value.get()))
        }
        self.code == other.code
            && self.message == other.message
            && self.data.as_deref().map(RawValue::get) == other.data.as_deref().map(RawValue::get)
            && members(self).eq(members(other))
    }
}
