//! Forms from the schema of an MCP server and from the questions of a model.

use serde_json::Value;

use super::field::{Choice, Field, Kind, Wanted};
use super::{AnswerForm, Form};

/// The most fields, and the most values to choose from, that a person can be expected to read.
const MOST_FIELDS: usize = 64;
const MOST_OPTIONS: usize = 256;

/// The form for a schema; `None` if it wants something that cannot be entered.
#[must_use]
pub fn from_schema(schema: &Value) -> Option<Form> {
    let properties = schema.get("properties").and_then(Value::as_object).filter(|all| !all.is_empty())?;
    if properties.len() > MOST_FIELDS {
        return None;
    }
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let mut fields = Vec::new();
    for (name, property) in properties {
        let mut field = Field::new(name, kind(property)?, required.contains(&name.as_str()));
        let text = |member: &str| property.get(member).and_then(Value::as_str).map(str::to_owned);
        field.title = text("title").filter(|title| !title.is_empty()).unwrap_or_else(|| name.clone());
        field.help = text("description").unwrap_or_default();
        if let Some(default) = property.get("default") {
            fill(&mut field, default);
        }
        fields.push(field);
    }
    Some(Form::new(fields, AnswerForm::Content))
}

fn kind(property: &Value) -> Option<Kind> {
    let number = |name: &str| property.get(name).and_then(Value::as_f64);
    let size = |name: &str| property.get(name).and_then(Value::as_u64).and_then(|size| usize::try_from(size).ok());
    let word = |name: &str| property.get(name).and_then(Value::as_str);
    match word("type").unwrap_or("string") {
        "string" if property.get("enum").is_some() || property.get("oneOf").is_some() => {
            Some(Kind::Choice { options: options(property)?, has_other: false })
        }
        "string" => {
            let wanted = match word("format") {
                Some("email") => Wanted::Email,
                Some("uri" | "url") => Wanted::Uri,
                Some("date") => Wanted::Date,
                Some("date-time") => Wanted::DateTime,
                Some(_) | None => Wanted::Text,
            };
            let (least, most) = (size("minLength").unwrap_or(0), size("maxLength").unwrap_or(usize::MAX));
            Some(Kind::Text { wanted, least, most, is_secret: word("format") == Some("password") })
        }
        kind @ ("number" | "integer") => {
            Some(Kind::Number { is_whole: kind == "integer", least: number("minimum"), most: number("maximum") })
        }
        "boolean" => Some(Kind::Flag),
        "array" => {
            let options = options(property.get("items")?)?;
            let most = size("maxItems").unwrap_or(options.len());
            Some(Kind::Several { options, least: size("minItems").unwrap_or(0), most })
        }
        _ => None,
    }
}

/// The values of an enumeration, in any of its spellings.
fn options(property: &Value) -> Option<Vec<Choice>> {
    let choice = |value: &Value, label: Option<&str>| Choice {
        value: value.clone(),
        label: label.or_else(|| value.as_str()).map_or_else(|| value.to_string(), str::to_owned),
        help: String::new(),
    };
    let titled = ["oneOf", "anyOf"].iter().find_map(|name| property.get(*name)?.as_array());
    let options: Vec<Choice> = if let Some(titled) = titled {
        let one = |option: &Value| Some(choice(option.get("const")?, option.get("title").and_then(Value::as_str)));
        titled.iter().map(one).collect::<Option<_>>()?
    } else {
        let names = property.get("enumNames").and_then(Value::as_array);
        let name = |at: usize| names.and_then(|names| names.get(at)?.as_str());
        let values = property.get("enum").and_then(Value::as_array)?;
        values.iter().enumerate().map(|(at, value)| choice(value, name(at))).collect()
    };
    (!options.is_empty() && options.len() <= MOST_OPTIONS).then_some(options)
}

/// Enters a default value, if it fits the field.
fn fill(field: &mut Field, default: &Value) {
    let before = field.entered.clone();
    let position = |options: &[Choice], value: &Value| options.iter().position(|option| option.value == *value);
    match &field.kind {
        Kind::Text { .. } => field.entered.text = crate::printable(default.as_str().unwrap_or_default()).into_owned(),
        Kind::Number { .. } => {
            field.entered.text = if default.is_number() { default.to_string() } else { String::new() };
        }
        Kind::Flag => field.entered.flag = default.as_bool(),
        Kind::Choice { options, .. } => {
            field.entered.chosen.extend(position(options, default));
            field.entered.row = field.entered.chosen.first().copied().unwrap_or(0);
        }
        Kind::Several { options, .. } => {
            let values = default.as_array().into_iter().flatten();
            field.entered.chosen.extend(values.filter_map(|value| position(options, value)));
        }
    }
    if field.value().is_err() {
        field.entered = before;
    }
}

/// The form for the questions of a model; `None` if they are not as they have to be.
#[must_use]
pub fn from_questions(questions: &Value) -> Option<Form> {
    let questions = questions.as_array().filter(|all| !all.is_empty() && all.len() <= MOST_FIELDS)?;
    let mut fields = Vec::new();
    for question in questions {
        let text = |name: &str| question.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let flag = |name: &str| question.get(name).and_then(Value::as_bool).unwrap_or(false);
        let options = question.get("options").and_then(Value::as_array).filter(|all| !all.is_empty());
        let kind = match options {
            Some(options) if options.len() <= MOST_OPTIONS => {
                let one = |option: &Value| {
                    let label = option.get("label")?.as_str()?.to_owned();
                    let help = option.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
                    Some(Choice { value: label.as_str().into(), label, help })
                };
                let options = options.iter().map(one).collect::<Option<_>>()?;
                Kind::Choice { options, has_other: flag("isOther") }
            }
            Some(_) => return None,
            None => Kind::Text { wanted: Wanted::Text, least: 0, most: usize::MAX, is_secret: flag("isSecret") },
        };
        let mut field = Field::new(&text("id"), kind, true);
        (field.title, field.help) = (text("question"), String::new());
        let header = text("header");
        if !header.is_empty() {
            field.title = format!("{header}: {}", field.title);
        }
        fields.push(field);
    }
    Some(Form::new(fields, AnswerForm::Answers))
}
