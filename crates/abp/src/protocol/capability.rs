//! What a backend can do, and how well.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::raw::Raw;
use super::word::words;

/// The most capabilities that a manifest may name.
pub const MAX_CAPABILITIES: usize = 1024;

words! {
    /// Something that a backend may be able to do. Ordered as the contract lists them, unknown ones after them.
    Capability {
        Streaming = "streaming",
        ToolRead = "tool_read",
        ToolWrite = "tool_write",
        ToolEdit = "tool_edit",
        ToolBash = "tool_bash",
        ToolGlob = "tool_glob",
        ToolGrep = "tool_grep",
        ToolWebSearch = "tool_web_search",
        ToolWebFetch = "tool_web_fetch",
        ToolAskUser = "tool_ask_user",
        HooksPreToolUse = "hooks_pre_tool_use",
        HooksPostToolUse = "hooks_post_tool_use",
        SessionResume = "session_resume",
        SessionFork = "session_fork",
        Checkpointing = "checkpointing",
        StructuredOutputJsonSchema = "structured_output_json_schema",
        McpClient = "mcp_client",
        McpServer = "mcp_server",
        ToolUse = "tool_use",
        ExtendedThinking = "extended_thinking",
        ImageInput = "image_input",
        PdfInput = "pdf_input",
        CodeExecution = "code_execution",
        Logprobs = "logprobs",
        SeedDeterminism = "seed_determinism",
        StopSequences = "stop_sequences",
        FunctionCalling = "function_calling",
        Vision = "vision",
        Audio = "audio",
        JsonMode = "json_mode",
        SystemMessage = "system_message",
        Temperature = "temperature",
        TopP = "top_p",
        TopK = "top_k",
        MaxTokens = "max_tokens",
        FrequencyPenalty = "frequency_penalty",
        PresencePenalty = "presence_penalty",
        CacheControl = "cache_control",
        BatchMode = "batch_mode",
        Embeddings = "embeddings",
        ImageGeneration = "image_generation",
    }
}

/// How well a backend can do something.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SupportLevel {
    /// `"native"`: by itself.
    Native,
    /// `"emulated"`: by other means.
    Emulated,
    /// `{"restricted":{"reason":…}}`: with a restriction.
    Restricted {
        /// Which one.
        reason: String,
    },
    /// `"unsupported"`: not at all.
    Unsupported,
    /// A level that we do not know, as it came.
    Other(Raw<'static>),
}

/// What a backend says it can do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest(pub BTreeMap<Capability, SupportLevel>);

impl SupportLevel {
    /// For sentences and buckets: `native`, `emulated`, `restricted`, `unsupported`, or the text as it came.
    #[must_use]
    pub fn word(&self) -> &str {
        match self {
            Self::Native => "native",
            Self::Emulated => "emulated",
            Self::Restricted { .. } => "restricted",
            Self::Unsupported => "unsupported",
            Self::Other(raw) => raw.as_str(),
        }
    }
}

impl Serialize for SupportLevel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Native | Self::Emulated | Self::Unsupported => serializer.serialize_str(self.word()),
            Self::Restricted { reason } => {
                let mut outer = serializer.serialize_map(Some(1))?;
                outer.serialize_entry("restricted", &BTreeMap::from([("reason", reason)]))?;
                outer.end()
            }
            Self::Other(raw) => raw.serialize(serializer),
        }
    }
}

impl Manifest {
    /// How well the backend can do something; none if it does not say.
    #[must_use]
    pub fn level(&self, capability: &Capability) -> Option<&SupportLevel> {
        self.0.get(capability)
    }
}

impl FromIterator<(Capability, SupportLevel)> for Manifest {
    fn from_iter<I: IntoIterator<Item = (Capability, SupportLevel)>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}

impl Serialize for Manifest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(&self.0)
    }
}

impl schemars::JsonSchema for SupportLevel {
    fn schema_name() -> Cow<'static, str> {
        "SupportLevel".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "How well a backend can do something; a level that is unknown is kept as it is.",
            "examples": ["native", "emulated", "unsupported", { "restricted": { "reason": "read-only" } }]
        })
    }
}

impl schemars::JsonSchema for Manifest {
    fn schema_name() -> Cow<'static, str> {
        "CapabilityManifest".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "What a backend can do: capabilities and how well.",
            "type": "object",
            "additionalProperties": generator.subschema_for::<SupportLevel>()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_written_in_the_order_of_the_contract_with_strangers_at_the_end() {
        assert_eq!(Capability::ALL.len(), 41);
        let manifest: Manifest = [
            (Capability::from("warp"), SupportLevel::Other(Raw::new("{\"x\": 1.0}").unwrap())),
            (Capability::from("audio"), SupportLevel::Unsupported),
            (Capability::from("streaming"), SupportLevel::Restricted { reason: "é".into() }),
        ]
        .into_iter()
        .collect();
        let text = serde_json::to_string(&manifest).unwrap();
        assert_eq!(
            text,
            r#"{"streaming":{"restricted":{"reason":"é"}},"audio":"unsupported","warp":{"x": 1.0}}"#
        );
    }
}
