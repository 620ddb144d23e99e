//! Who is talked to: the configuration, then the keys in the environment.

use outrigger_steerable::model::Provider;
use serde_json::{Map, Value};

use crate::config::{Chat, nearest};

/// What to write where nothing is configured.
const HOW: &str = "\
[chat]
provider = \"anthropic\"
model = \"claude-sonnet-4-5\"
api_key_env = \"ANTHROPIC_API_KEY\"";

/// The words for providers.
const PROVIDERS: [&str; 7] =
    ["openai", "openai-responses", "ollama", "anthropic", "gemini", "xai", "scripted"];

/// The variables that usually have keys, and whose.
const KEYS: [(&str, &str); 4] = [
    ("ANTHROPIC_API_KEY", "anthropic"),
    ("OPENAI_API_KEY", "openai"),
    ("GEMINI_API_KEY", "gemini"),
    ("XAI_API_KEY", "xai"),
];

/// A provider, and a model unless the run names one.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Model {
    provider: String,
    model: Option<String>,
    base_url: Option<String>,
    api_key: Option<String>,
}

impl Model {
    /// The one that is configured, or the one whose key is here; what to write otherwise.
    pub(super) fn of(chat: &Chat, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        let variable = |name: &str| variable(name).filter(|key| !key.is_empty());
        let by_key = || KEYS.iter().find(|(name, _)| variable(name).is_some()).map(|(_, whose)| *whose);
        let Some(provider) = chat.provider.as_deref().or_else(by_key) else {
            return Err(format!("no model is configured; write into outrigger.toml:\n{HOW}"));
        };
        let Some(known) = Provider::from_word(provider) else {
            let hint = match nearest(provider, PROVIDERS) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are: {}", PROVIDERS.join(", ")),
            };
            return Err(format!("[chat] has no provider that is known: `{provider}`; {hint}"));
        };
        if known == Provider::Scripted && chat.base_url.is_none() {
            return Err(
                "the provider `scripted` needs `base_url` under [chat]: the path of its script".to_owned()
            );
        }
        let api_key = match (&chat.api_key_env, usual_key(known)) {
            (Some(name), _) => match variable(name) {
                Some(key) => Some(key),
                None => {
                    return Err(format!(
                        "the variable {name} has no key; `api_key_env` under [chat] names it, and the daemon must be started with it"
                    ));
                }
            },
            // A server of one's own may want none; one that wants it says so.
            (None, Some(name)) => variable(name),
            (None, None) => None,
        };
        Ok(Self {
            provider: provider.to_owned(),
            model: chat
                .model
                .clone()
                .or_else(|| (known == Provider::Scripted).then(|| "scripted".to_owned())),
            base_url: chat.base_url.clone(),
            api_key,
        })
    }

    /// The model's name: the run's, or the configured one.
    pub(super) fn name<'a>(&'a self, wanted: Option<&'a str>) -> Result<&'a str, String> {
        wanted.or(self.model.as_deref()).ok_or_else(|| {
            "which model? `config.model` of the run, or `model` under [chat] in outrigger.toml".to_owned()
        })
    }

    /// For people.
    pub(super) fn shown(&self) -> String {
        match &self.model {
            Some(model) => format!("{model} ({})", self.provider),
            None => self.provider.clone(),
        }
    }

    /// The members of a turn that say who is talked to.
    pub(super) fn members(&self, model: &str) -> Map<String, Value> {
        let mut members = Map::new();
        members.insert("provider".to_owned(), self.provider.as_str().into());
        members.insert("model".to_owned(), model.into());
        for (name, value) in [("baseUrl", &self.base_url), ("apiKey", &self.api_key)] {
            if let Some(value) = value {
                members.insert(name.to_owned(), value.as_str().into());
            }
        }
        members
    }
}

/// A key must not get into a log by accident.
impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model")
            .field("provider", &self.provider)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// The variable that usually has the key of a provider.
fn usual_key(provider: Provider) -> Option<&'static str> {
    match provider {
        Provider::Messages => Some("ANTHROPIC_API_KEY"),
        Provider::Xai => Some("XAI_API_KEY"),
        Provider::ChatCompletions | Provider::Responses => Some("OPENAI_API_KEY"),
        Provider::Gemini => Some("GEMINI_API_KEY"),
        Provider::Ollama | Provider::Scripted => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(provider: &str, model: &str, base_url: &str, api_key_env: &str) -> Chat {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Chat {
            provider: some(provider),
            model: some(model),
            base_url: some(base_url),
            api_key_env: some(api_key_env),
        }
    }

    fn of(chat: &Chat, variables: &[(&str, &str)]) -> Result<(String, String), String> {
        let lookup = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let model = Model::of(chat, &lookup)?;
        Ok((model.shown(), Value::Object(model.members("m")).to_string()))
    }

    #[test]
    fn the_configuration_says_who_is_talked_to_and_else_the_key_that_is_here() {
        let key = [("ANTHROPIC_API_KEY", "k1"), ("OPENAI_API_KEY", "k2"), ("MINE", "k3"), ("EMPTY", "")];
        let cases = [
            (chat("", "", "", ""), "anthropic", r#"{"apiKey":"k1","model":"m","provider":"anthropic"}"#),
            (chat("openai", "g", "", ""), "g (openai)", r#"{"apiKey":"k2","model":"m","provider":"openai"}"#),
            (
                chat("openai", "g", "", "MINE"),
                "g (openai)",
                r#"{"apiKey":"k3","model":"m","provider":"openai"}"#,
            ),
            (
                chat("scripted", "", "/s.jsonl", ""),
                "scripted (scripted)",
                r#"{"baseUrl":"/s.jsonl","model":"m","provider":"scripted"}"#,
            ),
            (chat("ollama", "q", "", ""), "q (ollama)", r#"{"model":"m","provider":"ollama"}"#),
        ];
        for (chat, shown, members) in cases {
            assert_eq!(of(&chat, &key), Ok((shown.to_owned(), members.to_owned())), "{chat:?}");
        }
    }

    #[test]
    fn what_is_missing_is_said_with_what_to_write() {
        let error = of(&chat("", "", "", ""), &[]).unwrap_err();
        assert_eq!(error, format!("no model is configured; write into outrigger.toml:\n{HOW}"));
        let written: toml::Table = toml::from_str(HOW).unwrap();
        assert_eq!(written["chat"]["provider"].as_str(), Some("anthropic"));
        let error = of(&chat("anthropc", "", "", ""), &[]).unwrap_err();
        assert!(error.ends_with("did you mean `anthropic`?"), "{error}");
        let error = of(&chat("openai", "g", "", "EMPTY"), &[("EMPTY", "")]).unwrap_err();
        assert!(error.starts_with("the variable EMPTY has no key"), "{error}");
        let error = of(&chat("scripted", "", "", ""), &[]).unwrap_err();
        assert!(error.contains("needs `base_url`"), "{error}");
    }

    #[test]
    fn a_run_may_name_its_own_model() {
        let model = Model::of(&chat("ollama", "", "", ""), &|_| None).unwrap();
        assert_eq!(model.name(Some("big")), Ok("big"));
        assert!(model.name(None).unwrap_err().starts_with("which model?"));
        assert!(!format!("{:?}", Model { api_key: Some("secret".to_owned()), ..model }).contains("secret"));
    }
}
