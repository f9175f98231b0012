//! The tools of namespaces under names of their own, for APIs that have no namespaces.

use std::borrow::Cow;
use std::collections::HashSet;

use codex_wire::provider_traits::ProviderTraits;
use codex_wire::tool_spec::ToolSpec;

use crate::tool_names::accepted_name;

/// A tool as an API without namespaces knows it.
pub(crate) struct FlatTool<'a> {
    /// A name that the provider accepts, and that no other tool of the list has.
    pub(crate) name: Cow<'a, str>,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) spec: &'a ToolSpec,
}

/// The tools of a list, those of namespaces one by one, in order.
pub(crate) fn flat_tools<'a>(specs: &'a [ToolSpec], traits: &ProviderTraits) -> Vec<FlatTool<'a>> {
    let is_plain = |spec: &&ToolSpec| !matches!(spec, ToolSpec::Namespace(_));
    let mut taken: HashSet<Cow<'a, str>> =
        specs.iter().filter(is_plain).map(|spec| accepted_name(spec.name(), traits)).collect();
    let mut tools = Vec::new();
    for spec in specs {
        let ToolSpec::Namespace(namespace) = spec else {
            tools.push(FlatTool { name: accepted_name(spec.name(), traits), namespace: None, spec });
            continue;
        };
        for spec in &namespace.tools {
            let joined = joined_name(&namespace.name, spec.name());
            let mut name = accepted_name(&joined, traits).into_owned();
            if taken.contains(name.as_str()) {
                // No provider accepts a slash, so a hash of both names takes its place.
                name = accepted_name(&format!("{}/{}", namespace.name, spec.name()), traits).into_owned();
            }
            taken.insert(name.clone().into());
            tools.push(FlatTool { name: name.into(), namespace: Some(&namespace.name), spec });
        }
    }
    tools
}

/// The name of a tool together with that of its namespace.
pub(crate) fn joined_name(namespace: &str, tool: &str) -> String {
    format!("{namespace}__{tool}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn function(name: &str) -> ToolSpec {
        ToolSpec::function(name.to_owned(), "It works.", json!({"type": "object"}))
    }

    #[test]
    fn names_are_accepted_and_no_two_are_equal() {
        let traits = ProviderTraits::unknown();
        let long = "x".repeat(80);
        let specs = [
            ToolSpec::namespace("a", "", vec![function("b__c"), function("d"), function(&long)]),
            ToolSpec::namespace("a__b", "", vec![function("c")]),
            function("a__d"),
            ToolSpec::WebSearch(codex_wire::tool_spec::WebAccess::Usual),
        ];
        let tools = flat_tools(&specs, &traits);
        let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names[0], "a__b__c");
        assert!(names[1].starts_with("a_d_") && names[3].starts_with("a__b_c_"), "{names:?}");
        assert_eq!(names[4..], ["a__d", "web_search"]);
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
        let is_accepted = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        assert!(names.iter().all(|name| name.len() <= 64 && name.chars().all(is_accepted)), "{names:?}");
        assert_eq!(tools[3].namespace, Some("a__b"));
    }

    fn namespaced() -> crate::Prompt {
        let mut prompt = crate::testing::prompt(&["user:Go."]);
        let call = json!({"type": "function_call", "name": "wait_agent", "namespace": "multi_agent_v1",
            "arguments": "{}", "call_id": "c"});
        let call = serde_json::from_value::<codex_wire::response::ResponseItem>(call).unwrap();
        prompt.input.push(codex_wire::conversation_item::ConversationItem::new(&std::sync::Arc::new(call)).unwrap());
        let tools = vec![function("spawn_agent"), function("wait_agent")];
        prompt.tools =
            codex_wire::tool_spec::ToolList::of(vec![ToolSpec::namespace("multi_agent_v1", "Agents.", tools)]);
        prompt
    }

    #[test]
    fn no_api_without_namespaces_loses_their_tools() {
        let (prompt, flat) = (namespaced(), ProviderTraits { hosted_tools: false, ..ProviderTraits::responses() });
        for (wire, traits) in [
            (crate::WireKind::Chat, &ProviderTraits::unknown()),
            (crate::WireKind::Anthropic, &ProviderTraits::anthropic()),
            (crate::WireKind::Responses, &flat),
        ] {
            let body = crate::request_body(&prompt, wire, "mock", traits);
            let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
            let tools = body["tools"].to_string();
            assert!(tools.contains(r#""multi_agent_v1__spawn_agent""#), "{wire:?} {tools}");
            assert!(!tools.contains(r#""namespace""#), "{wire:?} {tools}");
            if wire != crate::WireKind::Responses {
                let messages = body["messages"].to_string();
                assert!(messages.contains(r#""multi_agent_v1__wait_agent""#), "{wire:?} {messages}");
            }
        }
        let body = crate::request_body(&prompt, crate::WireKind::Responses, "mock", &ProviderTraits::responses());
        assert!(String::from_utf8(body).unwrap().contains(r#""type":"namespace""#));
    }

    #[test]
    fn calls_come_back_to_their_namespace() {
        let tools = crate::answer_tools::AnswerTools::new(&namespaced().tools, &ProviderTraits::unknown());
        let call = |name: &str| tools.call("c".to_owned(), name, "{}".to_owned()).unwrap();
        for (name, expected) in [
            ("multi_agent_v1__spawn_agent", (Some("multi_agent_v1"), "spawn_agent")),
            ("spawn_agent", (None, "spawn_agent")),
            ("multi_agent_v1__other", (None, "multi_agent_v1__other")),
        ] {
            let codex_wire::response::ResponseItem::FunctionCall(call) = call(name) else { panic!("{name}") };
            assert_eq!((call.namespace.as_deref(), call.name.as_str()), expected);
        }
    }
}
