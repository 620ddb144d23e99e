//! How a child introduces itself.

use schemars::JsonSchema;
use serde::Serialize;

use super::ask::Powers;
use super::capability::{Capability, MAX_CAPABILITIES, Manifest, SupportLevel};
use super::fields::{EnvelopeError, Fields, Place, each_member};
use super::json::{Kind, Piece};
use super::raw::Raw;
use super::version::ContractVersion;
use super::word::words;

words! {
    /// Whether a child passes the vendor's messages through or maps them.
    Mode {
        Passthrough = "passthrough",
        Mapped = "mapped",
    }
}

/// The first line of a child.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Hello {
    /// Which contract it speaks.
    pub contract_version: ContractVersion,
    /// Who it is.
    pub backend: BackendIdentity,
    /// What it can do.
    pub capabilities: Manifest,
    /// How it treats the vendor's messages; `mapped` if it does not say.
    #[schemars(with = "Option<Mode>")]
    pub mode: Mode,
    /// Which extensions it knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outrigger: Option<Powers>,
}

/// Who a backend is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BackendIdentity {
    /// Its name.
    pub id: String,
    /// The version of what it drives.
    pub backend_version: Option<String>,
    /// Its own version.
    pub adapter_version: Option<String>,
}

impl Hello {
    pub(super) fn of_piece(piece: &Piece<'_>) -> Result<Self, EnvelopeError> {
        let root = Place::ROOT;
        let names = ["contract_version", "backend", "capabilities", "mode", "outrigger"];
        let fields = Fields::required(piece, &root, names)?;
        let backend = fields.piece("backend");
        let capabilities = fields.piece("capabilities");
        if capabilities.kind != Kind::Object {
            return Err(root.member("capabilities").wrong(&capabilities, "an object"));
        }
        let mode = fields.opt_text("mode")?;
        Ok(Self {
            contract_version: ContractVersion::new(fields.text("contract_version")?),
            backend: BackendIdentity::of_piece(&backend, &root.member("backend"))?,
            capabilities: Manifest::of_piece(&capabilities, &root.member("capabilities"))?,
            mode: mode.map_or(Mode::Mapped, |mode| Mode::from(&*mode)),
            outrigger: Powers::of_piece(&fields.piece("outrigger")),
        })
    }
}

impl BackendIdentity {
    /// One with nothing but a name.
    #[must_use]
    pub fn named(id: impl Into<String>) -> Self {
        Self { id: id.into(), backend_version: None, adapter_version: None }
    }

    pub(super) fn of_piece(piece: &Piece<'_>, place: &Place<'_>) -> Result<Self, EnvelopeError> {
        let fields = Fields::required(piece, place, ["id", "backend_version", "adapter_version"])?;
        Ok(Self {
            id: fields.text("id")?.into_owned(),
            backend_version: fields.opt_string("backend_version")?,
            adapter_version: fields.opt_string("adapter_version")?,
        })
    }
}

impl Manifest {
    /// Nothing and null are an empty manifest.
    pub(super) fn of_piece(piece: &Piece<'_>, place: &Place<'_>) -> Result<Self, EnvelopeError> {
        let mut manifest = Self::default();
        if piece.is_none() {
            return Ok(manifest);
        }
        if piece.kind != Kind::Object {
            return Err(place.wrong(piece, "an object"));
        }
        each_member(piece, |name, level| {
            manifest.0.insert(Capability::from(&*name), SupportLevel::of_piece(&level));
            if manifest.0.len() > MAX_CAPABILITIES {
                return Err(place.too_many(MAX_CAPABILITIES));
            }
            Ok(())
        })?;
        Ok(manifest)
    }
}

impl SupportLevel {
    fn of_piece(piece: &Piece<'_>) -> Self {
        match piece.string().as_deref() {
            Some("native") => Self::Native,
            Some("emulated") => Self::Emulated,
            Some("unsupported") => Self::Unsupported,
            Some(_) | None => match restriction(piece) {
                Some(reason) => Self::Restricted { reason },
                None => Self::Other(Raw::of_piece(piece).into_owned()),
            },
        }
    }
}

/// The reason of `{"restricted":{"reason":"…"}}`.
fn restriction(piece: &Piece<'_>) -> Option<String> {
    let root = Place::ROOT;
    let outer = Fields::required(piece, &root, ["restricted"]).ok()?;
    let inner = Fields::required(&outer.piece("restricted"), &root, ["reason"]).ok()?;
    Some(inner.text("reason").ok()?.into_owned())
}
