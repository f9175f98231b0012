//! The tools that a model is offered.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

/// The specification of a tool. Cloning it copies no text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolSpec {
    /// A tool that takes JSON.
    Function(Arc<FunctionTool>),
    /// A tool that takes free text.
    Custom(Arc<CustomTool>),
    /// The built-in shell of some models.
    LocalShell,
    /// The web search of the provider.
    WebSearch(WebAccess),
    /// Several tools under one name.
    Namespace(Arc<Namespace>),
}

/// The reach of a search of the web.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WebAccess {
    /// Anything that the provider chooses.
    Usual,
    /// Pages that the provider has stored.
    Cached,
    /// The web itself.
    Live,
}

/// Several tools under one name. Calls name both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    pub name: Cow<'static, str>,
    pub description: Cow<'static, str>,
    pub tools: Vec<ToolSpec>,
}

/// A tool that takes JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionTool {
    pub name: Cow<'static, str>,
    pub description: Cow<'static, str>,
    /// Whether the provider should enforce the schema.
    pub strict: bool,
    /// The JSON schema of its arguments.
    pub parameters: Value,
}

/// A tool that takes free text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomTool {
    pub name: Cow<'static, str>,
    pub description: Cow<'static, str>,
    /// The grammar of the text; any text is accepted without one.
    pub grammar: Option<Grammar>,
}

/// The grammar of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grammar {
    /// Its syntax: `lark` or `regex`.
    pub syntax: Cow<'static, str>,
    /// The grammar itself.
    pub definition: Cow<'static, str>,
}

impl ToolSpec {
    /// A tool that takes JSON, with a schema that is not enforced.
    pub fn function(
        name: impl Into<Cow<'static, str>>,
        description: impl Into<Cow<'static, str>>,
        parameters: Value,
    ) -> Self {
        let (name, description) = (name.into(), description.into());
        Self::Function(Arc::new(FunctionTool { name, description, strict: false, parameters }))
    }

    /// The same function under another name; other kinds of tools keep theirs.
    #[must_use]
    pub fn named(&self, name: impl Into<Cow<'static, str>>) -> Self {
        match self {
            Self::Function(tool) => Self::Function(Arc::new(FunctionTool { name: name.into(), ..(**tool).clone() })),
            other => other.clone(),
        }
    }

    /// Several tools under one name.
    pub fn namespace(
        name: impl Into<Cow<'static, str>>,
        description: impl Into<Cow<'static, str>>,
        tools: Vec<Self>,
    ) -> Self {
        let (name, description) = (name.into(), description.into());
        Self::Namespace(Arc::new(Namespace { name, description, tools }))
    }

    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Namespace(namespace) => &namespace.name,
            Self::Function(tool) => &tool.name,
            Self::Custom(tool) => &tool.name,
            Self::LocalShell => "local_shell",
            Self::WebSearch(_) => "web_search",
        }
    }
}

/// The tools of one request, in order, with their encodings.
pub struct ToolList {
    specs: Vec<ToolSpec>,
    responses: OnceLock<Box<str>>,
    /// The encoding for another API, by its name.
    other: OnceLock<(Box<str>, Box<str>)>,
}

impl ToolList {
    /// Creates the list of these tools. Equal lists are shared, so all threads with the same tools share their
    /// encoding.
    #[must_use]
    pub fn of(specs: Vec<ToolSpec>) -> Arc<Self> {
        static KNOWN: Mutex<Vec<Weak<ToolList>>> = Mutex::new(Vec::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(list) = known.iter().filter_map(Weak::upgrade).find(|list| list.specs == specs) {
            return list;
        }
        known.retain(|list| list.strong_count() > 0);
        let list = Arc::new(Self { specs, responses: OnceLock::new(), other: OnceLock::new() });
        known.push(Arc::downgrade(&list));
        list
    }

    /// The tools, in order.
    #[must_use]
    pub fn specs(&self) -> &[ToolSpec] {
        &self.specs
    }

    /// A JSON array in the form of the Responses API.
    pub fn responses_json(&self) -> &str {
        // A tool contains nothing that JSON cannot express.
        self.responses.get_or_init(|| {
            let tools: Vec<_> = self.specs.iter().map(InResponses).collect();
            serde_json::to_string(&tools).unwrap_or_else(|_| "[]".to_owned()).into()
        })
    }
}

impl ToolList {
    /// The list in the form of another API. The first requested form is cached; others are encoded each time.
    pub fn on_wire(&self, form: &str, encode: impl FnOnce(&[ToolSpec]) -> String) -> Cow<'_, str> {
        match self.other.get() {
            Some((known, json)) if **known == *form => return Cow::Borrowed(json),
            Some(_) => return Cow::Owned(encode(&self.specs)),
            None => {}
        }
        let json = encode(&self.specs);
        let (known, kept) = self.other.get_or_init(|| (form.into(), json.as_str().into()));
        if **known == *form { Cow::Borrowed(kept) } else { Cow::Owned(json) }
    }
}

impl fmt::Debug for ToolList {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.specs.iter().map(ToolSpec::name)).finish()
    }
}

/// A tool in the form of the Responses API.
struct InResponses<'a>(&'a ToolSpec);

impl Serialize for InResponses<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self.0 {
            ToolSpec::Function(tool) => {
                map.serialize_entry("type", "function")?;
                map.serialize_entry("name", &tool.name)?;
                map.serialize_entry("description", &tool.description)?;
                map.serialize_entry("strict", &tool.strict)?;
                map.serialize_entry("parameters", &tool.parameters)?;
            }
            ToolSpec::Custom(tool) => {
                map.serialize_entry("type", "custom")?;
                map.serialize_entry("name", &tool.name)?;
                map.serialize_entry("description", &tool.description)?;
                if let Some(grammar) = &tool.grammar {
                    map.serialize_entry("format", &GrammarInResponses(grammar))?;
                }
            }
            ToolSpec::LocalShell => map.serialize_entry("type", self.0.name())?,
            ToolSpec::WebSearch(access) => {
                map.serialize_entry("type", self.0.name())?;
                match access {
                    WebAccess::Usual => {}
                    WebAccess::Cached => map.serialize_entry("external_web_access", &false)?,
                    WebAccess::Live => map.serialize_entry("external_web_access", &true)?,
                }
            }
            ToolSpec::Namespace(namespace) => {
                map.serialize_entry("type", "namespace")?;
                map.serialize_entry("name", &namespace.name)?;
                map.serialize_entry("description", &namespace.description)?;
                let tools: Vec<_> = namespace.tools.iter().map(InResponses).collect();
                map.serialize_entry("tools", &tools)?;
            }
        }
        map.end()
    }
}

struct GrammarInResponses<'a>(&'a Grammar);

impl Serialize for GrammarInResponses<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("type", "grammar")?;
        map.serialize_entry("syntax", &self.0.syntax)?;
        map.serialize_entry("definition", &self.0.definition)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    fn function(name: &'static str) -> ToolSpec {
        ToolSpec::function(name, "Does \"it\".", json!({"type": "object", "properties": {}}))
    }

    #[test]
    fn every_kind_has_its_form() {
        let grammar = Grammar { syntax: "lark".into(), definition: "start: \"a\"\n".into() };
        let custom = |name: &'static str, grammar| {
            ToolSpec::Custom(Arc::new(CustomTool { name: name.into(), description: "Takes text.".into(), grammar }))
        };
        let list = ToolList::of(vec![
            function("first"),
            custom("patch", Some(grammar)),
            custom("note", None),
            ToolSpec::LocalShell,
            ToolSpec::WebSearch(WebAccess::Usual),
        ]);
        expect![[r#"[{"type":"function","name":"first","description":"Does \"it\".","strict":false,"parameters":{"type":"object","properties":{}}},{"type":"custom","name":"patch","description":"Takes text.","format":{"type":"grammar","syntax":"lark","definition":"start: \"a\"\n"}},{"type":"custom","name":"note","description":"Takes text."},{"type":"local_shell"},{"type":"web_search"}]"#]]
        .assert_eq(list.responses_json());
        let names: Vec<_> = list.specs().iter().map(ToolSpec::name).collect();
        assert_eq!(names, ["first", "patch", "note", "local_shell", "web_search"]);
        assert_eq!(ToolList::of(Vec::new()).responses_json(), "[]");
        let cached = ToolList::of(vec![ToolSpec::WebSearch(WebAccess::Cached), ToolSpec::WebSearch(WebAccess::Live)]);
        expect![[
            r#"[{"type":"web_search","external_web_access":false},{"type":"web_search","external_web_access":true}]"#
        ]]
        .assert_eq(cached.responses_json());
    }

    #[test]
    fn equal_lists_are_one() {
        let list = ToolList::of(vec![function("shared"), ToolSpec::WebSearch(WebAccess::Usual)]);
        assert!(Arc::ptr_eq(&list, &ToolList::of(vec![function("shared"), ToolSpec::WebSearch(WebAccess::Usual)])));
        assert!(!Arc::ptr_eq(&list, &ToolList::of(vec![ToolSpec::WebSearch(WebAccess::Usual), function("shared")])));
    }

    #[test]
    fn an_unused_list_is_dropped() {
        let list = ToolList::of(vec![function("forgotten")]);
        let weak = Arc::downgrade(&list);
        drop(list);
        assert!(weak.upgrade().is_none());
    }
}
