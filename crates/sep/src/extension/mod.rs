//! The kit for authors: an extension is a trait, and the kit does the rest.
