//! Scripts as runs: the log of the run is the journal, and a script that waits is a snapshot.
