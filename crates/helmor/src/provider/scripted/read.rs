//! Reading a script from its file. What is wrong is named by its place, because nobody counts brackets.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::script::{Permission, Script, Step, Turn};
use crate::provider::{Model, SlashCommand};

/// How deep `repeat` may be inside `repeat`.
const DEEPEST: usize = 16;

/// Why a text is no script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place} {why}")]
pub struct ScriptError {
    /// Which part of it, for example `turns[0].steps[2].permission.tool`.
    pub place: String,
    /// What is wrong with that.
    pub why: String,
}

impl Script {
    /// Reads a script: `{"turns": [{"when"?, "steps": […]}…], "models"?, "commands"?, "title"?, "context_usage"?}`. A member that
    /// is not known is an error.
    ///
    /// ```
    /// use outrigger_helmor::provider::scripted::{Script, Step};
    ///
    /// let script = Script::read(r#"{"turns": [{"steps": [{"wait_ms": 5}, {"hang": true}]}]}"#).unwrap();
    /// assert_eq!(script.turns[0].steps, [Step::Wait(5), Step::Hang]);
    ///
    /// let error = Script::read(r#"{"turns": [{"steps": [{"hang": true}, {"sing": "la"}]}]}"#).unwrap_err();
    /// assert_eq!(error.place, "turns[0].steps[1]");
    /// ```
    ///
    /// # Errors
    /// The first place that is wrong.
    pub fn read(text: &str) -> Result<Self, ScriptError> {
        let place = Place::Top;
        let mut members = place.object(text)?;
        let turns = members.remove("turns").ok_or_else(|| place.error("has no member `turns`"))?;
        let turns = Place::Member(&place, "turns").each(turns, |place, turn| place.turn(turn))?;
        let models =
            place.take(&mut members, "models", |place, raw| place.each(raw, |p, raw| p.model(raw)))?;
        let commands =
            place.take(&mut members, "commands", |place, raw| place.each(raw, |p, raw| p.command(raw)))?;
        let title = place.take(&mut members, "title", |place, raw| place.string(raw))?;
        let context_usage = place.take(&mut members, "context_usage", |place, raw| place.text_of(raw))?;
        place.nothing_else(&members, &["turns", "models", "commands", "title", "context_usage"])?;
        Ok(Self { turns, models, commands, title, context_usage })
    }
}

/// Where in the script we are. It is only spelled out when something is wrong.
#[derive(Clone, Copy)]
enum Place<'a> {
    Top,
    Member(&'a Place<'a>, &'a str),
    Item(&'a Place<'a>, usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Top => f.write_str("the script"),
            Self::Member(Self::Top, name) => f.write_str(name),
            Self::Member(place, name) => write!(f, "{place}.{name}"),
            Self::Item(place, index) => write!(f, "{place}[{index}]"),
        }
    }
}

type Members<'a> = BTreeMap<String, &'a RawValue>;

/// What a step is called, and by which members.
const STEPS: &[&str] = &[
    "pass",
    "say",
    "wait_ms",
    "repeat",
    "permission",
    "ask",
    "steer",
    "host",
    "run",
    "hang",
    "fail",
    "lose_resume",
];

impl Place<'_> {
    fn turn(&self, raw: &RawValue) -> Result<Turn, ScriptError> {
        let mut members = self.object(raw.get())?;
        let when = self.take(&mut members, "when", |place, raw| place.string(raw))?;
        let steps = members.remove("steps").ok_or_else(|| self.error("has no member `steps`"))?;
        let steps = Place::Member(self, "steps").each(steps, |place, raw| place.step(raw, 0))?;
        self.nothing_else(&members, &["when", "steps"])?;
        Ok(Turn { when, steps })
    }

    fn step(&self, raw: &RawValue, depth: usize) -> Result<Step, ScriptError> {
        let mut members = self.object(raw.get())?;
        let Some(name) = STEPS.iter().copied().find(|name| members.contains_key(*name)) else {
            let has: Vec<&str> = members.keys().map(String::as_str).collect();
            let why =
                format!("is no step: it has `{}`, and none of `{}`", has.join("`, `"), STEPS.join("`, `"));
            return Err(self.error(why));
        };
        let value = members.remove(name).ok_or_else(|| self.error("is no step"))?;
        let place = Place::Member(self, name);
        let mut known: &[&str] = &[];
        let step = match name {
            "pass" => Step::Pass(place.text_of(value)?),
            "say" => Step::Pass(said(&place.string(value)?)),
            "wait_ms" => Step::Wait(place.number(value)?),
            "repeat" => {
                known = &["steps"];
                if depth == DEEPEST {
                    return Err(place.error(format!("is inside more than {DEEPEST} others")));
                }
                let times = place.number(value)?;
                let steps = members.remove("steps").ok_or_else(|| self.error("has no member `steps`"))?;
                let steps =
                    Place::Member(self, "steps").each(steps, |place, raw| place.step(raw, depth + 1))?;
                Step::Repeat(times, steps)
            }
            "permission" => Step::Permission(place.permission(value)?),
            "ask" => Step::Ask(place.value(value)?),
            "steer" => place.yes(value).map(|()| Step::Steer)?,
            "host" => {
                known = &["params"];
                let params = self.take(&mut members, "params", |place, raw| place.value(raw))?;
                Step::Host { method: place.string(value)?, params: params.unwrap_or_else(|| json!({})) }
            }
            "run" => {
                let command = place.each(value, |place, raw| place.string(raw))?;
                if command.is_empty() {
                    return Err(place.error("names no program"));
                }
                Step::Run(command)
            }
            "hang" => place.yes(value).map(|()| Step::Hang)?,
            "fail" => Step::Fail(place.string(value)?),
            "lose_resume" => Step::LoseResume(place.string(value)?),
            other => return Err(self.error(format!("`{other}` is no step"))),
        };
        self.nothing_else(&members, known)?;
        Ok(step)
    }

    fn permission(&self, raw: &RawValue) -> Result<Permission, ScriptError> {
        let mut members = self.object(raw.get())?;
        let tool = self.take(&mut members, "tool", |place, raw| place.string(raw))?;
        let tool = tool.ok_or_else(|| self.error("has no member `tool`"))?;
        let input = self.take(&mut members, "input", |place, raw| match place.value(raw)? {
            Value::Object(input) => Ok(input),
            _ => Err(place.error("must be an object")),
        })?;
        let suggestions = self
            .take(&mut members, "suggestions", |place, raw| place.each(raw, |place, raw| place.value(raw)))?;
        self.nothing_else(&members, &["tool", "input", "suggestions"])?;
        let input = input.unwrap_or_else(Map::new);
        Ok(Permission { tool, input, suggestions: suggestions.unwrap_or_default() })
    }

    fn model(&self, raw: &RawValue) -> Result<Model, ScriptError> {
        let mut members = self.object(raw.get())?;
        let id = self.take(&mut members, "id", |place, raw| place.string(raw))?;
        let id = id.ok_or_else(|| self.error("has no member `id`"))?;
        let label = self.take(&mut members, "label", |place, raw| place.string(raw))?;
        let cli_model = self.take(&mut members, "cliModel", |place, raw| place.string(raw))?;
        let effort_levels = self.take(&mut members, "effortLevels", |place, raw| {
            place.each(raw, |place, raw| place.string(raw))
        })?;
        let supports_fast_mode = self.take(&mut members, "supportsFastMode", |place, raw| {
            place.value(raw)?.as_bool().ok_or_else(|| place.error("must be true or false"))
        })?;
        self.nothing_else(&members, &["id", "label", "cliModel", "effortLevels", "supportsFastMode"])?;
        Ok(Model {
            label: label.unwrap_or_else(|| id.clone()),
            cli_model: cli_model.unwrap_or_else(|| id.clone()),
            id,
            effort_levels,
            supports_fast_mode,
            cursor_parameters: None,
        })
    }

    fn command(&self, raw: &RawValue) -> Result<SlashCommand, ScriptError> {
        let mut members = self.object(raw.get())?;
        let name = self.take(&mut members, "name", |place, raw| place.string(raw))?;
        let name = name.ok_or_else(|| self.error("has no member `name`"))?;
        let description = self.take(&mut members, "description", |place, raw| place.string(raw))?;
        let argument_hint = self.take(&mut members, "argumentHint", |place, raw| place.string(raw))?;
        let source = self.take(&mut members, "source", |place, raw| match place.string(raw)?.as_str() {
            "builtin" => Ok("builtin"),
            "skill" => Ok("skill"),
            _ => Err(place.error("must be `builtin` or `skill`")),
        })?;
        self.nothing_else(&members, &["name", "description", "argumentHint", "source"])?;
        let (description, source) = (description.unwrap_or_default(), source.unwrap_or("builtin"));
        Ok(SlashCommand { name, description, argument_hint, source })
    }

    fn object<'t>(&self, text: &'t str) -> Result<Members<'t>, ScriptError> {
        serde_json::from_str(text).map_err(|error| self.error(format!("must be an object: {error}")))
    }

    fn each<'t, T>(
        &self,
        raw: &'t RawValue,
        read: impl Fn(&Place<'_>, &'t RawValue) -> Result<T, ScriptError>,
    ) -> Result<Vec<T>, ScriptError> {
        let items: Vec<&RawValue> =
            serde_json::from_str(raw.get()).map_err(|_| self.error("must be an array"))?;
        items.into_iter().enumerate().map(|(index, raw)| read(&Place::Item(self, index), raw)).collect()
    }

    fn take<'t, T>(
        &self,
        members: &mut Members<'t>,
        name: &str,
        read: impl FnOnce(&Place<'_>, &'t RawValue) -> Result<T, ScriptError>,
    ) -> Result<Option<T>, ScriptError> {
        members.remove(name).map(|raw| read(&Place::Member(self, name), raw)).transpose()
    }

    fn string(&self, raw: &RawValue) -> Result<String, ScriptError> {
        serde_json::from_str(raw.get()).map_err(|_| self.error("must be a string"))
    }

    fn number(&self, raw: &RawValue) -> Result<u64, ScriptError> {
        serde_json::from_str(raw.get()).map_err(|_| self.error("must be a whole number, not below 0"))
    }

    fn value(&self, raw: &RawValue) -> Result<Value, ScriptError> {
        serde_json::from_str(raw.get()).map_err(|error| self.error(format!("cannot be read: {error}")))
    }

    fn yes(&self, raw: &RawValue) -> Result<(), ScriptError> {
        if raw.get() == "true" { Ok(()) } else { Err(self.error("must be true")) }
    }

    /// The text of an object, on one line and otherwise as it was written.
    fn text_of(&self, raw: &RawValue) -> Result<String, ScriptError> {
        if !raw.get().starts_with('{') {
            return Err(self.error("must be an object"));
        }
        Ok(on_one_line(raw.get()))
    }

    fn nothing_else(&self, rest: &Members<'_>, known: &[&str]) -> Result<(), ScriptError> {
        match rest.keys().next() {
            None => Ok(()),
            Some(name) if known.is_empty() => {
                Err(self.error(format!("has `{name}`, which means nothing here")))
            }
            Some(name) => {
                let known = known.join("`, `");
                Err(self.error(format!("has `{name}`, which means nothing here; it may have `{known}`")))
            }
        }
    }

    fn error(&self, why: impl Into<String>) -> ScriptError {
        ScriptError { place: self.to_string(), why: why.into() }
    }
}

/// What an agent says, as Claude Code would put it.
fn said(text: &str) -> String {
    let content = json!([{ "type": "text", "text": text }]);
    format!(r#"{{"type":"assistant","message":{{"role":"assistant","content":{content}}}}}"#)
}

/// JSON without the white space between its tokens.
fn on_one_line(json: &str) -> String {
    let mut line = String::with_capacity(json.len());
    let (mut inside, mut escaped) = (false, false);
    for char in json.chars() {
        if inside {
            inside = escaped || char != '"';
            escaped = !escaped && char == '\\';
        } else if char.is_ascii_whitespace() {
            continue;
        } else {
            inside = char == '"';
        }
        line.push(char);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong with a script of one turn with this one step.
    fn wrong(step: &str) -> String {
        let text = format!(r#"{{"turns":[{{"steps":[{{"hang":true}},{step}]}}]}}"#);
        Script::read(&text).unwrap_err().to_string()
    }

    #[test]
    fn every_mistake_is_named_by_its_step_and_its_member() {
        let cases = [
            (r"7", "turns[0].steps[1] must be an object"),
            (r#"{"say": 7}"#, "turns[0].steps[1].say must be a string"),
            (r#"{"pass": []}"#, "turns[0].steps[1].pass must be an object"),
            (r#"{"wait_ms": -1}"#, "turns[0].steps[1].wait_ms must be a whole number, not below 0"),
            (r#"{"wait_ms": 1.5}"#, "turns[0].steps[1].wait_ms must be a whole number, not below 0"),
            (r#"{"repeat": 2}"#, "turns[0].steps[1] has no member `steps`"),
            (r#"{"repeat": 2, "steps": [{"say": null}]}"#, "turns[0].steps[1].steps[0].say must be a string"),
            (r#"{"permission": {"input": {}}}"#, "turns[0].steps[1].permission has no member `tool`"),
            (
                r#"{"permission": {"tool": "a", "input": 1}}"#,
                "turns[0].steps[1].permission.input must be an object",
            ),
            (
                r#"{"permission": {"tool": "a", "inptu": {}}}"#,
                "turns[0].steps[1].permission has `inptu`, which means nothing here; it may have `tool`, `input`, `suggestions`",
            ),
            (r#"{"steer": 1}"#, "turns[0].steps[1].steer must be true"),
            (r#"{"run": "ls"}"#, "turns[0].steps[1].run must be an array"),
            (r#"{"run": []}"#, "turns[0].steps[1].run names no program"),
            (r#"{"run": ["ls", 1]}"#, "turns[0].steps[1].run[1] must be a string"),
            (r#"{"hang": true, "say": "x"}"#, "turns[0].steps[1] has `hang`, which means nothing here"),
            (r#"{"host": {}}"#, "turns[0].steps[1].host must be a string"),
        ];
        for (step, expected) in cases {
            let found = wrong(step);
            assert!(found.starts_with(expected), "{step}: {found}");
        }
        let found = wrong(r#"{"sing": "la"}"#);
        assert!(
            found.starts_with("turns[0].steps[1] is no step: it has `sing`, and none of `pass`"),
            "{found}"
        );
    }

    #[test]
    fn what_is_not_a_script_at_all_is_said_too() {
        let error = |text: &str| Script::read(text).unwrap_err().to_string();
        assert!(error("").starts_with("the script must be an object"));
        assert!(error("[]").starts_with("the script must be an object"));
        assert_eq!(error("{}"), "the script has no member `turns`");
        assert_eq!(error(r#"{"turns":{}}"#), "turns must be an array");
        assert_eq!(
            error(r#"{"turns":[],"titel":""}"#).split(';').next(),
            Some("the script has `titel`, which means nothing here")
        );
        assert_eq!(error(r#"{"turns":[],"models":[{}]}"#), "models[0] has no member `id`");
        assert_eq!(
            error(r#"{"turns":[],"commands":[{"name":"x","source":"y"}]}"#),
            "commands[0].source must be `builtin` or `skill`"
        );
    }

    #[test]
    fn repeats_may_be_16_deep_and_not_17() {
        let nested = |depth: usize| {
            let step = (0..depth).fold(r#"{"hang":true}"#.to_owned(), |inner, _| {
                format!(r#"{{"repeat":1,"steps":[{inner}]}}"#)
            });
            Script::read(&format!(r#"{{"turns":[{{"steps":[{step}]}}]}}"#))
        };
        assert!(nested(16).is_ok());
        assert!(nested(17).unwrap_err().to_string().ends_with("repeat is inside more than 16 others"));
    }

    #[test]
    fn an_object_is_passed_as_it_was_written_but_on_one_line() {
        let text = "{\"turns\":[{\"steps\":[{\"pass\": {\n \"z\" : 1.50,\n \"a\": \"\\\" \\\\\", \"b\":\" x \" }}]}]}";
        let script = Script::read(text).unwrap();
        let line = r#"{"z":1.50,"a":"\" \\","b":" x "}"#;
        assert_eq!(script.turns[0].steps, [Step::Pass(line.to_owned())]);
    }

    #[test]
    fn a_turn_is_found_by_its_words_and_else_by_its_turn() {
        let text = r#"{"turns":[{"steps":[{"wait_ms":1}]},{"when":"two","steps":[{"wait_ms":2}]},{"steps":[{"wait_ms":3}]}]}"#;
        let script = Script::read(text).unwrap();
        let find =
            |prompt: &str, played: usize| script.turn_for(prompt, || played).map(|turn| &turn.steps[0]);
        assert_eq!(find("one two three", 0), Some(&Step::Wait(2)));
        assert_eq!(find("else", 0), Some(&Step::Wait(1)));
        assert_eq!(find("else", 1), Some(&Step::Wait(3)));
        assert_eq!(find("else", 2), Some(&Step::Wait(3)));
        let none = Script::read(r#"{"turns":[{"when":"two","steps":[]}]}"#).unwrap();
        assert_eq!(none.turn_for("one", || 0), None);
    }
}
