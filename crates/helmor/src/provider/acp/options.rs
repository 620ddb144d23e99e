//! What an agent lets one choose in a session: its mode, its model, how hard it thinks. There are two ways to say so in the
//! protocol, and agents use either or both; the newer one counts.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::protocol::PermissionMode;
use crate::provider::Model;

/// What can be chosen in a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) mode: Option<Selector>,
    pub(super) model: Option<Selector>,
    pub(super) effort: Option<Selector>,
}

/// One thing that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selector {
    by: By,
    pub(super) current: String,
    pub(super) values: Vec<Choice>,
}

/// A value of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) id: String,
    pub(super) name: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum By {
    Mode,
    Model,
    Config(String),
}

impl Options {
    /// Reads them from the answer to `session/new`, `session/load` or `session/set_config_option`. What is not as it should be is
    /// not offered.
    pub(super) fn read(answer: &RawValue) -> Self {
        let answer: Answer = serde_json::from_str(answer.get()).unwrap_or_default();
        let mut options = Self::from_config(answer.config_options.as_ref());
        options.mode = options.mode.or_else(|| modes(answer.modes.as_ref()?));
        options.model = options.model.or_else(|| models(answer.models.as_ref()?));
        options
    }

    /// The same for `config_option_update`, which has only the newer way.
    pub(super) fn from_config(config: Option<&Value>) -> Self {
        let mut options = Self::default();
        for option in config.and_then(Value::as_array).into_iter().flatten() {
            let Some(selector) = config_option(option) else { continue };
            let slot = match option.get("category").and_then(Value::as_str) {
                Some("mode") => &mut options.mode,
                Some("model") => &mut options.model,
                Some("thought_level") => &mut options.effort,
                Some(_) | None => continue,
            };
            slot.get_or_insert(selector);
        }
        options
    }

    /// Takes over what a newer message says; what that does not mention stays.
    pub(super) fn update(&mut self, newer: Self) {
        self.mode = newer.mode.or(self.mode.take());
        self.model = newer.model.or(self.model.take());
        self.effort = newer.effort.or(self.effort.take());
    }

    /// The models, as the host wants them.
    pub(super) fn models(&self) -> Option<Vec<Model>> {
        let efforts = self
            .effort
            .as_ref()
            .map(|effort| effort.values.iter().map(|choice| choice.id.clone()).collect::<Vec<String>>());
        let model = self.model.as_ref()?;
        let models = model.values.iter().map(|choice| Model {
            id: choice.id.clone(),
            label: choice.name.clone(),
            cli_model: choice.id.clone(),
            effort_levels: efforts.clone(),
            supports_fast_mode: None,
            cursor_parameters: None,
        });
        Some(models.collect())
    }
}

impl Selector {
    /// The value that is called so, by its id or its name.
    pub(super) fn find(&self, wanted: &str) -> Option<&Choice> {
        let by_id = self.values.iter().find(|choice| choice.id == wanted);
        by_id.or_else(|| self.values.iter().find(|choice| choice.name == wanted))
    }

    /// The value that means this mode, if there is one.
    pub(super) fn for_mode(&self, mode: PermissionMode) -> Option<&Choice> {
        words(mode).iter().find_map(|word| self.values.iter().find(|choice| plain(&choice.id) == *word))
    }

    /// The call that chooses a value.
    pub(super) fn choose(&self, session: &str, value: &str) -> (&'static str, Value) {
        match &self.by {
            By::Mode => ("session/set_mode", json!({ "sessionId": session, "modeId": value })),
            By::Model => ("session/set_model", json!({ "sessionId": session, "modelId": value })),
            By::Config(id) => {
                ("session/set_config_option", json!({ "sessionId": session, "configId": id, "value": value }))
            }
        }
    }
}

/// What an agent may call a mode, the best word first.
fn words(mode: PermissionMode) -> &'static [&'static str] {
    match mode {
        PermissionMode::Default => &["default", "agent", "build", "code", "auto"],
        PermissionMode::Plan => &["plan", "architect", "readonly"],
        PermissionMode::BypassPermissions => &["bypasspermissions", "yolo", "fullaccess", "agentfullaccess"],
        PermissionMode::AcceptEdits => &["acceptedits", "autoedit"],
        PermissionMode::DontAsk => &["dontask"],
        PermissionMode::Auto => &["auto"],
    }
}

/// Which mode a word of an agent means, if it means one.
pub(super) fn mode_of(id: &str) -> Option<PermissionMode> {
    let id = plain(id);
    [
        PermissionMode::Plan,
        PermissionMode::BypassPermissions,
        PermissionMode::AcceptEdits,
        PermissionMode::DontAsk,
        PermissionMode::Auto,
        PermissionMode::Default,
    ]
    .into_iter()
    .find(|mode| words(*mode).contains(&id.as_str()))
}

/// A word without case, dashes, and the address that some agents put before it.
fn plain(id: &str) -> String {
    let word = id.rsplit_once('#').map_or(id, |(_, word)| word);
    word.chars().filter(char::is_ascii_alphanumeric).map(|char| char.to_ascii_lowercase()).collect()
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Answer {
    modes: Option<Value>,
    models: Option<Value>,
    config_options: Option<Value>,
}

fn modes(modes: &Value) -> Option<Selector> {
    let current = modes.get("currentModeId")?.as_str()?.to_owned();
    Some(Selector { by: By::Mode, current, values: choices(modes.get("availableModes")?, "id") })
}

fn models(models: &Value) -> Option<Selector> {
    let current = models.get("currentModelId")?.as_str()?.to_owned();
    Some(Selector { by: By::Model, current, values: choices(models.get("availableModels")?, "modelId") })
}

fn config_option(option: &Value) -> Option<Selector> {
    let id = option.get("id")?.as_str()?.to_owned();
    let current = option.get("currentValue")?.as_str()?.to_owned();
    let options = option.get("options")?;
    // Options may be in groups; the groups are only for people.
    let grouped = options.as_array()?.iter().filter_map(|group| group.get("options"));
    let mut values = choices(options, "value");
    values.extend(grouped.flat_map(|options| choices(options, "value")));
    Some(Selector { by: By::Config(id), current, values })
}

fn choices(list: &Value, id: &str) -> Vec<Choice> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(|item| {
        let id = item.get(id)?.as_str()?.to_owned();
        let name = item.get("name").and_then(Value::as_str).unwrap_or(&id).to_owned();
        Some(Choice { id, name })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &Value) -> Options {
        Options::read(&serde_json::value::to_raw_value(json).unwrap())
    }

    #[test]
    fn both_ways_are_understood_and_the_newer_one_counts() {
        let older = json!({
            "modes": { "currentModeId": "agent", "availableModes": [{ "id": "agent", "name": "Agent" }, { "id": "plan", "name": "Plan" }] },
            "models": { "currentModelId": "m1", "availableModels": [{ "modelId": "m1", "name": "One" }, { "modelId": "m2" }] },
        });
        let options = read(&older);
        let mode = options.mode.clone().unwrap();
        assert_eq!(mode.for_mode(PermissionMode::Plan).unwrap().id, "plan");
        assert_eq!(
            mode.choose("s", "plan"),
            ("session/set_mode", json!({ "sessionId": "s", "modeId": "plan" }))
        );
        let model = options.model.clone().unwrap();
        assert_eq!(model.find("One").unwrap().id, "m1");
        assert_eq!(
            model.choose("s", "m2"),
            ("session/set_model", json!({ "sessionId": "s", "modelId": "m2" }))
        );

        let mut both = older;
        both["configOptions"] = json!([
            { "id": "model", "category": "model", "type": "select", "currentValue": "x", "options": [
                { "group": "g", "name": "G", "options": [{ "value": "x", "name": "X" }, { "value": "y", "name": "Y" }] }] },
            { "id": "think", "category": "thought_level", "type": "select", "currentValue": "low", "options": [{ "value": "low", "name": "Low" }] },
            { "id": "fast", "category": "model", "type": "boolean", "currentValue": true },
            { "id": 7 },
        ]);
        let options = read(&both);
        assert_eq!(options.mode.clone().unwrap().by, By::Mode);
        let model = options.model.clone().unwrap();
        assert_eq!(
            model.choose("s", "y"),
            ("session/set_config_option", json!({ "sessionId": "s", "configId": "model", "value": "y" }))
        );
        let models = options.models().unwrap();
        assert_eq!(models.iter().map(|model| &*model.label).collect::<Vec<_>>(), ["X", "Y"]);
        assert_eq!(models[0].effort_levels, Some(vec!["low".to_owned()]));
    }

    #[test]
    fn an_agent_that_offers_nothing_or_nonsense_offers_nothing() {
        assert_eq!(read(&json!({})), Options::default());
        assert_eq!(read(&json!([1])), Options::default());
        assert_eq!(
            read(&json!({ "modes": 7, "models": { "currentModelId": 1 }, "configOptions": {} })),
            Options::default()
        );
    }

    #[test]
    fn the_words_of_the_agents_mean_our_modes() {
        let cases = [
            ("plan", Some(PermissionMode::Plan)),
            ("https://agentclientprotocol.com/protocol/session-modes#plan", Some(PermissionMode::Plan)),
            ("agent", Some(PermissionMode::Default)),
            ("build", Some(PermissionMode::Default)),
            ("acceptEdits", Some(PermissionMode::AcceptEdits)),
            ("auto_edit", Some(PermissionMode::AcceptEdits)),
            ("bypassPermissions", Some(PermissionMode::BypassPermissions)),
            ("full-access", Some(PermissionMode::BypassPermissions)),
            ("auto", Some(PermissionMode::Auto)),
            ("read-only", Some(PermissionMode::Plan)),
            ("ask", None),
            ("", None),
        ];
        for (word, mode) in cases {
            assert_eq!(mode_of(word), mode, "{word}");
        }
    }
}
