//! Does a sidecar keep to the protocol?
