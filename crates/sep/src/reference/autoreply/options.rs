//! The arguments of the auto-reply.

use crate::protocol::{V1_1, Version};

/// What can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// What is replied until somebody sets another text; `{name}` becomes the name of a contact.
    pub text: String,
    /// How long somebody is not answered again, in milliseconds.
    pub quiet_ms: u64,
    /// The highest protocol that is wanted.
    pub highest: Version,
}

/// An argument that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` makes no sense; there are --text TEXT, --quiet-ms N and --protocol 1.0.0")]
pub struct BadOption(pub String);

impl Options {
    /// What is chosen when nothing is.
    #[must_use]
    pub fn usual() -> Self {
        Self {
            text: "Hello {name}, I am away. I will read this later.".to_owned(),
            quiet_ms: 60_000,
            highest: V1_1,
        }
    }

    /// Reads the arguments.
    pub fn read(args: &[String]) -> Result<Self, BadOption> {
        let mut options = Self::usual();
        for pair in args.chunks(2) {
            let bad = || BadOption(pair.join(" "));
            let [name, value] = pair else { return Err(bad()) };
            match name.as_str() {
                "--text" if !value.is_empty() => options.text.clone_from(value),
                "--quiet-ms" => options.quiet_ms = value.parse().map_err(|_| bad())?,
                "--protocol" => options.highest = Version::parse(value).map_err(|_| bad())?,
                _ => return Err(bad()),
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_pairs_of_a_name_and_a_value() {
        let read =
            |args: &[&str]| Options::read(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>());
        assert_eq!(read(&[]), Ok(Options::usual()));
        assert_eq!(read(&["--quiet-ms", "5"]).map(|options| options.quiet_ms), Ok(5));
        for wrong in [&["--text"][..], &["--quiet-ms", "soon"], &["--protocol", "x"], &["--loud", "yes"]] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }
}
