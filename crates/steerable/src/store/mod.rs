//! Sessions, transcripts, traces and settings, in memory or in SQLite.
