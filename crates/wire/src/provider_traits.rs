//! Differences between providers. The tables are in `config`, and the APIs of `model` follow them.

spelled! {
    /// The schemas that a provider accepts for tool arguments.
    pub enum SchemaForm {
        /// All of JSON Schema, and the provider can enforce one.
        "strict" => Strict,
        /// All of JSON Schema.
        "full" => Full,
        /// Only types, properties and enumerations of strings.
        "simple" => Simple,
    }
}

spelled! {
    /// The form of the reasoning effort in a provider's requests.
    pub enum ReasoningField {
        /// It is not sent: the provider would reject the field, or is unknown.
        "none" => None,
        /// As `reasoning_effort`, or as `output_config.effort` with a budget, depending on the API.
        "effort" => Effort,
        /// As the object `reasoning`.
        "object" => Object,
    }
}

spelled! {
    /// The use of a provider's reasoning.
    pub enum Thoughts {
        /// It is raw reasoning, which clients show on request.
        "raw" => Raw,
        /// It is already a summary for people.
        "summary" => Summary,
    }
}

spelled! {
    /// The use of a provider's cache.
    pub enum CacheForm {
        /// It has none, or one that needs no hints.
        "none" => None,
        /// With a key that identifies the thread.
        "key" => Key,
        /// With markers within the request.
        "marks" => Marks,
    }
}

spelled! {
    /// The request form of reasoning in the Messages API.
    #[derive(Default)]
    pub enum ThinkingForm {
        /// No reasoning.
        #[default]
        "none" => None,
        /// Adaptive, with an effort.
        "adaptive" => Adaptive,
        /// With a token budget.
        "budget" => Budget,
    }
}

spelled! {
    /// The form in which a model was trained to write patches.
    #[derive(Default, PartialOrd, Ord)]
    pub enum PatchForm {
        /// As free text that follows a grammar.
        "freeform" => Freeform,
        /// As the argument of a function.
        #[default]
        "function" => Function,
    }
}

spelled! {
    /// The tool with which a model was trained to run commands.
    #[derive(Default, PartialOrd, Ord)]
    pub enum ShellForm {
        /// `shell`, which takes a program and its arguments.
        #[default]
        "shell" => Shell,
        /// `shell_command`, which takes one command line.
        "shell_command" => ShellCommand,
        /// `exec_command`, which runs in a terminal.
        "exec_command" => ExecCommand,
    }
}

/// The properties of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a column of a table, and none depends on another")]
pub struct ProviderTraits {
    /// The header that contains the key; `None` for a bearer token.
    pub key_header: Option<String>,
    /// The version of its API, which some providers require.
    pub api_version: Option<String>,
    /// Whether it accepts tools with free text and a grammar.
    pub custom_tools: bool,
    /// Whether it has built-in tools, such as web search.
    pub hosted_tools: bool,
    /// The maximum length of a tool name.
    pub tool_name_length: usize,
    /// The characters that a tool name may contain besides letters and digits.
    pub tool_name_characters: String,
    /// The accepted schemas.
    pub schemas: SchemaForm,
    /// The form of the reasoning effort in requests.
    pub reasoning: ReasoningField,
    pub thoughts: Thoughts,
    /// Whether it expects its reasoning back, where the API leaves that open.
    pub returns_thoughts: bool,
    /// Whether it reports token usage in a stream on request.
    pub stream_usage: bool,
    /// The use of its cache.
    pub cache: CacheForm,
    /// Whether it stores answers, so that requests can refer to their items by id.
    pub store: bool,
}

impl ProviderTraits {
    /// An unknown provider. Requests to it contain nothing that some server of its API does not understand.
    #[must_use]
    pub fn unknown() -> Self {
        Self {
            key_header: None,
            api_version: None,
            custom_tools: false,
            hosted_tools: false,
            tool_name_length: 64,
            tool_name_characters: "_-".to_owned(),
            schemas: SchemaForm::Full,
            reasoning: ReasoningField::None,
            thoughts: Thoughts::Raw,
            returns_thoughts: false,
            stream_usage: false,
            cache: CacheForm::None,
            store: false,
        }
    }

    /// A provider with the Responses API, with all its features.
    #[must_use]
    pub fn responses() -> Self {
        Self {
            custom_tools: true,
            hosted_tools: true,
            schemas: SchemaForm::Strict,
            reasoning: ReasoningField::Object,
            thoughts: Thoughts::Summary,
            stream_usage: true,
            cache: CacheForm::Key,
            ..Self::unknown()
        }
    }

    /// A provider with the Messages API.
    #[must_use]
    pub fn anthropic() -> Self {
        Self {
            key_header: Some("x-api-key".to_owned()),
            api_version: Some("2023-06-01".to_owned()),
            tool_name_length: 128,
            reasoning: ReasoningField::Effort,
            thoughts: Thoughts::Summary,
            returns_thoughts: true,
            stream_usage: true,
            cache: CacheForm::Marks,
            ..Self::unknown()
        }
    }
}
