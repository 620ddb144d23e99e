//! What a test says about itself: the YAML between `/*---` and `---*/`, of which test262 uses a small, regular part.

/// The front matter of one test, as far as it decides how the test is run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) flags: Vec<String>,
    pub(crate) features: Vec<String>,
    pub(crate) includes: Vec<String>,
    pub(crate) negative: Option<Negative>,
}

/// A test that must fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Negative {
    pub(crate) phase: Phase,
    /// The name of the error, such as `SyntaxError`.
    pub(crate) error: String,
}

/// When it must fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Parse,
    Resolution,
    Runtime,
}

impl Meta {
    /// Reads the front matter; `None` when there is none, so that a file that is not a test is noticed.
    pub(crate) fn read(source: &str) -> Option<Self> {
        let (_, rest) = source.split_once("/*---")?;
        let (text, _) = rest.split_once("---*/")?;
        // Some tests are about line ends and use others than everybody else.
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let mut meta = Self::default();
        let (mut phase, mut error) = (None, None);
        let mut section = "";
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let Some((key, value)) = line.split_once(':') else { continue };
            if !key.starts_with(' ') {
                section = key;
            }
            let mut list = || {
                let mut text = value.trim().to_owned();
                // A list may go on over several lines, in brackets or with dashes.
                while text.starts_with('[') && !text.contains(']') {
                    text.push_str(lines.next().unwrap_or("]"));
                }
                let mut items: Vec<String> = text
                    .trim_matches(['[', ']'])
                    .split(',')
                    .map(|item| item.trim().trim_matches(['"', '\'']).to_owned())
                    .filter(|item| !item.is_empty())
                    .collect();
                while let Some(item) = lines.peek().and_then(|line| line.trim().strip_prefix("- ")) {
                    items.push(item.trim().to_owned());
                    lines.next();
                }
                items
            };
            match (section, key.trim_start()) {
                ("flags", "flags") => meta.flags = list(),
                ("features", "features") => meta.features = list(),
                ("includes", "includes") => meta.includes = list(),
                ("negative", "phase") => phase = read_phase(value.trim()),
                ("negative", "type") => error = Some(value.trim().to_owned()),
                _ => {}
            }
        }
        meta.negative = phase.zip(error).map(|(phase, error)| Negative { phase, error });
        Some(meta)
    }

    pub(crate) fn has_flag(&self, flag: &str) -> bool {
        self.flags.iter().any(|one| one == flag)
    }
}

fn read_phase(word: &str) -> Option<Phase> {
    match word {
        "parse" => Some(Phase::Parse),
        "resolution" => Some(Phase::Resolution),
        "runtime" => Some(Phase::Runtime),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn both_forms_of_lists_and_the_expected_error_are_read() {
        let source = "// Copyright\n/*---\ndescription: >\n  a: b\nflags: [generated, async]\nincludes: [a.js,\n  b.js]\nfeatures:\n  - BigInt\n  - Symbol\nnegative:\n    phase: parse\n    type: SyntaxError\nesid: x\n---*/\ncode";
        let meta = Meta::read(source).expect("front matter");
        assert_eq!(meta.flags, owned(&["generated", "async"]));
        assert_eq!(meta.includes, owned(&["a.js", "b.js"]));
        assert_eq!(meta.features, owned(&["BigInt", "Symbol"]));
        assert_eq!(meta.negative, Some(Negative { phase: Phase::Parse, error: "SyntaxError".to_owned() }));
        assert!(meta.has_flag("async") && !meta.has_flag("module"));
    }

    #[test]
    fn any_kind_of_line_end_will_do() {
        for end in ["\n", "\r", "\r\n"] {
            let source = ["/*---", "flags: [async]", "includes:", "  - a.js", "---*/"].join(end);
            let meta = Meta::read(&source).expect("front matter");
            assert_eq!((meta.flags, meta.includes), (owned(&["async"]), owned(&["a.js"])));
        }
    }

    #[test]
    fn a_file_without_front_matter_is_no_test() {
        assert_eq!(Meta::read("assert(true)"), None);
    }
}
