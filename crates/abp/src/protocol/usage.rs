//! What a run has used, as a child counts it.

use schemars::JsonSchema;
use serde::Serialize;

use super::fields::{EnvelopeError, Fields, Place};
use super::json::{Kind, Piece};

/// The counts of a receipt. What was not counted is null.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Usage {
    /// Tokens that went in.
    pub input_tokens: Option<u64>,
    /// Tokens that came out.
    pub output_tokens: Option<u64>,
    /// Tokens that were read from a cache.
    pub cache_read_tokens: Option<u64>,
    /// Tokens that were written to a cache.
    pub cache_write_tokens: Option<u64>,
    /// Whatever the vendor counts requests in.
    pub request_units: Option<u64>,
    /// What it costs.
    pub estimated_cost_usd: Option<f64>,
}

/// A report during a run (an extension).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UsageReport {
    /// The counts.
    pub usage: Usage,
    /// Turns, if the child counts them.
    pub turns: Option<u64>,
    /// Whether the counts are sums since the run began, or what came on top.
    pub counts: Counts,
}

/// What the counts of a report are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counts {
    /// What came on top of what was reported before.
    #[default]
    Increments,
    /// Everything since the run began.
    Totals,
}

const NAMES: [&str; 9] = [
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "request_units",
    "estimated_cost_usd",
    "turns",
    "total",
    "usage",
];

impl Usage {
    pub(super) fn of_piece(piece: &Piece<'_>, place: &Place<'_>) -> Result<Self, EnvelopeError> {
        let fields = Fields::optional(piece, place, NAMES)?;
        Ok(Self {
            input_tokens: fields.opt_u64("input_tokens")?,
            output_tokens: fields.opt_u64("output_tokens")?,
            cache_read_tokens: fields.opt_u64("cache_read_tokens")?,
            cache_write_tokens: fields.opt_u64("cache_write_tokens")?,
            request_units: fields.opt_u64("request_units")?,
            estimated_cost_usd: fields.opt_f64("estimated_cost_usd")?,
        })
    }
}

impl UsageReport {
    /// The report that an event is. Children disagree about its form, so what cannot be read is not counted; nothing in it
    /// makes the event wrong.
    pub(super) fn of_event(text: &str) -> Self {
        let Ok(piece) = Piece::read(text) else { return Self::default() };
        let own = Self::read(&piece);
        match Self::inside(&piece) {
            Some(inner) => own.or(inner),
            None => own,
        }
    }

    /// The report in the member `usage` of an object.
    pub(super) fn inside(piece: &Piece<'_>) -> Option<Self> {
        let root = Place::ROOT;
        let inner = Fields::optional(piece, &root, NAMES).ok()?.piece("usage");
        (inner.kind == Kind::Object).then(|| Self::read(&inner))
    }

    fn read(piece: &Piece<'_>) -> Self {
        let root = Place::ROOT;
        let Ok(fields) = Fields::optional(piece, &root, NAMES) else { return Self::default() };
        let count = |name: &'static str| count(&fields.piece(name));
        Self {
            usage: Usage {
                input_tokens: count("input_tokens"),
                output_tokens: count("output_tokens"),
                cache_read_tokens: count("cache_read_tokens"),
                cache_write_tokens: count("cache_write_tokens"),
                request_units: count("request_units"),
                estimated_cost_usd: fields.piece("estimated_cost_usd").float().filter(|cost| *cost >= 0.0),
            },
            turns: count("turns"),
            counts: match fields.piece("total").boolean() {
                Some(true) => Counts::Totals,
                Some(false) | None => Counts::Increments,
            },
        }
    }

    /// This, with the gaps filled from another.
    fn or(self, other: Self) -> Self {
        let (one, two) = (self.usage, other.usage);
        Self {
            usage: Usage {
                input_tokens: one.input_tokens.or(two.input_tokens),
                output_tokens: one.output_tokens.or(two.output_tokens),
                cache_read_tokens: one.cache_read_tokens.or(two.cache_read_tokens),
                cache_write_tokens: one.cache_write_tokens.or(two.cache_write_tokens),
                request_units: one.request_units.or(two.request_units),
                estimated_cost_usd: one.estimated_cost_usd.or(two.estimated_cost_usd),
            },
            turns: self.turns.or(other.turns),
            counts: match self.counts {
                Counts::Totals => Counts::Totals,
                Counts::Increments => other.counts,
            },
        }
    }
}

/// A count that may be spelled as a float; a part of one counts as a whole.
fn count(piece: &Piece<'_>) -> Option<u64> {
    piece.integer().or_else(|| {
        let number = piece.float().filter(|number| *number >= 0.0)?;
        // A float that is too large becomes the largest number there is, which is what a budget needs.
        Some(number.ceil() as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_read_in_every_form_that_children_send() {
        let report = UsageReport::of_event(
            r#"{"type":"usage","input_tokens":5,"output_tokens":1.5,"cache_read_tokens":-1,"request_units":"x","turns":2,
                "total":true,"usage":{"input_tokens":9,"estimated_cost_usd":0.25}}"#,
        );
        let usage = Usage {
            input_tokens: Some(5),
            output_tokens: Some(2),
            estimated_cost_usd: Some(0.25),
            ..Usage::default()
        };
        assert_eq!(report, UsageReport { usage, turns: Some(2), counts: Counts::Totals });
        assert_eq!(UsageReport::of_event(r#"{"usage":[1]}"#), UsageReport::default());
    }
}
