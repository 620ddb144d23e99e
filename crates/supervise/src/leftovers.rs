//! What a crashed host left behind: written down while it lives, found and removed by the next one.
