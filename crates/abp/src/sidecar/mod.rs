//! The child's end: a kit for authors, and two children that are ready to run.
