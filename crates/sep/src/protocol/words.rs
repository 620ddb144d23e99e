//! Small closed sets of words, each with its one spelling on the wire, in files and on the screen.

/// A word that is not in its set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` is not a {set}; there are {known}")]
pub struct UnknownWord {
    /// The word, cut and escaped.
    pub word: String,
    /// What it should have been.
    pub set: &'static str,
    /// All there are.
    pub known: String,
}

/// Makes a closed set of words: an enum with `ALL`, `as_str`, `parse`, `Display` and serde, all with the same spelling.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident ($set:literal) { $($(#[$entry:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$entry])* #[serde(rename = $text)] $variant,)*
        }

        impl $name {
            /// All of them, in order.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Its one spelling.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }

            /// Reads its one spelling.
            pub fn parse(word: &str) -> Result<Self, $crate::protocol::UnknownWord> {
                Self::ALL.iter().copied().find(|known| known.as_str() == word).ok_or_else(|| $crate::protocol::UnknownWord {
                    word: word.escape_debug().take(64).collect(),
                    set: $set,
                    known: [$($text),*].join(", "),
                })
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

pub(crate) use words;
