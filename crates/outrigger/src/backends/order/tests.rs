//! Agents as runs, without a daemon around them.
