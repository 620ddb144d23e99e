//! Which names of members say that what they hold is a secret.

/// What a name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing.
    Plain,
    /// A secret, whatever it is.
    Secret,
    /// A token: a secret, unless it is a number of tokens.
    Token,
}

/// Words that make a name a secret's.
const SECRETS: [&str; 19] = [
    "password",
    "passwords",
    "passwd",
    "passphrase",
    "secret",
    "secrets",
    "apikey",
    "apikeys",
    "authorization",
    "cookie",
    "cookies",
    "credential",
    "credentials",
    "privatekey",
    "clientsecret",
    "secretkey",
    "setcookie",
    "accesskey",
    "authkey",
];

/// Words that make a name a token's.
const TOKENS: [&str; 8] =
    ["token", "tokens", "accesstoken", "authtoken", "refreshtoken", "idtoken", "sessiontoken", "bearertoken"];

/// Words before `key` that make the two a secret's.
const KEYS: [&str; 5] = ["api", "private", "secret", "access", "auth"];

/// The longest word that is looked at; a longer one is none of ours.
const LONGEST: usize = 16;

/// What a name says. Its words are divided by case, by `_`, `-`, `.` and blanks.
pub(super) fn judge(name: &str) -> Verdict {
    let mut found = Verdict::Plain;
    let mut before_key = false;
    for word in words(name.as_bytes()) {
        let mut lower = [0; LONGEST];
        let Some(lower) = lower.get_mut(..word.len()) else {
            before_key = false;
            continue;
        };
        lower.copy_from_slice(word);
        lower.make_ascii_lowercase();
        // Only ASCII letters are in words.
        let word = std::str::from_utf8(lower).unwrap_or_default();
        if SECRETS.contains(&word) || (before_key && matches!(word, "key" | "keys")) {
            return Verdict::Secret;
        }
        if TOKENS.contains(&word) {
            found = Verdict::Token;
        }
        before_key = KEYS.contains(&word);
    }
    found
}

/// The runs of letters in a name; a capital after a small letter begins a new one, and so does the last capital of several
/// that a small letter follows.
fn words(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while name.get(at).is_some_and(|byte| !byte.is_ascii_alphabetic()) {
            at += 1;
        }
        let start = at;
        while name.get(at).is_some_and(u8::is_ascii_alphabetic) {
            at += 1;
            let rises = name.get(at).is_some_and(u8::is_ascii_uppercase);
            let was_small = name[at - 1].is_ascii_lowercase();
            let falls = name.get(at + 1).is_some_and(u8::is_ascii_lowercase);
            if rises && (was_small || falls) {
                break;
            }
        }
        (at > start).then(|| &name[start..at])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged_by_their_words() {
        for name in [
            "password",
            "userPassword",
            "DB_PASSWORD",
            "api_key",
            "apiKey",
            "X-API-Key",
            "APIKey",
            "apikey",
            "OPENAI_API_KEY",
            "privateKey",
            "aws_secret_access_key",
            "Proxy-Authorization",
            "cookie",
            "Set-Cookie",
            "clientSecret",
            "HTTPPassword",
        ] {
            assert_eq!(judge(name), Verdict::Secret, "{name}");
        }
        for name in ["token", "accessToken", "refresh_token", "promptTokens", "GITHUB_TOKEN", "id-token"] {
            assert_eq!(judge(name), Verdict::Token, "{name}");
        }
        for name in [
            "",
            "key",
            "keyApi",
            "apis",
            "tokenizer",
            "secretary",
            "monkey",
            "author",
            "é",
            "a\u{1}b",
            "passwordlesssignin",
        ] {
            assert_eq!(judge(name), Verdict::Plain, "{name}");
        }
    }
}
