//! The end that drives: lifecycle, channel, gate, events, panels, records.
