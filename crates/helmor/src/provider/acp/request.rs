//! What an agent may ask of us, read from its lines.

use outrigger_wire::rpc::{Code, ErrorObject, code};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::ask::{Permission, Questions};
use super::event::renamed;
use super::files::{FileError, Lines};

/// What an agent may ask of us.
pub(super) enum Request {
    Permission(Permission),
    Questions(Questions),
    Plan {
        tool_call_id: String,
        plan: Option<String>,
    },
    /// Something that only has to be passed on.
    Told {
        object: String,
    },
    Read {
        path: String,
        lines: Lines,
    },
    Write {
        path: String,
        text: String,
    },
}

impl Request {
    /// `None`: it is nothing that we offer.
    pub(super) fn read(method: &str, params: Option<&RawValue>) -> Option<Result<Self, ErrorObject>> {
        let params = params.map_or("{}", RawValue::get);
        let invalid = |error: serde_json::Error| ErrorObject::new(code::INVALID_PARAMS, error.to_string());
        Some(match method {
            "session/request_permission" => {
                serde_json::from_str(params).map(Self::Permission).map_err(invalid)
            }
            "cursor/ask_question" => serde_json::from_str(params).map(Self::Questions).map_err(invalid),
            "cursor/create_plan" => serde_json::from_str(params).map(Self::plan).map_err(invalid),
            "cursor/update_todos" | "cursor/task" | "cursor/generate_image" => {
                let (_, kind) = method.split_once('/')?;
                let raw: Result<&RawValue, _> = serde_json::from_str(params);
                raw.map(|raw| Self::Told { object: renamed("cursor", kind, raw) }).map_err(invalid)
            }
            "fs/read_text_file" => serde_json::from_str(params).map(Self::from_read).map_err(invalid),
            "fs/write_text_file" => serde_json::from_str(params).map(Self::from_write).map_err(invalid),
            _ => return None,
        })
    }

    fn plan(params: CreatePlan) -> Self {
        let text = [params.overview, params.plan].into_iter().flatten().collect::<Vec<String>>().join("\n\n");
        Self::Plan { tool_call_id: params.tool_call_id, plan: Some(text).filter(|text| !text.is_empty()) }
    }

    fn from_read(params: ReadFile) -> Self {
        Self::Read { path: params.path, lines: Lines { from: params.line.unwrap_or(1), most: params.limit } }
    }

    fn from_write(params: WriteFile) -> Self {
        Self::Write { path: params.path, text: params.content }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CreatePlan {
    #[serde(default)]
    tool_call_id: String,
    #[serde(default)]
    overview: Option<String>,
    #[serde(default)]
    plan: Option<String>,
}

#[derive(Deserialize)]
struct ReadFile {
    path: String,
    #[serde(default)]
    line: Option<u64>,
    #[serde(default)]
    limit: Option<u64>,
}

#[derive(Deserialize)]
struct WriteFile {
    path: String,
    content: String,
}

pub(super) fn file_outcome<T>(
    outcome: Result<Result<T, FileError>, tokio::task::JoinError>,
) -> Result<T, ErrorObject> {
    match outcome {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) if error.is_not_found() => {
            Err(ErrorObject::new(RESOURCE_NOT_FOUND, error.to_string()))
        }
        Ok(Err(error)) => Err(ErrorObject::new(code::INVALID_PARAMS, error.to_string())),
        Err(error) => Err(ErrorObject::new(code::INTERNAL_ERROR, error.to_string())),
    }
}

/// What the protocol says about a file that is not there.
const RESOURCE_NOT_FOUND: Code = Code(-32002);
