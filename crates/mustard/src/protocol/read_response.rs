//! JSON to responses: what a host reads. A peer may be newer, or another program: unknown members are passed over.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::fields::{Fields, Flaw};
use super::ids::{PolicyId, ProgramId, SnapshotId};
use super::json::Raw;
use super::response::{
    Call, Code, Detail, Failure, Greeting, Inspection, Kind, Place, Profile, Released, Reply, Response,
    SidecarLimits, Suspended,
};

/// A message that is not a response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid response: {0}")]
pub struct ResponseError(String);

impl From<Flaw> for ResponseError {
    fn from(flaw: Flaw) -> ResponseError {
        ResponseError(flaw.to_string())
    }
}

impl Response {
    /// Reads the header of a binary frame.
    ///
    /// # Errors
    /// When it is not a response.
    pub fn decode(header: &str) -> Result<Response, ResponseError> {
        Ok(read(header)?.0)
    }

    /// Reads a line and the blob in it, which may be empty.
    ///
    /// # Errors
    /// When it is not a response.
    pub fn decode_line(line: &str) -> Result<(Response, Vec<u8>), ResponseError> {
        let (response, coded) = read(line)?;
        let blob = match coded {
            Some(coded) => {
                STANDARD.decode(coded.as_bytes()).map_err(|error| ResponseError(error.to_string()))?
            }
            None => Vec::new(),
        };
        Ok((response, blob))
    }
}

/// A response, and the base64 of its blob if that is in it.
type Found<'a, T> = Result<(T, Option<Cow<'a, str>>), ResponseError>;

fn read(text: &str) -> Found<'_, Response> {
    let members = match Raw::document_members(text) {
        Ok(Some(members)) => members,
        Ok(None) => return Err(ResponseError("it must be a JSON object".into())),
        Err(error) => return Err(ResponseError(error.to_string())),
    };
    let fields = Fields::new("", members);
    let id = fields.whole("id")?;
    if !fields.flag("ok")? {
        let detail =
            fields.optional_object("error_detail")?.map(|fields| read_detail(&fields)).transpose()?;
        let failure = Failure { error: fields.text("error")?.into_owned(), detail: detail.map(Box::new) };
        return Ok((Response { id, outcome: Err(failure), profile: None }, None));
    }
    let profile = match fields.optional_object("profile")? {
        Some(profile) => Some(Profile {
            execution_ns: profile.whole("execution_ns")?,
            response_prepare_ns: profile.whole("response_prepare_ns")?,
        }),
        None => None,
    };
    let (reply, coded) = read_reply(&fields.required_object("result")?)?;
    Ok((Response { id, outcome: Ok(reply), profile }, coded))
}

fn read_reply<'a>(result: &Fields<'a>) -> Found<'a, Reply> {
    let alone = |reply| Ok((reply, None));
    match &*result.text("kind")? {
        "program" => {
            let id = id(result, "program_id", ProgramId::parse)?;
            Ok((Reply::Program(id), result.optional_text("program_base64")?))
        }
        "step" => read_step(result),
        "hello" => alone(Reply::Hello(read_greeting(result)?)),
        "released" => alone(Reply::Released(Released {
            programs: result.whole("programs")?,
            snapshots: result.whole("snapshots")?,
            policies: result.whole("policies")?,
        })),
        "inspection" => alone(Reply::Inspection(read_inspection(result)?)),
        other => Err(ResponseError(format!("unknown kind of result `{other}`"))),
    }
}

fn read_step<'a>(result: &Fields<'a>) -> Found<'a, Reply> {
    let step = result.required_object("step")?;
    match &*step.text("type")? {
        "completed" => Ok((Reply::Completed(step.value("value")?), None)),
        "suspended" => {
            let calls = match step.objects("calls")? {
                Some(calls) if !calls.is_empty() => calls.iter().map(read_call).collect::<Result<_, _>>()?,
                _ => vec![read_call(&step)?],
            };
            let suspended = Suspended {
                snapshot_id: id(result, "snapshot_id", SnapshotId::parse)?,
                policy_id: id(result, "policy_id", PolicyId::parse)?,
                calls,
            };
            Ok((Reply::Suspended(suspended), step.optional_text("snapshot_base64")?))
        }
        other => Err(ResponseError(format!("unknown type of step `{other}`"))),
    }
}

fn id<T>(fields: &Fields<'_>, name: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T, ResponseError> {
    let text = fields.text(name)?;
    parse(&text).ok_or_else(|| ResponseError(format!("`{name}` is not 64 lower-case hex digits")))
}

fn read_call(fields: &Fields<'_>) -> Result<Call, Flaw> {
    Ok(Call {
        call_id: fields.optional_whole("call_id")?,
        capability: fields.text("capability")?.into_owned(),
        args: fields.values("args")?,
    })
}

fn read_place(fields: &Fields<'_>) -> Result<Place, Flaw> {
    Ok(Place {
        function: fields.text("function")?.into_owned(),
        line: fields.whole("line")?,
        column: fields.whole("column")?,
    })
}

fn read_greeting(result: &Fields<'_>) -> Result<Greeting, ResponseError> {
    let versions = result.required("protocol_versions")?.elements();
    let versions = versions.map(|all| all.into_iter().map(Raw::whole).collect::<Option<Vec<_>>>());
    let limits = result.required_object("limits")?;
    let sandbox = result.required_object("sandbox")?;
    Ok(Greeting {
        name: result.text("name")?.into_owned(),
        version: result.text("version")?.into_owned(),
        protocol_versions: versions
            .flatten()
            .ok_or_else(|| ResponseError("`protocol_versions` must be an array of numbers".into()))?,
        engine: result.text("engine")?.into_owned(),
        features: result.texts("features")?,
        enabled: result.texts("enabled")?,
        limits: SidecarLimits {
            max_frame_bytes: limits.whole("max_frame_bytes")?,
            max_frame_bytes_ceiling: limits.whole("max_frame_bytes_ceiling")?,
            program_cache_bytes: limits.whole("program_cache_bytes")?,
            snapshot_cache_bytes: limits.whole("snapshot_cache_bytes")?,
            policy_cache_entries: limits.whole("policy_cache_entries")?,
        },
        landlock: sandbox.text("landlock")?.into_owned(),
        seccomp: sandbox.text("seccomp")?.into_owned(),
    })
}

fn read_inspection(result: &Fields<'_>) -> Result<Inspection, ResponseError> {
    let calls = result.objects("calls")?.unwrap_or_default();
    let frames = result.objects("frames")?.unwrap_or_default();
    Ok(Inspection {
        snapshot_id: id(result, "snapshot_id", SnapshotId::parse)?,
        bytes: result.whole("bytes")?,
        calls: calls.iter().map(read_call).collect::<Result<_, _>>()?,
        capabilities: result.texts("capabilities")?,
        instructions_used: result.whole("instructions_used")?,
        heap_bytes: result.whole("heap_bytes")?,
        heap_records: result.whole("heap_records")?,
        frames: frames.iter().map(read_place).collect::<Result<_, _>>()?,
    })
}

fn read_detail(fields: &Fields<'_>) -> Result<Detail, Flaw> {
    let frames = fields.objects("frames")?.unwrap_or_default();
    Ok(Detail {
        kind: Kind::from(fields.text("kind")?.into_owned()),
        code: Code::from(fields.text("code")?.into_owned()),
        message: fields.text("message")?.into_owned(),
        name: fields.optional_text("name")?.map(Cow::into_owned),
        line: fields.optional_whole("line")?,
        column: fields.optional_whole("column")?,
        source_line: fields.optional_text("source_line")?.map(Cow::into_owned),
        frames: frames.iter().map(read_place).collect::<Result<_, _>>()?,
        error_code: fields.optional_text("error_code")?.map(Cow::into_owned),
        details: fields.optional_value("details")?,
    })
}
