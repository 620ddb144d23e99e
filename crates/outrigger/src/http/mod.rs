//! The HTTP API: runs, approvals, receipts, backends, sidecars, extensions, metrics.
