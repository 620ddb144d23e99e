//! From a line to a message: parse, classify, and when it is refused say why and to whom.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::code::{self, Code};
use super::id::{Id, IdKind, unquote};
use super::message::{ErrorObject, Extra, Incoming, Message};
use super::policy::{Batch, Duplicates, EnvelopePolicy, ErrorId, Ids, Strangers, Version, VoidResult};
use super::scan::{self, Flaw, Key};

/// Takes a line apart as `policy` says. Nothing but ids and error objects is copied.
///
/// # Errors
/// When the line is not a message; the refusal says what to answer and whom.
pub fn parse<'a>(line: &'a str, policy: &EnvelopePolicy) -> Result<Incoming<'a>, Refusal> {
    if scan::nests_deeper_than(line, policy.nesting) {
        let seen = scan::shallow(line);
        let id = seen.id.map(Id::from_json).filter(|id| id_is_allowed(id, policy.ids));
        let shape = if seen.is_reply { Shape::Reply } else { Shape::Call };
        return Err(Refusal { defect: Defect::TooDeep, id, shape });
    }
    if policy.duplicates == Duplicates::RefuseEverywhere {
        scan::whole_text(line).map_err(|flaw| match flaw {
            Flaw::NotJson => Defect::NotJson,
            Flaw::DuplicateKey => Defect::DuplicateKey,
        })?;
    }
    match line.trim_ascii_start().as_bytes().first() {
        Some(b'{') => parse_one(line, policy).map(Incoming::One),
        Some(b'[') => parse_batch(line, policy).map(Incoming::Batch),
        Some(_) | None => Err(match serde_json::from_str::<&RawValue>(line) {
            Ok(_) => Defect::NotAnObject.into(),
            Err(_) => Defect::NotJson.into(),
        }),
    }
}

/// Why a line is not a message, and what its sender should be told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{defect}")]
pub struct Refusal {
    /// What is wrong with it.
    pub defect: Defect,
    /// The id to answer with, if one could be read; otherwise the answer has the id `null`.
    pub id: Option<Id>,
    /// Whether it looked like a call or like a reply. A reply must not be answered.
    pub shape: Shape,
}

impl From<Defect> for Refusal {
    fn from(defect: Defect) -> Self {
        Self { defect, id: None, shape: Shape::Call }
    }
}

impl Refusal {
    /// The error to answer with.
    #[must_use]
    pub fn to_error(&self) -> ErrorObject {
        ErrorObject::new(self.defect.code(), self.defect.to_string())
    }
}

/// What a refused message looked like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A request or a notification, or nothing recognisable.
    Call,
    /// A response or an error.
    Reply,
}

/// What is wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Defect {
    /// It is not UTF-8. Found before parsing, by the line splitter.
    #[error("message is not UTF-8")]
    NotUtf8,
    /// It is not JSON.
    #[error("message is not valid JSON")]
    NotJson,
    /// It nests deeper than the limit.
    #[error("message is nested too deeply")]
    TooDeep,
    /// An object has a key twice.
    #[error("message has a duplicate key")]
    DuplicateKey,
    /// It is a number, a string, a boolean or null.
    #[error("message is not an object")]
    NotAnObject,
    /// It is a batch and the policy has none.
    #[error("batches are not supported")]
    BatchUnsupported,
    /// It is a batch without messages.
    #[error("batch is empty")]
    BatchEmpty,
    /// It is a batch of more messages than the limit.
    #[error("batch has too many messages")]
    BatchTooLarge,
    /// Its id is not of an allowed sort.
    #[error("id is not acceptable")]
    BadId,
    /// Its id is that of a request still in flight. Found after parsing, by the peer.
    #[error("id is already in use by a request in flight")]
    DuplicateId,
    /// Its `jsonrpc` member is missing or not `"2.0"`.
    #[error("member `jsonrpc` must be \"2.0\"")]
    BadVersion,
    /// Its method is missing, empty or not a string.
    #[error("missing method")]
    BadMethod,
    /// It is a request and a response at once, or a result and an error at once.
    #[error("message is both a request and a response, or both a result and an error")]
    Ambiguous,
    /// It is a response or an error without an id.
    #[error("response has no id")]
    ReplyWithoutId,
    /// Its error is not an object with an integer `code` and a string `message`.
    #[error("member `error` is not an error object")]
    BadError,
}

impl Defect {
    /// The code to answer with: the text was unreadable, or it was readable and not a request.
    #[must_use]
    pub fn code(self) -> Code {
        match self {
            Self::NotUtf8 | Self::NotJson | Self::TooDeep | Self::DuplicateKey => code::PARSE_ERROR,
            Self::NotAnObject
            | Self::BatchUnsupported
            | Self::BatchEmpty
            | Self::BatchTooLarge
            | Self::BadId
            | Self::DuplicateId
            | Self::BadVersion
            | Self::BadMethod
            | Self::Ambiguous
            | Self::ReplyWithoutId
            | Self::BadError => code::INVALID_REQUEST,
        }
    }

    /// A stable word for programs, as SEP's `data.reason` has it.
    #[must_use]
    pub fn slug(self) -> &'static str {
        match self {
            Self::NotUtf8 => "invalid_utf8",
            Self::NotJson => "invalid_json",
            Self::TooDeep => "depth",
            Self::DuplicateKey => "duplicate_key",
            Self::BatchUnsupported | Self::BatchEmpty | Self::BatchTooLarge => "batch_unsupported",
            Self::BadId => "bad_id",
            Self::DuplicateId => "duplicate_id",
            Self::NotAnObject
            | Self::BadVersion
            | Self::BadMethod
            | Self::Ambiguous
            | Self::ReplyWithoutId
            | Self::BadError => "bad_envelope",
        }
    }
}

fn parse_one<'a>(json: &'a str, policy: &EnvelopePolicy) -> Result<Message<'a>, Refusal> {
    let mut members = Members::default();
    let mut duplicate = false;
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let read = ReadMembers { policy, members: &mut members, duplicate: &mut duplicate }
        .deserialize(&mut deserializer)
        .and_then(|()| deserializer.end());
    match read {
        Ok(()) => members.classify(policy),
        Err(_) if duplicate => Err(Defect::DuplicateKey.into()),
        Err(_) => Err(Defect::NotJson.into()),
    }
}

fn parse_batch<'a>(
    json: &'a str,
    policy: &EnvelopePolicy,
) -> Result<Vec<Result<Message<'a>, Refusal>>, Refusal> {
    let most = match policy.batch {
        Batch::Accept { most } => most,
        Batch::Refuse => {
            return Err(match serde_json::from_str::<&RawValue>(json) {
                Ok(_) => Defect::BatchUnsupported.into(),
                Err(_) => Defect::NotJson.into(),
            });
        }
    };
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let mut too_many = false;
    let elements = ReadElements { most, too_many: &mut too_many }.deserialize(&mut deserializer);
    let elements = match elements.and_then(|elements| deserializer.end().map(|()| elements)) {
        Ok(elements) if elements.is_empty() => return Err(Defect::BatchEmpty.into()),
        Ok(elements) => elements,
        Err(_) if too_many => return Err(Defect::BatchTooLarge.into()),
        Err(_) => return Err(Defect::NotJson.into()),
    };
    let judge = |element: &'a RawValue| match element.get().as_bytes().first() {
        Some(b'{') => parse_one(element.get(), policy),
        Some(_) | None => Err(Defect::NotAnObject.into()),
    };
    Ok(elements.into_iter().map(judge).collect())
}

/// The member `id` of the params of a cancellation.
pub(crate) fn id_member(params: &RawValue) -> Option<Id> {
    /// Reads the one member and skips the others.
    #[derive(serde::Deserialize)]
    struct Named<'a> {
        #[serde(borrow)]
        id: &'a RawValue,
    }
    let named: Named<'_> = serde_json::from_str(params.get()).ok()?;
    Some(Id::from_json(named.id.get()))
}

/// The members of an envelope as they are written, before anyone has asked what they mean.
#[derive(Default)]
struct Members<'a> {
    jsonrpc: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    extra: Extra<'a>,
}

impl<'a> Members<'a> {
    fn classify(self, policy: &EnvelopePolicy) -> Result<Message<'a>, Refusal> {
        let is_reply = self.method.is_none()
            && (self.result.is_some()
                || self.error.is_some()
                || (self.id.is_some() && policy.void_result == VoidResult::MayBeMissing));
        let shape = if is_reply { Shape::Reply } else { Shape::Call };
        let id = self.id.map(|raw| Id::from_json(raw.get()));
        if id.as_ref().is_some_and(|id| !id_is_allowed(id, policy.ids))
            && !is_null_error_id(&self, id.as_ref())
        {
            return Err(Refusal { defect: Defect::BadId, id: None, shape });
        }
        let refuse = |defect| Refusal { defect, id: id.clone(), shape };
        let version_is_right = match (policy.version, self.jsonrpc) {
            (Version::Unchecked, _) | (Version::OptionalButRight, None) => true,
            (Version::Required, None) => false,
            (Version::Required | Version::OptionalButRight, Some(raw)) => {
                unquote(raw.get()).is_some_and(|text| text == "2.0")
            }
        };
        if !version_is_right {
            return Err(refuse(Defect::BadVersion));
        }
        if let Some(method) = self.method {
            if self.result.is_some() || self.error.is_some() {
                return Err(refuse(Defect::Ambiguous));
            }
            let Some(method) = unquote(method.get()).filter(|method| !method.is_empty()) else {
                return Err(refuse(Defect::BadMethod));
            };
            let Self { params, extra, .. } = self;
            return Ok(match id {
                Some(id) => Message::Request { id, method, params, extra },
                None => Message::Notification { method, params, extra },
            });
        }
        match (self.result, self.error) {
            (Some(_), Some(_)) => Err(refuse(Defect::Ambiguous)),
            (None, None) if !is_reply => Err(refuse(Defect::BadMethod)),
            (None, Some(error)) => {
                let error = read_error(error.get()).ok_or_else(|| refuse(Defect::BadError))?;
                if id.is_none() && policy.error_id == ErrorId::Required {
                    return Err(refuse(Defect::ReplyWithoutId));
                }
                Ok(Message::Error { id, error, extra: self.extra })
            }
            (result, None) => match id {
                Some(id) => Ok(Message::Response { id, result, extra: self.extra }),
                None => Err(refuse(Defect::ReplyWithoutId)),
            },
        }
    }
}

fn id_is_allowed(id: &Id, ids: Ids) -> bool {
    match ids {
        Ids::Any => true,
        Ids::Standard => id.kind() != IdKind::Other,
        Ids::Portable => id.is_portable(),
    }
}

/// An error may always answer to `null`: its sender could not read the id.
fn is_null_error_id(members: &Members<'_>, id: Option<&Id>) -> bool {
    members.method.is_none() && members.error.is_some() && id.is_some_and(|id| id.kind() == IdKind::Null)
}

fn read_error(json: &str) -> Option<ErrorObject> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    ReadError.deserialize(&mut deserializer).ok()
}

struct ReadMembers<'p, 'm, 'a> {
    policy: &'p EnvelopePolicy,
    members: &'m mut Members<'a>,
    duplicate: &'m mut bool,
}

impl<'de> DeserializeSeed<'de> for ReadMembers<'_, '_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ReadMembers<'_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON-RPC message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let members = self.members;
        // Strangers are remembered by name only while they have to be compared.
        let mut strangers: Vec<Cow<'de, str>> = Vec::new();
        while let Some(key) = map.next_key_seed(Key)? {
            let value: &'de RawValue = map.next_value()?;
            let slot = match &*key {
                "jsonrpc" => &mut members.jsonrpc,
                "id" => &mut members.id,
                "method" => &mut members.method,
                "params" => &mut members.params,
                "result" => &mut members.result,
                "error" => &mut members.error,
                _ => {
                    match (self.policy.strangers, self.policy.duplicates) {
                        (Strangers::Keep, _) => members.extra.push((key, value)),
                        (Strangers::Ignore, Duplicates::RefuseInEnvelope) => strangers.push(key),
                        (Strangers::Ignore, Duplicates::LastWins | Duplicates::RefuseEverywhere) => {}
                    }
                    continue;
                }
            };
            if slot.replace(value).is_some() && self.policy.duplicates != Duplicates::LastWins {
                *self.duplicate = true;
                return Err(serde::de::Error::custom("duplicate key"));
            }
        }
        if self.policy.duplicates == Duplicates::RefuseInEnvelope {
            strangers.extend(members.extra.iter().map(|(key, _)| key.clone()));
            strangers.sort_unstable();
            if strangers.windows(2).any(|pair| pair[0] == pair[1]) {
                *self.duplicate = true;
                return Err(serde::de::Error::custom("duplicate key"));
            }
        }
        Ok(())
    }
}

struct ReadElements<'m> {
    most: usize,
    too_many: &'m mut bool,
}

impl<'de> DeserializeSeed<'de> for ReadElements<'_> {
    type Value = Vec<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ReadElements<'_> {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a batch")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = seq.next_element()? {
            if elements.len() == self.most {
                *self.too_many = true;
                return Err(serde::de::Error::custom("too many messages"));
            }
            elements.push(element);
        }
        Ok(elements)
    }
}

struct ReadError;

impl<'de> DeserializeSeed<'de> for ReadError {
    type Value = ErrorObject;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<ErrorObject, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ReadError {
    type Value = ErrorObject;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an error object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ErrorObject, A::Error> {
        let (mut code, mut message, mut data, mut extra) = (None, None, None, Vec::new());
        while let Some(key) = map.next_key_seed(Key)? {
            match &*key {
                "code" => code = Some(map.next_value::<i64>()?),
                "message" => message = Some(map.next_value::<String>()?),
                "data" => data = Some(map.next_value::<Box<RawValue>>()?),
                _ => extra.push((key.into_owned(), map.next_value()?)),
            }
        }
        let missing = || serde::de::Error::custom("code or message is missing");
        let (code, message) = (Code(code.ok_or_else(missing)?), message.ok_or_else(missing)?);
        Ok(ErrorObject { code, message, data, extra })
    }
}
