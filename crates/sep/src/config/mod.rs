//! The policy of a host, as a file.
