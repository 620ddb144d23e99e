//! The 44 codes that an error may carry.

use super::word::words;

words! {
    /// What sort of error it is.
    ErrorCode {
        ProtocolInvalidEnvelope = "protocol_invalid_envelope",
        ProtocolHandshakeFailed = "protocol_handshake_failed",
        ProtocolMissingRefId = "protocol_missing_ref_id",
        ProtocolUnexpectedMessage = "protocol_unexpected_message",
        ProtocolVersionMismatch = "protocol_version_mismatch",
        MappingUnsupportedCapability = "mapping_unsupported_capability",
        MappingDialectMismatch = "mapping_dialect_mismatch",
        MappingLossyConversion = "mapping_lossy_conversion",
        MappingUnmappableTool = "mapping_unmappable_tool",
        BackendNotFound = "backend_not_found",
        BackendUnavailable = "backend_unavailable",
        BackendTimeout = "backend_timeout",
        BackendRateLimited = "backend_rate_limited",
        BackendAuthFailed = "backend_auth_failed",
        BackendModelNotFound = "backend_model_not_found",
        BackendCrashed = "backend_crashed",
        BackendContentFiltered = "backend_content_filtered",
        BackendContextLength = "backend_context_length",
        ExecutionToolFailed = "execution_tool_failed",
        ExecutionWorkspaceError = "execution_workspace_error",
        ExecutionPermissionDenied = "execution_permission_denied",
        ContractVersionMismatch = "contract_version_mismatch",
        ContractSchemaViolation = "contract_schema_violation",
        ContractInvalidReceipt = "contract_invalid_receipt",
        CapabilityUnsupported = "capability_unsupported",
        CapabilityEmulationFailed = "capability_emulation_failed",
        PolicyDenied = "policy_denied",
        PolicyInvalid = "policy_invalid",
        WorkspaceInitFailed = "workspace_init_failed",
        WorkspaceStagingFailed = "workspace_staging_failed",
        IrLoweringFailed = "ir_lowering_failed",
        IrInvalid = "ir_invalid",
        ReceiptHashMismatch = "receipt_hash_mismatch",
        ReceiptChainBroken = "receipt_chain_broken",
        ReceiptStoreFailed = "receipt_store_failed",
        DialectUnknown = "dialect_unknown",
        DialectMappingFailed = "dialect_mapping_failed",
        ConfigInvalid = "config_invalid",
        RateLimitExceeded = "rate_limit_exceeded",
        CircuitBreakerOpen = "circuit_breaker_open",
        StreamClosed = "stream_closed",
        ValidationFailed = "validation_failed",
        SidecarSpawnFailed = "sidecar_spawn_failed",
        Internal = "internal",
    }
}

impl ErrorCode {
    /// Whether trying again can help. Of a code that we do not know nothing is known.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::BackendUnavailable
                | Self::BackendTimeout
                | Self::BackendRateLimited
                | Self::BackendCrashed
                | Self::RateLimitExceeded
                | Self::CircuitBreakerOpen
                | Self::StreamClosed
        )
    }

    /// Which part of the system it belongs to: the first word of its spelling, two where the contract has two.
    #[must_use]
    pub fn category(&self) -> &str {
        match self {
            Self::RateLimitExceeded | Self::CircuitBreakerOpen => "rate_limit",
            Self::Other(text) => text.split('_').next().unwrap_or_default(),
            known => known.as_str().split('_').next().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_forty_four_codes_in_seventeen_categories_and_each_is_read_as_it_is_written() {
        assert_eq!(ErrorCode::ALL.len(), 44);
        let categories: std::collections::BTreeSet<_> =
            ErrorCode::ALL.iter().map(ErrorCode::category).collect();
        let expected = "protocol backend capability policy workspace ir receipt dialect config mapping execution contract \
                        rate_limit stream validation sidecar internal";
        assert_eq!(categories, expected.split_whitespace().collect());
        for code in ErrorCode::ALL {
            assert_eq!(&ErrorCode::from(code.as_str()), code);
        }
        assert_eq!(ErrorCode::ALL.iter().filter(|code| code.is_retryable()).count(), 7);
    }

    #[test]
    fn a_code_that_we_do_not_know_is_kept() {
        let code = ErrorCode::from("weather_bad");
        assert_eq!((code.as_str(), code.category(), code.is_retryable()), ("weather_bad", "weather", false));
    }
}
