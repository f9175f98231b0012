//! Applies schemas: generates matching values, and checks values.

use codex_protocol::schema::{BUNDLE, Definitions};
use serde_json::{Map, Value, json};

/// Generates values that a schema allows.
pub(crate) struct Drawing<'a> {
    pub(crate) definitions: &'a Definitions,
    pub(crate) chance: fastrand::Rng,
}

impl Drawing<'_> {
    /// A matching value. From some depth on, optional members are left out.
    pub(crate) fn draw(&mut self, schema: &Value, depth: usize) -> Value {
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            let name = name.strip_prefix("#/definitions/").unwrap();
            let definition = self.definitions.get(name).unwrap_or_else(|| panic!("{name} is not defined"));
            return self.draw(definition, depth);
        }
        if let Some(only) = schema.get("const") {
            return only.clone();
        }
        if let Some(words) = schema.get("enum").and_then(Value::as_array) {
            return words[self.chance.usize(..words.len())].clone();
        }
        let mut parts: Vec<Value> = Vec::new();
        for choices in ["oneOf", "anyOf"].iter().filter_map(|word| schema.get(word)?.as_array()) {
            let choice = if depth > 4 { choices.len() - 1 } else { self.chance.usize(..choices.len()) };
            parts.push(self.draw(&choices[choice], depth + 1));
        }
        let all = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
        parts.extend(all.map(|part| self.draw(part, depth)).collect::<Vec<_>>());
        if parts.is_empty() || schema.get("properties").is_some() {
            parts.push(self.plain(schema, depth));
        }
        let put_together = |whole: Value, part: Value| match (whole, part) {
            (Value::Object(mut whole), Value::Object(part)) => {
                whole.extend(part);
                Value::Object(whole)
            }
            (_, part) => part,
        };
        parts.into_iter().reduce(put_together).unwrap()
    }

    fn plain(&mut self, schema: &Value, depth: usize) -> Value {
        let kind = match schema.get("type") {
            Some(Value::Array(kinds)) => kinds[self.chance.usize(..kinds.len())].as_str(),
            Some(kind) => kind.as_str(),
            None if schema.get("properties").is_some() => Some("object"),
            None => return [json!(null), json!({"any": ["thing"]}), json!("x")][self.chance.usize(..3)].clone(),
        };
        match kind.unwrap() {
            "null" => Value::Null,
            "boolean" => json!(self.chance.bool()),
            "string" if schema.get("contentEncoding").is_some() => json!("aGk="),
            "string" if schema.get("format") == Some(&json!("uuid")) => json!("019a0000-0000-7000-8000-000000000000"),
            "string" => json!(["", "a", "ä/b c"][self.chance.usize(..3)]),
            "integer" | "number" => {
                let least = schema.get("minimum").and_then(Value::as_i64).unwrap_or(-100);
                json!(self.chance.i64(least..=schema.get("maximum").and_then(Value::as_i64).unwrap_or(100_000)))
            }
            "array" => {
                let items = if depth > 4 { 0 } else { self.chance.usize(..3) };
                (0..items).map(|_| self.draw(schema.get("items").unwrap_or(&json!(true)), depth + 1)).collect()
            }
            "object" => self.object(schema, depth),
            other => panic!("{other} is no type"),
        }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let required: Vec<&str> =
            schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let mut object = Map::new();
        for (name, member) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if required.contains(&name.as_str()) || (depth < 4 && self.chance.bool()) {
                object.insert(name.clone(), self.draw(member, depth + 1));
            }
        }
        if let Some(others @ Value::Object(_)) = schema.get("additionalProperties") {
            object.insert("other".to_owned(), self.draw(others, depth + 1));
        }
        Value::Object(object)
    }
}

/// Checks values against the definitions of a bundle.
pub(crate) struct Checker {
    schemas: boon::Schemas,
    compiler: boon::Compiler,
}

impl Checker {
    pub(crate) fn of(bundle: Value) -> Self {
        let mut compiler = boon::Compiler::new();
        compiler.add_resource("http://test/bundle.json", bundle).unwrap();
        Self { schemas: boon::Schemas::new(), compiler }
    }

    /// Adds a schema that others refer to.
    pub(crate) fn add(&mut self, place: &str, schema: Value) {
        self.compiler.add_resource(place, schema).unwrap();
    }

    /// A checker for the built-in bundle, which accepts unknown variants of open enums.
    pub(crate) fn built_in() -> Self {
        Self::of(codex_wire::schema::opened(serde_json::from_str(BUNDLE).unwrap()))
    }

    /// The fault of a value; `None` if it matches.
    pub(crate) fn complaint(&mut self, definition: &str, value: &Value) -> Option<String> {
        let place = format!("http://test/bundle.json#/definitions/{definition}");
        let index = self.compiler.compile(&place, &mut self.schemas).unwrap_or_else(|error| panic!("{error:#}"));
        self.schemas.validate(value, index).err().map(|error| format!("{error:#}"))
    }
}
