//! Enumerations of words that a peer may have more of than we know: what is unknown is kept as it is.

/// An enum of words with `Other` for the rest, its spellings, and its schema.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$word_doc])* #[doc = concat!("`", $text, "`")] $variant,)*
            /// A word that we do not know, as it came.
            Other(String),
        }

        impl $name {
            /// Every word of the contract, in its order.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// Its spelling on the wire.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $($name::$variant => $text,)*
                    $name::Other(text) => text,
                }
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $($text => $name::$variant,)*
                    other => $name::Other(other.to_owned()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "description": "A word of the contract; one that is unknown is kept as it is.",
                    "type": "string",
                    "examples": [$($text),*]
                })
            }
        }
    };
}

pub(crate) use words;
