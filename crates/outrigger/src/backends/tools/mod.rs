//! What scripts of the daemon can call: built-in tools and those of the configuration.
