//! The params of `agent.chat.stream` that make it an agent's turn.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::fields::{Fields, ParamError};

/// How many tool calls a turn may make whose params do not say.
pub const DEFAULT_MAX_TOOL_CALLS: u64 = 10_000;

/// How long a person has to approve a call.
const DEFAULT_APPROVAL: Duration = Duration::from_secs(300);

/// What a host says about a turn.
#[derive(Clone, Debug)]
pub struct TurnParams {
    /// The transcript, by `recordId` or `sessionId`.
    pub record_id: Option<String>,
    /// Whether what the transcript has goes first.
    pub resume: bool,
    /// The host's id of the conversation.
    pub chat_id: Option<String>,
    /// Whose it is.
    pub user_id: Option<String>,
    /// Goes first and is not written to the transcript.
    pub system_prompt: Option<String>,
    /// All calls go to the host.
    pub tools_via_host: bool,
    /// Which of the sidecar's own tools the model may see.
    pub tool_names: Option<Vec<String>>,
    /// Goes with every call to the host.
    pub tool_context: Map<String, Value>,
    /// What the turn may reach.
    pub grants: GrantWishes,
    /// Who is asked for consent.
    pub approval: Option<Approval>,
    /// Whether the model may ask the person.
    pub ask_user: bool,
    /// Servers of tools, as the host names them; what they are is for whoever reaches them to judge.
    pub mcp: Option<Value>,
    /// How many rounds.
    pub max_rounds: Option<u64>,
    /// How many failing calls in a row.
    pub max_tool_errors: Option<u64>,
    /// How many tokens.
    pub budget_tokens: Option<u64>,
    /// How many calls.
    pub budget_max_tool_calls: u64,
    /// How long one call of a tool may take.
    pub tool_timeout: Option<Duration>,
    /// After how long a notice is sent.
    pub soft_timeout: Option<Duration>,
    /// Beyond how many tokens the transcript is compacted.
    pub max_context_tokens: Option<u64>,
    /// What steering does that does not say.
    pub steer_mode: SteerMode,
    /// What the answer must fit.
    pub response_schema: Option<Box<RawValue>>,
    /// Whose text is sent.
    pub content_mode: ContentMode,
}

/// What a turn may reach, as far as its params say; `None` is what the flags say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrantWishes {
    /// Folders to read.
    pub read_roots: Option<Vec<PathBuf>>,
    /// Folders to write.
    pub write_roots: Option<Vec<PathBuf>>,
    /// Hosts to fetch from.
    pub allowed_hosts: Option<Vec<String>>,
    /// Whether commands are run.
    pub commands: Option<CommandsWish>,
}

/// Whether commands are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandsWish {
    /// Never.
    Deny,
    /// With consent.
    Ask,
    /// Always.
    Allow,
}

impl CommandsWish {
    /// The words on the wire and on the command line.
    pub const WORDS: [(&str, Self); 3] = [("deny", Self::Deny), ("ask", Self::Ask), ("allow", Self::Allow)];
}

/// Who is asked for consent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// Nobody: what the grants allow is allowed.
    Auto,
    /// The host, for every call that does more than read.
    Host {
        /// How long it has for an answer.
        timeout: Duration,
    },
}

/// When a steering message takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SteerMode {
    /// Before the next call of the model.
    Boundary,
    /// At once; what runs is cut.
    Interrupt,
}

impl SteerMode {
    /// The words on the wire.
    pub const WORDS: [(&str, Self); 2] = [("boundary", Self::Boundary), ("interrupt", Self::Interrupt)];
}

/// Whose text is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentMode {
    /// Every round's.
    All,
    /// The last round's.
    Final,
}

impl TurnParams {
    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, ParamError> {
        let response_schema = match fields.raw("responseSchema") {
            Some(raw) if !raw.get().starts_with('{') => {
                return Err(fields.wrong("responseSchema", "an object"));
            }
            raw => raw.map(ToOwned::to_owned),
        };
        Ok(Self {
            record_id: fields.text_any(["recordId", "sessionId"])?.filter(|id| !id.is_empty()),
            resume: fields.flag("resume")?.unwrap_or(false),
            chat_id: fields.text("chatId")?,
            user_id: fields.text("userId")?,
            system_prompt: fields.text("systemPrompt")?,
            tools_via_host: fields.flag("toolsViaHost")?.unwrap_or(false),
            tool_names: fields.texts("toolNames")?,
            tool_context: fields.object("toolContext")?.unwrap_or_default(),
            grants: GrantWishes::read(fields)?,
            approval: read_approval(fields)?,
            ask_user: fields.flag("askUser")?.unwrap_or(false),
            mcp: fields.raw("mcp").and_then(|raw| serde_json::from_str(raw.get()).ok()),
            max_rounds: fields.count("maxRounds", 1)?,
            max_tool_errors: fields.count("maxToolErrors", 1)?,
            budget_tokens: fields.count("budgetTokens", 1)?,
            budget_max_tool_calls: fields.count("budgetMaxToolCalls", 0)?.unwrap_or(DEFAULT_MAX_TOOL_CALLS),
            tool_timeout: fields.millis("toolTimeoutMs")?,
            soft_timeout: fields.millis("softTimeoutMs")?,
            max_context_tokens: fields.count("maxContextTokens", 1)?,
            steer_mode: fields.word("steerMode", &SteerMode::WORDS)?.unwrap_or(SteerMode::Boundary),
            response_schema,
            content_mode: fields
                .word("contentMode", &[("all", ContentMode::All), ("final", ContentMode::Final)])?
                .unwrap_or(ContentMode::All),
        })
    }
}

impl GrantWishes {
    fn read(fields: &Fields<'_>) -> Result<Self, ParamError> {
        let mut wishes = Self {
            read_roots: paths(fields, "readRoots")?,
            write_roots: paths(fields, "writeRoots")?,
            allowed_hosts: fields.texts("allowedHosts")?,
            commands: fields.word("commands", &CommandsWish::WORDS)?,
        };
        if let Some(raw) = fields.raw("execSandbox") {
            let sandbox = Fields::within(fields.path("execSandbox"), raw)?;
            // The dialect's own members say it more exactly, so they win.
            wishes.write_roots = wishes.write_roots.or(paths(&sandbox, "writableRoots")?);
            wishes.allowed_hosts = wishes.allowed_hosts.or(sandbox.texts("allowedHosts")?);
            // `network` is not looked at: commands have none here, whatever is asked for.
            if sandbox.flag("enabled")? == Some(true) {
                wishes.commands = wishes.commands.or(Some(CommandsWish::Ask));
            }
        }
        Ok(wishes)
    }
}

/// Absolute paths: what a relative one is relative to, a host could only guess.
fn paths(fields: &Fields<'_>, name: &str) -> Result<Option<Vec<PathBuf>>, ParamError> {
    let must = || fields.wrong(name, "an array of absolute paths");
    let Some(texts) = fields.texts(name).map_err(|_| must())? else { return Ok(None) };
    let paths: Vec<PathBuf> = texts.into_iter().map(PathBuf::from).collect();
    if paths.iter().all(|path| path.is_absolute()) { Ok(Some(paths)) } else { Err(must()) }
}

fn read_approval(fields: &Fields<'_>) -> Result<Option<Approval>, ParamError> {
    #[derive(Clone, Copy)]
    enum Mode {
        Auto,
        Host,
    }
    let Some(raw) = fields.raw("approval") else { return Ok(None) };
    let approval = Fields::within(fields.path("approval"), raw)?;
    let words = [("auto", Mode::Auto), ("host", Mode::Host)];
    let mode = approval.word("mode", &words)?;
    let timeout = approval.millis("timeoutMs")?.unwrap_or(DEFAULT_APPROVAL);
    Ok(Some(match mode {
        Some(Mode::Auto) => Approval::Auto,
        Some(Mode::Host) => Approval::Host { timeout },
        None => return Err(approval.wrong("mode", "\"auto\" or \"host\"")),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<TurnParams, String> {
        let raw = RawValue::from_string(json.to_owned()).unwrap();
        let fields = Fields::of(Some(&raw)).unwrap();
        TurnParams::read(&fields).map_err(|error| error.to_string())
    }

    #[test]
    fn a_turn_without_members_asks_for_nothing() {
        let turn = read("{}").unwrap();
        assert_eq!(turn.grants, GrantWishes::default());
        assert_eq!((turn.approval, turn.budget_max_tool_calls), (None, 10_000));
        assert!(!turn.resume && !turn.tools_via_host && !turn.ask_user && turn.mcp.is_none());
    }

    #[test]
    fn the_originals_sandbox_says_the_same_as_our_members() {
        let turn = read(
            r#"{"execSandbox":{"enabled":true,"writableRoots":["/w"],"allowedHosts":["x.org"],"network":true}}"#,
        );
        let grants = turn.unwrap().grants;
        assert_eq!(grants.write_roots, Some(vec![PathBuf::from("/w")]));
        assert_eq!(grants.allowed_hosts, Some(vec!["x.org".to_owned()]));
        assert_eq!(grants.commands, Some(CommandsWish::Ask));
        let ours = read(
            r#"{"commands":"deny","writeRoots":["/a"],"execSandbox":{"enabled":true,"writableRoots":["/b"]}}"#,
        );
        let grants = ours.unwrap().grants;
        assert_eq!(
            (grants.write_roots, grants.commands),
            (Some(vec!["/a".into()]), Some(CommandsWish::Deny))
        );
    }

    #[test]
    fn a_member_that_does_not_fit_is_named() {
        let cases = [
            (r#"{"approval":{}}"#, r#"approval.mode must be "auto" or "host""#),
            (r#"{"readRoots":["rel"]}"#, "readRoots must be an array of absolute paths"),
            (r#"{"responseSchema":true}"#, "responseSchema must be an object"),
            (r#"{"steerMode":"later"}"#, r#"steerMode must be "boundary" or "interrupt""#),
            (r#"{"toolContext":[]}"#, "toolContext must be an object"),
            (r#"{"maxRounds":0}"#, "maxRounds must be a whole number of at least 1"),
        ];
        for (json, message) in cases {
            assert_eq!(read(json).unwrap_err(), message, "{json}");
        }
    }
}
