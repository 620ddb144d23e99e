//! What a run leaves behind: written as it happens, hashed, chained, signed, and checked by anybody.
