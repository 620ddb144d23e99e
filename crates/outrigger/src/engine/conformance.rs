//! What every engine must do, written against the trait alone.
