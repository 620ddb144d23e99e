//! The child's end: compile, start, resume.
