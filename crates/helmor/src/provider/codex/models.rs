//! Which models Codex has: by its own list, or by the one we know when it does not tell.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::provider::{Model, SlashCommand};

/// `model/list`.
#[derive(Debug, Deserialize)]
struct List {
    data: Vec<Listed>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    id: String,
    model: String,
    display_name: Option<String>,
    #[serde(default)]
    supported_reasoning_efforts: Vec<Effort>,
    #[serde(default)]
    service_tiers: Vec<Tier>,
    #[serde(default)]
    additional_speed_tiers: Vec<String>,
    #[serde(default)]
    hidden: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Effort {
    reasoning_effort: String,
}

#[derive(Debug, Deserialize)]
struct Tier {
    id: String,
}

/// The models of a `model/list`, without the hidden ones; `None` if it cannot be read.
pub(super) fn read(result: &RawValue) -> Option<Vec<Model>> {
    let list: List = serde_json::from_str(result.get()).ok()?;
    Some(list.data.into_iter().filter(|listed| !listed.hidden).map(Listed::model).collect())
}

impl Listed {
    fn model(self) -> Model {
        let fast = self.service_tiers.iter().any(|tier| tier.id == "priority" || tier.id == "fast")
            || self.additional_speed_tiers.iter().any(|tier| tier == "fast");
        let efforts = self.supported_reasoning_efforts.into_iter().map(|effort| effort.reasoning_effort);
        let efforts: Vec<String> = efforts.collect();
        Model {
            label: self.display_name.unwrap_or_else(|| self.id.clone()),
            id: self.id,
            cli_model: self.model,
            effort_levels: (!efforts.is_empty()).then_some(efforts),
            supports_fast_mode: Some(fast),
            cursor_parameters: None,
        }
    }
}

/// What hosts of the original have always been shown, for a server that does not tell.
pub(super) fn known() -> Vec<Model> {
    const NAMES: [(&str, &str); 6] = [
        ("gpt-5.5", "GPT-5.5"),
        ("gpt-5.4", "GPT-5.4"),
        ("gpt-5.4-mini", "GPT-5.4-Mini"),
        ("gpt-5.3-codex", "GPT-5.3-Codex"),
        ("gpt-5.3-codex-spark", "GPT-5.3-Codex-Spark"),
        ("gpt-5.2", "GPT-5.2"),
    ];
    let efforts = ["low", "medium", "high", "xhigh"].map(str::to_owned);
    NAMES
        .iter()
        .map(|(id, label)| Model {
            id: (*id).to_owned(),
            label: (*label).to_owned(),
            cli_model: (*id).to_owned(),
            effort_levels: Some(efforts.to_vec()),
            supports_fast_mode: Some(true),
            cursor_parameters: None,
        })
        .collect()
}

/// The model for small things: a small one if there is any, and then the oldest, which is the cheapest.
pub(super) fn cheapest(models: &[Model]) -> Option<&str> {
    let key = |model: &&Model| (!model.id.contains("mini"), version(&model.id));
    models.iter().min_by_key(key).map(|model| model.cli_model.as_str())
}

/// `gpt-5.4-mini` is 5.4. What has no version comes last.
fn version(id: &str) -> (u32, u32) {
    let numbers = id.split('-').find_map(|part| {
        let (major, minor) = part.split_once('.').unwrap_or((part, "0"));
        Some((major.parse().ok()?, minor.parse().ok()?))
    });
    numbers.unwrap_or((u32::MAX, 0))
}

/// `skills/list`.
#[derive(Debug, Deserialize)]
struct Skills {
    data: Vec<Bucket>,
}

#[derive(Debug, Deserialize)]
struct Bucket {
    #[serde(default)]
    skills: Vec<Skill>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Skill {
    name: String,
    #[serde(default)]
    description: String,
    short_description: Option<String>,
    #[serde(default = "yes")]
    enabled: bool,
}

fn yes() -> bool {
    true
}

/// The commands of a `skills/list`, each name once, after those that this driver knows itself; `None` if it cannot be read.
pub(super) fn commands(result: &RawValue) -> Option<Vec<SlashCommand>> {
    let skills: Skills = serde_json::from_str(result.get()).ok()?;
    let mut commands = own_commands();
    for skill in skills.data.into_iter().flat_map(|bucket| bucket.skills) {
        if !skill.enabled || commands.iter().any(|known| known.name == skill.name) {
            continue;
        }
        let description =
            skill.short_description.filter(|short| !short.is_empty()).unwrap_or(skill.description);
        commands.push(SlashCommand { name: skill.name, description, argument_hint: None, source: "skill" });
    }
    Some(commands)
}

/// What a prompt may begin with although the server knows nothing of it.
fn own_commands() -> Vec<SlashCommand> {
    let own = |name: &str, description: &str, hint: Option<&str>| SlashCommand {
        name: name.to_owned(),
        description: description.to_owned(),
        argument_hint: hint.map(str::to_owned),
        source: "builtin",
    };
    vec![
        own("compact", "Make the conversation shorter, so that more of it fits", None),
        own("goal", "Work on a goal, turn after turn, until it is reached", Some("<goal> | resume")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn the_list_of_the_server_becomes_ours_without_what_is_hidden() {
        let listed = r#"{"data":[
            {"id":"a","model":"a-1","displayName":"A","supportedReasoningEfforts":[{"reasoningEffort":"low","description":""}],
             "serviceTiers":[{"id":"priority","name":"Fast"}],"additionalSpeedTiers":[],"hidden":false},
            {"id":"b","model":"b","displayName":"B","hidden":true},
            {"id":"c","model":"c"}]}"#;
        let models = read(&raw(listed)).unwrap();
        let shown: Vec<_> = models
            .iter()
            .map(|m| {
                (
                    m.id.as_str(),
                    m.label.as_str(),
                    m.cli_model.as_str(),
                    m.effort_levels.clone(),
                    m.supports_fast_mode,
                )
            })
            .collect();
        let low = Some(vec!["low".to_owned()]);
        assert_eq!(shown, [("a", "A", "a-1", low, Some(true)), ("c", "c", "c", None, Some(false))]);
        assert!(read(&raw(r#"{"models":[]}"#)).is_none());
    }

    #[test]
    fn small_things_are_done_by_the_oldest_small_model() {
        assert_eq!(cheapest(&known()), Some("gpt-5.4-mini"));
        let big: Vec<Model> = known().into_iter().filter(|model| !model.id.contains("mini")).collect();
        assert_eq!(cheapest(&big), Some("gpt-5.2"));
        assert_eq!(cheapest(&[]), None);
        assert!(version("gpt-6-sol") < version("gpt-6.1-sol"));
        assert!(version("gpt-6.1-sol") < version("nameless"));
    }

    #[test]
    fn skills_are_commands_once_each_and_after_our_own() {
        let listed = r#"{"data":[{"cwd":"/a","skills":[
            {"name":"draw","description":"long","shortDescription":"short","enabled":true},
            {"name":"off","description":"x","enabled":false},
            {"name":"compact","description":"x","enabled":true}],"errors":[]},
            {"cwd":"/b","skills":[{"name":"draw","description":"other","enabled":true},{"name":"sew","description":"long"}]}]}"#;
        let commands = commands(&raw(listed)).unwrap();
        let shown: Vec<_> =
            commands.iter().map(|c| (c.name.as_str(), c.description.as_str(), c.source)).collect();
        assert_eq!(shown[2..], [("draw", "short", "skill"), ("sew", "long", "skill")]);
        assert_eq!((shown[0].0, shown[0].2, shown[1].0), ("compact", "builtin", "goal"));
    }
}
