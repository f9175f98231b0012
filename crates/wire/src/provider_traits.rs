//! Differences between providers. The tables are in `config`, and the wires of `model` follow them.

spelled! {
    /// The schemas that a provider accepts for tool arguments.
    pub enum SchemaForm {
        /// All of JSON Schema, and it can hold the model to one.
        "strict" => Strict,
        /// All of JSON Schema.
        "full" => Full,
        /// Types, properties and lists of words, and nothing else.
        "simple" => Simple,
    }
}

spelled! {
    /// The form of the reasoning effort in a provider's requests.
    pub enum ReasoningField {
        /// It is not: the field would be refused, or nothing is known of the provider.
        "none" => None,
        /// By `reasoning_effort`, or by `output_config.effort` and a budget, each on its own wire.
        "effort" => Effort,
        /// By the object `reasoning`.
        "object" => Object,
    }
}

spelled! {
    /// The use of a provider's reasoning.
    pub enum Thoughts {
        /// They are the thoughts themselves, which clients show on request.
        "raw" => Raw,
        /// They are already summaries for people.
        "summary" => Summary,
    }
}

spelled! {
    /// The use of a provider's cache.
    pub enum CacheForm {
        /// It has none, or one that needs no help.
        "none" => None,
        /// By a key that names the thread.
        "key" => Key,
        /// By marks within the request.
        "marks" => Marks,
    }
}

spelled! {
    /// The request form of reasoning in the Messages API.
    #[derive(Default)]
    pub enum ThinkingForm {
        /// It does not think.
        #[default]
        "none" => None,
        /// As it sees fit, with an effort.
        "adaptive" => Adaptive,
        /// With a number of tokens to think in.
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
    /// The tool by which a model was trained to run commands.
    #[derive(Default, PartialOrd, Ord)]
    pub enum ShellForm {
        /// `shell`, which takes a program and its arguments.
        #[default]
        "shell" => Shell,
        /// `shell_command`, which takes one line.
        "shell_command" => ShellCommand,
        /// `exec_command`, which runs in a terminal.
        "exec_command" => ExecCommand,
    }
}

/// The properties of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a column of a table, and none depends on another")]
pub struct ProviderTraits {
    /// The header that the key goes in as it is; `None` for a bearer token.
    pub key_header: Option<String>,
    /// The version of its interface, which some want to be told.
    pub api_version: Option<String>,
    /// Whether it takes tools with free text and a grammar.
    pub custom_tools: bool,
    /// Whether it has tools of its own, such as the search of the web.
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
    /// Whether it wants its thoughts back, where the wire leaves that open.
    pub returns_thoughts: bool,
    /// Whether it counts tokens in a stream when it is asked to.
    pub stream_usage: bool,
    /// The use of its cache.
    pub cache: CacheForm,
    /// Whether it keeps answers, so that their items go by their names.
    pub store: bool,
}

impl ProviderTraits {
    /// A provider of which nothing is known. It is told nothing that not every server of its wire understands.
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

    /// A provider with the Responses API, which takes all that the makers of that wire do.
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
