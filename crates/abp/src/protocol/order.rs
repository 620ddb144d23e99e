//! The work order: what is to be done, where, and within which bounds.

use std::collections::BTreeMap;

use outrigger_policy::PolicyProfile;
use schemars::JsonSchema;
use serde::Serialize;

use super::fields::{EnvelopeError, Fields, MAX_LIST, Place, each_member};
use super::id::OrderId;
use super::json::{Kind, Piece};
use super::negotiate::{MinSupport, Requirement, Requirements};
use super::raw::Raw;
use super::word::words;

words! {
    /// What the caller wants first. A piece of advice.
    Lane {
        PatchFirst = "patch_first",
        WorkspaceFirst = "workspace_first",
    }
}

words! {
    /// Whether the work is done in the root itself or in a copy.
    WorkspaceMode {
        PassThrough = "pass_through",
        Staged = "staged",
    }
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WorkOrder {
    /// Its name.
    pub id: OrderId,
    /// In words.
    pub task: String,
    /// What comes first.
    pub lane: Lane,
    /// Where.
    pub workspace: Workspace,
    /// What the backend should know.
    pub context: Context,
    /// What it may do.
    #[schemars(with = "super::schema::Profile")]
    pub policy: PolicyProfile,
    /// What it must be able to do.
    pub requirements: Requirements,
    /// How.
    pub config: RuntimeConfig,
}

/// Where the work is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Workspace {
    /// A folder.
    pub root: String,
    /// In it, or in a copy of it.
    pub mode: WorkspaceMode,
    /// Globs of what is copied; empty for everything.
    pub include: Vec<String>,
    /// Globs of what is not copied.
    pub exclude: Vec<String>,
}

/// What the backend should know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Context {
    /// Files to look at.
    pub files: Vec<String>,
    /// Texts.
    pub snippets: Vec<Snippet>,
}

/// A text with a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Snippet {
    /// Its name.
    pub name: String,
    /// The text.
    pub content: String,
}

/// How the backend should work.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RuntimeConfig {
    /// Which model.
    pub model: Option<String>,
    /// What is between caller and backend; an object, kept byte for byte.
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub vendor: Raw<'static>,
    /// Environment variables.
    pub env: BTreeMap<String, String>,
    /// What it may cost.
    pub max_budget_usd: Option<f64>,
    /// How many turns it may take.
    pub max_turns: Option<u32>,
}

impl WorkOrder {
    /// A task in the current folder, staged, with nothing else said.
    #[must_use]
    pub fn new(id: OrderId, task: impl Into<String>) -> Self {
        Self {
            id,
            task: task.into(),
            lane: Lane::PatchFirst,
            workspace: Workspace {
                root: ".".into(),
                mode: WorkspaceMode::Staged,
                include: Vec::new(),
                exclude: Vec::new(),
            },
            context: Context::default(),
            policy: PolicyProfile::unrestricted(),
            requirements: Requirements::default(),
            config: RuntimeConfig::empty(),
        }
    }

    /// Reads one. It may be partial: what is missing is empty, the lane is `patch_first`, the root is the current folder and
    /// the mode is `staged`.
    ///
    /// # Errors
    /// When it is not JSON, or a member is not what it must be.
    pub fn read(text: &str) -> Result<Self, EnvelopeError> {
        Self::of_piece(&Piece::read(text)?, &Place::ROOT)
    }

    pub(super) fn of_piece(piece: &Piece<'_>, place: &Place<'_>) -> Result<Self, EnvelopeError> {
        let names = ["id", "task", "lane", "workspace", "context", "policy", "requirements", "config"];
        let fields = Fields::required(piece, place, names)?;
        let lane = fields.opt_text("lane")?;
        Ok(Self {
            id: OrderId::new(fields.string_or_empty("id")?),
            task: fields.string_or_empty("task")?,
            lane: lane.map_or(Lane::PatchFirst, |lane| Lane::from(&*lane)),
            workspace: Workspace::of_piece(&fields.piece("workspace"), &place.member("workspace"))?,
            context: Context::of_piece(&fields.piece("context"), &place.member("context"))?,
            policy: profile(&fields.piece("policy"), &place.member("policy"))?,
            requirements: requirements(&fields.piece("requirements"), &place.member("requirements"))?,
            config: RuntimeConfig::of_piece(&fields.piece("config"), &place.member("config"))?,
        })
    }

    /// As it is sent: every member, in the order of the contract.
    pub fn write(&self, out: &mut Vec<u8>) {
        super::write::serialised(out, self);
    }
}

impl Workspace {
    fn of_piece(piece: &Piece<'_>, place: &Place<'_>) -> Result<Self, EnvelopeError> {
        let fields = Fields::optional(piece, place, ["root", "mode", "include", "exclude"])?;
        let mode = fields.opt_text("mode")?;
        Ok(Self {
            root: fields.opt_string("root")?.unwrap_or_else(|| ".".into()),
            mode: mode.map_or(WorkspaceMode::Staged, |mode| WorkspaceMode::from(&*mode)),
            include: fields.strings("include")?,
            exclude: fields.strings("exclude")?,
        })
    }
}

impl Context {
    fn of_piece(piece: &Piece<'_>, place: &Place<'_>) -> Result<Self, EnvelopeError> {
        let fields = Fields::optional(piece, place, ["files", "snippets"])?;
        let snippets = fields.list("snippets", |piece, place| {
            let fields = Fields::required(piece, place, ["name", "content"])?;
            Ok(Snippet { name: fields.string_or_empty("name")?, content: fields.string_or_empty("content")? })
        })?;
        Ok(Self { files: fields.strings("files")?, snippets })
    }
}

fn profile(piece: &Piece<'_>, place: &Place<'_>) -> Result<PolicyProfile, EnvelopeError> {
    let names = [
        "allowed_tools",
        "disallowed_tools",
        "deny_read",
        "deny_write",
        "allow_network",
        "deny_network",
        "require_approval_for",
    ];
    let fields = Fields::optional(piece, place, names)?;
    Ok(PolicyProfile {
        allowed_tools: fields.strings("allowed_tools")?,
        disallowed_tools: fields.strings("disallowed_tools")?,
        deny_read: fields.strings("deny_read")?,
        deny_write: fields.strings("deny_write")?,
        allow_network: fields.strings("allow_network")?,
        deny_network: fields.strings("deny_network")?,
        require_approval_for: fields.strings("require_approval_for")?,
    })
}

fn requirements(piece: &Piece<'_>, place: &Place<'_>) -> Result<Requirements, EnvelopeError> {
    let fields = Fields::optional(piece, place, ["required"])?;
    let required = fields.list("required", |piece, place| {
        let fields = Fields::required(piece, place, ["capability", "min_support"])?;
        let minimum = fields.opt_text("min_support")?;
        Ok(Requirement {
            capability: (&*fields.text("capability")?).into(),
            // Who names a capability and no minimum needs it to be there.
            min_support: minimum.map_or(MinSupport::Any, |minimum| MinSupport::from(&*minimum)),
        })
    })?;
    Ok(Requirements { required })
}

impl RuntimeConfig {
    /// One that says nothing.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            model: None,
            vendor: Raw::trusted("{}".into()),
            env: BTreeMap::new(),
            max_budget_usd: None,
            max_turns: None,
        }
    }

    /// A vendor's setting: nested (`{"abp":{"mode":…}}`) or with a dot (`{"abp.mode":…}`), nested first.
    #[must_use]
    pub fn vendor(&self, space: &str, key: &str) -> Option<Raw<'_>> {
        let object = Piece::read(self.vendor.as_str()).ok()?;
        let nested = last_member(&object, space).and_then(|inner| last_member(&inner, key));
        nested.or_else(|| last_member(&object, &format!("{space}.{key}"))).map(|piece| Raw::of_piece(&piece))
    }

    fn of_piece(piece: &Piece<'_>, place: &Place<'_>) -> Result<Self, EnvelopeError> {
        let fields =
            Fields::optional(piece, place, ["model", "vendor", "env", "max_budget_usd", "max_turns"])?;
        let vendor = fields.piece("vendor");
        let vendor = match vendor.kind {
            Kind::Absent | Kind::Null => "{}",
            Kind::Object => vendor.text,
            _ => return Err(place.member("vendor").wrong(&vendor, "an object")),
        };
        Ok(Self {
            model: fields.opt_string("model")?,
            vendor: Raw::trusted(vendor.to_owned()),
            env: environment(&fields.piece("env"), &place.member("env"))?,
            max_budget_usd: fields.opt_f64("max_budget_usd")?,
            max_turns: fields
                .opt("max_turns", "a whole number that is not negative", |piece| piece.integer())?,
        })
    }
}

fn environment(piece: &Piece<'_>, place: &Place<'_>) -> Result<BTreeMap<String, String>, EnvelopeError> {
    let mut variables = BTreeMap::new();
    if piece.is_none() {
        return Ok(variables);
    }
    if piece.kind != Kind::Object {
        return Err(place.wrong(piece, "an object"));
    }
    each_member(piece, |name, value| {
        let text = value.string().ok_or_else(|| place.member(&name).wrong(&value, "a string"))?;
        variables.insert(name.into_owned(), text.into_owned());
        if variables.len() > MAX_LIST { Err(place.too_many(MAX_LIST)) } else { Ok(()) }
    })?;
    Ok(variables)
}

fn last_member<'a>(piece: &Piece<'a>, name: &str) -> Option<Piece<'a>> {
    if piece.kind != Kind::Object {
        return None;
    }
    let mut found = None;
    each_member(piece, |key, value| {
        if key == name {
            found = Some(value);
        }
        Ok(())
    })
    .ok()?;
    found
}
