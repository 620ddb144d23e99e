//! What can be switched on by a `hello`, and the two ways in which messages are delimited.

/// How messages follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Two lengths, a header and a blob: the default.
    Binary,
    /// A line each, blobs in base64: `--jsonl`.
    Lines,
}

/// The version of the protocol.
pub const VERSION: u64 = 2;

/// The most bytes that a request may have until a host asks for more: header and blob, or a line without its newline.
pub const MAX_REQUEST: u64 = 1_048_576;

/// The most that a host may ask for.
pub const MAX_REQUEST_CEILING: u64 = 256 * 1024 * 1024;

/// An extension of version 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Feature {
    /// Several outstanding calls a step, answered in any order.
    Batch,
    /// The method `release`.
    Release,
    /// The method `inspect`.
    Inspect,
    /// `deadline_ms`.
    Deadline,
    /// `seed` and `now_ms`.
    World,
    /// `error_detail` beside `error`.
    ErrorDetail,
    /// `lenient_return`.
    Return,
}

impl Feature {
    /// All there are.
    pub const ALL: [Feature; 7] = [
        Feature::Batch,
        Feature::Release,
        Feature::Inspect,
        Feature::Deadline,
        Feature::World,
        Feature::ErrorDetail,
        Feature::Return,
    ];

    /// Its name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Feature::Batch => "batch",
            Feature::Release => "release",
            Feature::Inspect => "inspect",
            Feature::Deadline => "deadline",
            Feature::World => "world",
            Feature::ErrorDetail => "error_detail",
            Feature::Return => "return",
        }
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Which extensions are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features(u8);

impl Features {
    /// None: version 2 as it is.
    pub const NONE: Features = Features(0);

    /// Those of these names that exist; the others are passed over.
    pub fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Features {
        let known = names.into_iter().filter_map(|name| Feature::ALL.into_iter().find(|f| f.name() == name));
        Features(known.fold(0, |bits, feature| bits | feature.bit()))
    }

    /// All there are.
    #[must_use]
    pub fn all() -> Features {
        Features(Feature::ALL.into_iter().fold(0, |bits, feature| bits | feature.bit()))
    }

    /// Whether one of them is on.
    #[must_use]
    pub fn has(self, feature: Feature) -> bool {
        self.0 & feature.bit() != 0
    }

    /// Those that are on.
    pub fn iter(self) -> impl Iterator<Item = Feature> {
        Feature::ALL.into_iter().filter(move |feature| self.has(*feature))
    }
}
