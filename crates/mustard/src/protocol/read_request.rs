//! JSON to requests. What cannot be answered is told from what can: an id that was found is answered.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::feature::{Feature, Features, VERSION};
use super::fields::{Fields, Flaw};
use super::json::Raw;
use super::limits::Limits;
use super::request::{
    Answer, Auth, Claim, Compile, Hello, HostError, Method, Payload, Policy, Release, Request, RequestError,
    Resume, Start,
};

impl<'a> Request<'a> {
    /// Reads the header of a binary frame.
    ///
    /// # Errors
    /// When it is not a request; the error says whom to answer, if that is known.
    pub fn decode(header: &'a str, blob: &'a [u8], features: Features) -> Result<Request<'a>, RequestError> {
        let request = read(header, features)?.0;
        if matches!(request.method, Method::Compile(_)) && !blob.is_empty() {
            return Err(RequestError::Invalid("`compile` takes no blob".into()));
        }
        Ok(Request { blob: Cow::Borrowed(blob), ..request })
    }

    /// Reads a line, whose blob is in base64.
    ///
    /// # Errors
    /// When it is not a request; the error says whom to answer, if that is known.
    pub fn decode_line(line: &'a str, features: Features) -> Result<Request<'a>, RequestError> {
        let (request, fields) = read(line, features)?;
        let id = request.id;
        let name = match request.method {
            Method::Start(_) => "program_base64",
            Method::Resume(_) | Method::Inspect(_) => "snapshot_base64",
            Method::Compile(_) | Method::Hello(_) | Method::Release(_) => return Ok(request),
        };
        let coded = fields.optional_text(name).map_err(|flaw| explain(id, flaw))?;
        let Some(coded) = coded else { return Ok(request) };
        match STANDARD.decode(coded.as_bytes()) {
            Ok(blob) => Ok(Request { blob: Cow::Owned(blob), ..request }),
            Err(error) => Err(RequestError::Shape { id, what: format!("`{name}` is not base64: {error}") }),
        }
    }
}

fn read(header: &str, features: Features) -> Result<(Request<'_>, Fields<'_>), RequestError> {
    let members = match Raw::document_members(header) {
        Ok(Some(members)) => members,
        Ok(None) => return Err(RequestError::Invalid("it must be a JSON object".into())),
        Err(error) => return Err(RequestError::Invalid(error.to_string())),
    };
    let fields = Fields::new("", members);
    let invalid = |flaw: Flaw| RequestError::Invalid(flaw.to_string());
    // Whom to answer comes first, then whether both speak of the same things, then what is asked for.
    let id = fields.whole("id").map_err(invalid)?;
    let version = fields.raw("protocol_version").map_err(invalid)?;
    let method = fields.raw("method").map_err(invalid)?;
    if version.and_then(Raw::whole) != Some(VERSION) {
        return Err(RequestError::Version { id, got: version.map_or("(none)".into(), spelled) });
    }
    let name = method.and_then(Raw::string).transpose();
    let name = name.map_err(|error| RequestError::Invalid(error.to_string()))?;
    let Some(name) = name else {
        return Err(RequestError::Invalid("`method` must be a string".into()));
    };
    let method = match &*name {
        "compile" => compile(&fields, features).map(Method::Compile),
        "start" => start(&fields, features).map(Method::Start),
        "resume" => resume(&fields, features).map(Method::Resume),
        "hello" => hello(&fields).map(Method::Hello),
        "release" if features.has(Feature::Release) => release(&fields).map(Method::Release),
        "inspect" if features.has(Feature::Inspect) => claim(&fields).map(Method::Inspect),
        _ => return Err(RequestError::Invalid(format!("unknown method `{}`", shortened(&name)))),
    };
    let method = method.map_err(|flaw| explain(id, flaw))?;
    Ok((Request { id, method, blob: Cow::Borrowed(&[]) }, fields))
}

fn explain(id: u64, flaw: Flaw) -> RequestError {
    match flaw {
        Flaw::Duplicate(_) => RequestError::Invalid(flaw.to_string()),
        Flaw::Shape(what) => RequestError::Shape { id, what },
        Flaw::Value { place, error } => RequestError::Value { id, place, error },
    }
}

/// A version as it was spelled, if that is short.
fn spelled(raw: Raw<'_>) -> String {
    if raw.text().len() <= 20 { raw.text().to_owned() } else { format!("({})", raw.kind()) }
}

fn shortened(name: &str) -> Cow<'_, str> {
    match name.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &name[..end]).into(),
        None => name.into(),
    }
}

fn compile<'a>(fields: &Fields<'a>, features: Features) -> Result<Compile<'a>, Flaw> {
    let lenient_return = features.has(Feature::Return) && fields.flag("lenient_return")?;
    Ok(Compile { source: fields.text("source")?, lenient_return })
}

fn start<'a>(fields: &Fields<'a>, features: Features) -> Result<Start<'a>, Flaw> {
    let program_id = fields.optional_text("program_id")?;
    let options = fields.required_object("options")?;
    let inputs = match options.object("inputs")? {
        Some(inputs) => values(inputs)?,
        None => Vec::new(),
    };
    let limits = match options.object("limits")? {
        Some(fields) => limits(&fields)?,
        None => Limits::DEFAULTS,
    };
    let world = features.has(Feature::World);
    Ok(Start {
        program_id,
        inputs,
        capabilities: options.texts("capabilities")?,
        limits,
        profile: fields.flag("profile")?,
        deadline_ms: deadline(fields, features)?,
        seed: if world { options.optional_whole("seed")? } else { None },
        now_ms: if world { options.optional_number("now_ms")? } else { None },
    })
}

fn values(inputs: Fields<'_>) -> Result<Vec<(String, outrigger_vm::boundary::Plain)>, Flaw> {
    let read = |(name, raw): (Cow<'_, str>, Raw<'_>)| match super::value::read(raw) {
        Ok(value) => Ok((name.into_owned(), value)),
        Err(error) => Err(Flaw::Value { place: format!("inputs.{}", shortened(&name)), error }),
    };
    inputs.into_members().into_iter().map(read).collect()
}

fn limits(fields: &Fields<'_>) -> Result<Limits, Flaw> {
    Ok(Limits {
        instruction_budget: fields.optional_whole("instruction_budget")?,
        heap_limit_bytes: fields.optional_whole("heap_limit_bytes")?,
        allocation_budget: fields.optional_whole("allocation_budget")?,
        call_depth_limit: fields.optional_whole("call_depth_limit")?,
        max_outstanding_host_calls: fields.optional_whole("max_outstanding_host_calls")?,
    })
}

fn deadline(fields: &Fields<'_>, features: Features) -> Result<Option<u64>, Flaw> {
    if !features.has(Feature::Deadline) {
        return Ok(None);
    }
    match fields.optional_whole("deadline_ms")? {
        Some(0) => Err(Flaw::Shape("`deadline_ms` must be more than 0".into())),
        deadline => Ok(deadline),
    }
}

fn resume<'a>(fields: &Fields<'a>, features: Features) -> Result<Resume<'a>, Flaw> {
    Ok(Resume {
        claim: claim(fields)?,
        payload: payload(&fields.required_object("payload")?, features)?,
        profile: fields.flag("profile")?,
        deadline_ms: deadline(fields, features)?,
        now_ms: if features.has(Feature::World) { fields.optional_number("now_ms")? } else { None },
    })
}

fn claim<'a>(fields: &Fields<'a>) -> Result<Claim<'a>, Flaw> {
    let policy = match fields.optional_object("policy")? {
        Some(policy) => Some(Policy {
            capabilities: policy.texts("capabilities")?,
            limits: policy.optional_object("limits")?.map(|fields| limits(&fields)).transpose()?,
            snapshot_id: policy.optional_text("snapshot_id")?,
            snapshot_key_base64: policy.optional_text("snapshot_key_base64")?,
            snapshot_key_digest: policy.optional_text("snapshot_key_digest")?,
            snapshot_token: policy.optional_text("snapshot_token")?,
        }),
        None => None,
    };
    let auth = match fields.optional_object("auth")? {
        Some(auth) => Some(Auth {
            snapshot_key_base64: auth.text("snapshot_key_base64")?,
            snapshot_key_digest: auth.text("snapshot_key_digest")?,
            snapshot_token: auth.text("snapshot_token")?,
        }),
        None => None,
    };
    Ok(Claim {
        snapshot_id: fields.optional_text("snapshot_id")?,
        policy,
        policy_id: fields.optional_text("policy_id")?,
        auth,
    })
}

fn payload(fields: &Fields<'_>, features: Features) -> Result<Payload, Flaw> {
    match &*fields.text("type")? {
        "cancelled" => Ok(Payload::Cancelled),
        "answers" if features.has(Feature::Batch) => {
            let Some(answers) = fields.objects("answers")? else {
                return Err(Flaw::Shape("`payload.answers` is missing".into()));
            };
            if answers.is_empty() {
                return Err(Flaw::Shape("`payload.answers` must have at least one answer".into()));
            }
            let read = |one: Fields<'_>| {
                let payload = one.required_object("payload")?;
                let kind = payload.text("type")?;
                Ok((one.whole("call_id")?, answer(&payload, &kind)?))
            };
            answers.into_iter().map(read).collect::<Result<_, _>>().map(Payload::Answers)
        }
        kind => answer(fields, kind).map(Payload::Answer),
    }
}

fn answer(fields: &Fields<'_>, kind: &str) -> Result<Answer, Flaw> {
    match kind {
        "value" => fields.value("value").map(Answer::Value),
        "error" => {
            let error = fields.required_object("error")?;
            Ok(Answer::Error(HostError {
                name: error.text("name")?.into_owned(),
                message: error.text("message")?.into_owned(),
                code: error.optional_text("code")?.map(Cow::into_owned),
                details: error.optional_value("details")?,
            }))
        }
        other => Err(Flaw::Shape(format!("unknown `payload.type` `{}`", shortened(other)))),
    }
}

fn hello(fields: &Fields<'_>) -> Result<Hello, Flaw> {
    Ok(Hello {
        features: fields.texts("features")?,
        max_frame_bytes: fields.optional_whole("max_frame_bytes")?,
    })
}

fn release(fields: &Fields<'_>) -> Result<Release, Flaw> {
    Ok(Release {
        programs: fields.texts("programs")?,
        snapshots: fields.texts("snapshots")?,
        policies: fields.texts("policies")?,
    })
}
