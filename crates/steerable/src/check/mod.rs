//! A conformance report for any sidecar that speaks this dialect.
