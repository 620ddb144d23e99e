//! A question of an agent, one line at a time: what is shown, what an answer may be, and the answers together as JSON.

use serde_json::{Map, Value, json};

use crate::say::short;

/// The most fields of one form; beyond that nobody would answer at a terminal.
const MAX_FIELDS: usize = 64;

/// A question under way.
pub(super) struct Form {
    message: String,
    source: String,
    fields: Vec<Field>,
    given: Vec<Value>,
    shape: Shape,
}

/// How the answers are put together.
enum Shape {
    /// As the program asked: `questions` with `answers` by the text of each question.
    Questions(Value),
    /// One member for each field.
    Members,
    /// Nothing to fill in: yes or no.
    Consent,
}

struct Field {
    /// The member that the answer becomes.
    key: String,
    label: String,
    help: String,
    choices: Vec<Choice>,
    takes: Takes,
}

struct Choice {
    label: String,
    help: String,
    value: Value,
}

/// What may be typed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// The number of a choice.
    One,
    /// The number of a choice, or something else.
    OneOrText,
    /// Several numbers, or something else.
    Several,
    Text,
    Number,
    Bool,
}

/// What became of a line.
pub(super) enum Step {
    /// It is no answer, and why.
    Again(String),
    /// The next field, please.
    Next,
    /// All is said.
    Done(Map<String, Value>),
    /// The user does not want to.
    Declined,
}

impl Form {
    /// Reads what an agent asks: `{message, source?, payload}`. None when it is nothing that can be asked here.
    pub(super) fn read(question: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let payload = &question["payload"];
        let (fields, shape) = match payload["kind"].as_str()? {
            "ask-user-question" => {
                let questions = payload["questions"].as_array()?;
                (questions.iter().map(asked).collect(), Shape::Questions(payload["questions"].clone()))
            }
            "form" => {
                let properties = payload["schema"]["properties"].as_object();
                let fields = properties.into_iter().flatten().map(|(key, schema)| property(key, schema));
                let fields: Vec<Field> = fields.collect();
                let shape = if fields.is_empty() { Shape::Consent } else { Shape::Members };
                (fields, shape)
            }
            "url" => (Vec::new(), Shape::Consent),
            _ => return None,
        };
        if fields.len() > MAX_FIELDS {
            return None;
        }
        let mut message = text(&question["message"]);
        if let Some(url) = payload["url"].as_str() {
            message = format!("{message} {url}");
        }
        let source = text(&question["source"]);
        Some(Self { message: message.trim().to_owned(), source, fields, given: Vec::new(), shape })
    }

    /// What is shown before anything is asked.
    pub(super) fn heading(&self) -> String {
        let source = if self.source.is_empty() { "the agent" } else { &self.source };
        match self.message.is_empty() {
            true => format!("{source} asks  (/no to decline)"),
            false => format!("{source}: {}  (/no to decline)", short(&self.message)),
        }
    }

    /// What is asked now, with its choices.
    pub(super) fn prompt(&self) -> String {
        let Some(field) = self.fields.get(self.given.len()) else {
            return "[y]es, [n]o:".to_owned();
        };
        let mut lines = vec![field.label.clone()];
        if !field.help.is_empty() {
            lines.push(format!("    {}", short(&field.help)));
        }
        for (number, choice) in field.choices.iter().enumerate() {
            let help =
                if choice.help.is_empty() { String::new() } else { format!("  {}", short(&choice.help)) };
            lines.push(format!("  {} {}{help}", number + 1, choice.label));
        }
        lines.push(match field.takes {
            Takes::One => format!("1 to {}:", field.choices.len()),
            Takes::OneOrText => format!("1 to {}, or your own words:", field.choices.len()),
            Takes::Several => "numbers, with commas between them, or your own words:".to_owned(),
            Takes::Text => "your answer:".to_owned(),
            Takes::Number => "a number:".to_owned(),
            Takes::Bool => "[y]es, [n]o:".to_owned(),
        });
        lines.join("\n")
    }

    /// Takes a line.
    pub(super) fn answer(&mut self, line: &str) -> Step {
        let line = line.trim();
        if line == "/no" {
            return Step::Declined;
        }
        let Some(field) = self.fields.get(self.given.len()) else {
            return match yes(line) {
                Some(true) => Step::Done(Map::new()),
                Some(false) => Step::Declined,
                None => Step::Again("y or n:".to_owned()),
            };
        };
        match field.value(line) {
            Ok(value) => self.given.push(value),
            Err(why) => return Step::Again(why),
        }
        if self.given.len() < self.fields.len() { Step::Next } else { Step::Done(self.together()) }
    }

    fn together(&self) -> Map<String, Value> {
        let pairs = self.fields.iter().map(|field| field.key.clone()).zip(self.given.iter().cloned());
        let members: Map<String, Value> = pairs.collect();
        match &self.shape {
            Shape::Questions(questions) => {
                let all = json!({ "questions": questions, "answers": members });
                all.as_object().cloned().unwrap_or_default()
            }
            Shape::Members | Shape::Consent => members,
        }
    }
}

impl Field {
    fn value(&self, line: &str) -> Result<Value, String> {
        let chosen = |text: &str| -> Option<&Choice> {
            let by_number =
                text.trim().parse::<usize>().ok().and_then(|number| self.choices.get(number.checked_sub(1)?));
            by_number
                .or_else(|| self.choices.iter().find(|choice| choice.label.eq_ignore_ascii_case(text.trim())))
        };
        let most = self.choices.len();
        match self.takes {
            Takes::One => {
                chosen(line).map(|choice| choice.value.clone()).ok_or_else(|| format!("1 to {most}:"))
            }
            Takes::OneOrText if line.is_empty() => Err(format!("1 to {most}, or your own words:")),
            Takes::OneOrText => Ok(chosen(line).map_or_else(|| json!(line), |choice| choice.value.clone())),
            Takes::Several if line.is_empty() => Err("numbers, or your own words:".to_owned()),
            Takes::Several => {
                let all: Option<Vec<&str>> =
                    line.split(',').map(|part| chosen(part).map(|choice| choice.label.as_str())).collect();
                Ok(json!(all.map_or_else(|| line.to_owned(), |labels| labels.join(", "))))
            }
            Takes::Text => Ok(json!(line)),
            Takes::Number => match serde_json::from_str::<serde_json::Number>(line) {
                Ok(number) => Ok(Value::Number(number)),
                Err(_) => Err("a number:".to_owned()),
            },
            Takes::Bool => yes(line).map(Value::Bool).ok_or_else(|| "y or n:".to_owned()),
        }
    }
}

fn yes(line: &str) -> Option<bool> {
    match line.to_ascii_lowercase().as_str() {
        "y" | "yes" => Some(true),
        "n" | "no" => Some(false),
        _ => None,
    }
}

/// A question of Claude Code.
fn asked(question: &Value) -> Field {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let choices = question["options"].as_array().into_iter().flatten().map(|option| Choice {
        label: text(&option["label"]),
        help: text(&option["description"]),
        value: option["label"].clone(),
    });
    let choices: Vec<Choice> = choices.collect();
    let takes = match (choices.is_empty(), question["multiSelect"] == true) {
        (true, _) => Takes::Text,
        (false, true) => Takes::Several,
        (false, false) => Takes::OneOrText,
    };
    Field {
        key: text(&question["question"]),
        label: text(&question["question"]),
        help: String::new(),
        choices,
        takes,
    }
}

/// A property of a form.
fn property(key: &str, schema: &Value) -> Field {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let choice = |value: &Value, label: &Value, help: &Value| Choice {
        label: label.as_str().map_or_else(|| plain(value), str::to_owned),
        help: text(help),
        value: value.clone(),
    };
    let mut choices = Vec::new();
    if let Some(options) = schema["oneOf"].as_array() {
        choices.extend(options.iter().map(|one| choice(&one["const"], &one["title"], &one["description"])));
    } else if let Some(values) = schema["enum"].as_array() {
        let names = &schema["enumNames"];
        choices.extend(values.iter().enumerate().map(|(at, value)| choice(value, &names[at], &Value::Null)));
    }
    let takes = match (choices.is_empty(), schema["type"].as_str()) {
        (false, _) if schema["x-allow-other"] == true => Takes::OneOrText,
        (false, _) => Takes::One,
        (true, Some("number" | "integer")) => Takes::Number,
        (true, Some("boolean")) => Takes::Bool,
        (true, _) => Takes::Text,
    };
    let title = schema["title"].as_str().unwrap_or(key).to_owned();
    Field { key: key.to_owned(), label: title, help: text(&schema["description"]), choices, takes }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(step: Step) -> Value {
        match step {
            Step::Done(members) => Value::Object(members),
            Step::Again(why) => panic!("again: {why}"),
            Step::Next => panic!("there is more"),
            Step::Declined => panic!("declined"),
        }
    }

    #[test]
    fn questions_of_claude_are_answered_by_number_by_name_or_in_ones_own_words() {
        let questions = json!([
            {"question": "Which colour?", "options": [{"label": "Red", "description": "warm"}, {"label": "Blue"}]},
            {"question": "Which sizes?", "multiSelect": true, "options": [{"label": "S"}, {"label": "L"}]},
        ]);
        let ask = json!({"message": "", "source": "Claude", "payload": {"kind": "ask-user-question", "questions": questions}});
        let mut form = Form::read(&ask).unwrap();
        assert_eq!(form.prompt(), "Which colour?\n  1 Red  warm\n  2 Blue\n1 to 2, or your own words:");
        assert!(matches!(form.answer(""), Step::Again(_)));
        assert!(matches!(form.answer("2"), Step::Next));
        let all = done(form.answer("1, l"));
        assert_eq!(all["answers"], json!({"Which colour?": "Blue", "Which sizes?": "S, L"}));
        assert_eq!(all["questions"], questions);
        let mut form = Form::read(&ask).unwrap();
        form.answer("green, rather");
        assert_eq!(done(form.answer("all of them"))["answers"]["Which sizes?"], "all of them");
        assert_eq!(done_colour(&ask, "RED"), "Red");
    }

    fn done_colour(ask: &Value, said: &str) -> Value {
        let mut form = Form::read(ask).unwrap();
        form.answer(said);
        done(form.answer("1"))["answers"]["Which colour?"].clone()
    }

    #[test]
    fn a_form_takes_values_of_the_types_that_it_names() {
        let ask = json!({"message": "Deploy?", "source": "srv", "payload": {"kind": "form", "schema": {"properties": {
            "count": {"type": "integer", "title": "How many"},
            "sure": {"type": "boolean"},
            "where": {"type": "string", "oneOf": [{"const": "eu", "title": "Europe"}, {"const": "us", "title": "America"}]},
        }}}});
        let mut form = Form::read(&ask).unwrap();
        assert_eq!(form.heading(), "srv: Deploy?  (/no to decline)");
        assert!(matches!(form.answer("many"), Step::Again(_)));
        assert!(matches!(form.answer("3"), Step::Next));
        assert!(matches!(form.answer("perhaps"), Step::Again(_)));
        assert!(matches!(form.answer("y"), Step::Next));
        assert!(matches!(form.answer("3"), Step::Again(_)), "one past the last choice");
        assert_eq!(done(form.answer("2")), json!({"count": 3, "sure": true, "where": "us"}));
    }

    #[test]
    fn what_asks_for_nothing_wants_a_yes_and_everything_can_be_declined() {
        let url = json!({"message": "Log in", "payload": {"kind": "url", "url": "https://example.org/x"}});
        let mut form = Form::read(&url).unwrap();
        assert!(form.heading().contains("https://example.org/x"));
        assert!(matches!(form.answer("what?"), Step::Again(_)));
        assert_eq!(done(form.answer("yes")), json!({}));
        let mut form = Form::read(&url).unwrap();
        assert!(matches!(form.answer("/no"), Step::Declined));
        assert!(Form::read(&json!({"payload": {"kind": "hologram"}})).is_none());
        assert!(Form::read(&json!(3)).is_none());
    }
}
