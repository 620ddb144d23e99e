//! The engine of one machine: one SQLite file, one thread that writes.
