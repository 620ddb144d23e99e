//! `outrigger config`: what is in force, and what is wrong with a file.
