//! The known models: one table, corrected by the user's catalogue.

mod catalogue;
mod table;

use std::collections::BTreeMap;

use codex_wire::agent::MultiAgentVersion;
use codex_wire::provider_traits::{PatchForm, ShellForm, ThinkingForm};
use codex_wire::reasoning::ReasoningEffort;

use self::catalogue::CatalogueModel;
use self::table::{DEFAULT_EFFORT, MODELS, Row, Shown};
use crate::{Config, ModelConfig, Reader, ValueError};

/// The properties of a model. An unknown model has no known window, is not asked to reason, and calls one tool at a
/// time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelInfo {
    /// The size of the context window in tokens.
    pub context_window: Option<i64>,
    /// Whether it supports a reasoning effort and summaries.
    pub reasons: bool,
    /// Whether it may make several calls in one answer.
    pub calls_in_parallel: bool,
    /// The tool with which it runs commands.
    pub shell: ShellForm,
    /// The form in which it writes patches.
    pub patch: PatchForm,
    /// The request form of its reasoning, in APIs where models differ.
    pub thinking: ThinkingForm,
    /// The maximum length of its answers, for APIs that require it.
    pub max_output_tokens: Option<u32>,
    /// The generation of tools for other agents that it was trained on, if that is known.
    pub agent_tools: Option<MultiAgentVersion>,
}

impl ModelInfo {
    /// Whether it runs its commands in terminals.
    #[must_use]
    pub fn has_terminals(&self) -> bool {
        self.shell == ShellForm::ExecCommand
    }
}

/// The user's corrections for a model, in `[models."<name>"]`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelCorrection {
    context_window: Option<i64>,
    reasons: Option<bool>,
    calls_in_parallel: Option<bool>,
    shell: Option<ShellForm>,
    patch: Option<PatchForm>,
    thinking: Option<ThinkingForm>,
    max_output_tokens: Option<u32>,
    agent_tools: Option<MultiAgentVersion>,
}

impl ModelCorrection {
    /// Reads the entry of one model.
    pub(crate) fn read(models: &Reader<'_>, model: &str) -> Result<Option<Self>, ValueError> {
        let entry = models.section(model)?;
        Ok(Some(Self {
            context_window: entry.integer("context_window", 1..)?,
            reasons: entry.bool("reasoning")?,
            calls_in_parallel: entry.bool("parallel_tool_calls")?,
            shell: entry.word("shell")?,
            patch: entry.word("apply_patch")?,
            thinking: entry.word("thinking")?,
            max_output_tokens: entry.integer("max_output_tokens", 1..)?,
            agent_tools: entry.word("multi_agent_version")?,
        }))
    }

    fn of(&self, known: ModelInfo) -> ModelInfo {
        ModelInfo {
            context_window: self.context_window.or(known.context_window),
            reasons: self.reasons.unwrap_or(known.reasons),
            calls_in_parallel: self.calls_in_parallel.unwrap_or(known.calls_in_parallel),
            shell: self.shell.unwrap_or(known.shell),
            patch: self.patch.unwrap_or(known.patch),
            thinking: self.thinking.unwrap_or(known.thinking),
            max_output_tokens: self.max_output_tokens.or(known.max_output_tokens),
            agent_tools: self.agent_tools.or(known.agent_tools),
        }
    }
}

/// A model that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedModel {
    /// The provider's name for it.
    pub id: String,
    /// Its name for people.
    pub name: String,
    pub description: String,
    /// The supported efforts, lowest first; empty for a model that does not reason.
    pub efforts: Vec<ReasoningEffort>,
    /// The effort when none is chosen.
    pub default_effort: ReasoningEffort,
    /// Whether it accepts images.
    pub takes_images: bool,
    /// Whether pickers hide it unless all models are requested.
    pub is_hidden: bool,
    /// Whether it is the configured one.
    pub is_default: bool,
}

/// All known models: the built-in table, and the models of a `model_catalog_json` in front of it.
#[derive(Debug, Default)]
pub struct ModelTable {
    catalogue: Vec<CatalogueModel>,
    corrections: BTreeMap<String, ModelCorrection>,
    /// The models that the provider lists.
    listed: Vec<String>,
}

impl ModelTable {
    /// The table of a configuration, and an error if its catalogue cannot be read. The built-in rows are used then.
    #[must_use]
    pub fn read(config: &ModelConfig) -> (Self, Option<String>) {
        match config.catalogue.as_deref().map(catalogue::read) {
            None => (Self::of(config, Vec::new()), None),
            Some(Ok(catalogue)) => (Self::of(config, catalogue), None),
            Some(Err(why)) => (Self::of(config, Vec::new()), Some(why)),
        }
    }

    fn of(config: &ModelConfig, catalogue: Vec<CatalogueModel>) -> Self {
        Self { catalogue, corrections: config.corrections.clone(), listed: Vec::new() }
    }

    /// The same table, with the models that the provider lists.
    #[must_use]
    pub fn joined_by(self, listed: Vec<String>) -> Self {
        Self { listed, ..self }
    }

    /// Looks a model up.
    #[must_use]
    pub fn info(&self, name: &str) -> ModelInfo {
        let described = self.described(name).map(ModelInfo::from);
        let known = described.or_else(|| table::row(name).map(ModelInfo::from)).unwrap_or_default();
        self.corrections.get(name).map_or(known, |correction| correction.of(known))
    }

    /// The models that can be chosen. The configured one is always included, and is the default.
    #[must_use]
    pub fn offered(&self, config: &Config, include_hidden: bool) -> Vec<OfferedModel> {
        let rows = MODELS.iter().filter(|row| row.shown != Shown::Never && self.described(row.id).is_none());
        let described = self.catalogue.iter().map(OfferedModel::from);
        let is_new = |name: &&String| **name != config.model.name && self.described(name).is_none() && !has_row(name);
        let listed = self.listed.iter().filter(is_new).map(|name| listed(name, config));
        let mut models: Vec<OfferedModel> = described.chain(rows.map(OfferedModel::from)).chain(listed).collect();
        for model in &mut models {
            model.is_default = model.id == config.model.name;
            model.is_hidden &= !model.is_default;
        }
        models.retain(|model| include_hidden || !model.is_hidden);
        if !models.iter().any(|model| model.is_default) {
            models.insert(0, unknown(config));
        }
        models
    }

    fn described(&self, name: &str) -> Option<&CatalogueModel> {
        self.catalogue.iter().rfind(|model| model.slug == name)
    }
}

impl From<&Row> for ModelInfo {
    fn from(row: &Row) -> Self {
        Self {
            context_window: Some(row.window),
            reasons: !row.efforts.is_empty(),
            calls_in_parallel: row.parallel,
            shell: row.trained.shell,
            patch: row.trained.patch,
            thinking: row.trained.thinking,
            max_output_tokens: row.most_output,
            agent_tools: None,
        }
    }
}

impl From<&CatalogueModel> for ModelInfo {
    fn from(model: &CatalogueModel) -> Self {
        let known = table::row(&model.slug).map(Self::from).unwrap_or_default();
        Self {
            context_window: model.context_window,
            reasons: model.supports_reasoning_summaries,
            calls_in_parallel: model.supports_parallel_tool_calls,
            shell: match model.shell_type.as_deref() {
                Some("unified_exec") => ShellForm::ExecCommand,
                Some("shell_command") => ShellForm::ShellCommand,
                Some(_) => ShellForm::Shell,
                None => known.shell,
            },
            patch: match model.apply_patch_tool_type.as_deref() {
                Some("freeform") => PatchForm::Freeform,
                Some(_) => PatchForm::Function,
                None => known.patch,
            },
            agent_tools: model.multi_agent_version.as_deref().and_then(|version| version.parse().ok()),
            ..known
        }
    }
}

impl From<&Row> for OfferedModel {
    fn from(row: &Row) -> Self {
        Self {
            id: row.id.to_owned(),
            name: row.name.to_owned(),
            description: row.description.to_owned(),
            efforts: row.efforts.to_vec(),
            default_effort: if row.efforts.is_empty() { ReasoningEffort::None } else { DEFAULT_EFFORT },
            takes_images: row.images,
            is_hidden: row.shown == Shown::OnRequest,
            is_default: false,
        }
    }
}

/// Missing values of a catalogue come from the table.
impl From<&CatalogueModel> for OfferedModel {
    fn from(model: &CatalogueModel) -> Self {
        let row = table::row(&model.slug).map(Self::from);
        let own = row.as_ref().filter(|row| row.id == model.slug);
        let text =
            |given: &Option<String>, known: fn(&Self) -> &String| given.clone().or_else(|| own.map(known).cloned());
        let efforts = match &model.supported_reasoning_levels {
            Some(levels) => levels.iter().map(|level| level.effort.clone()).collect(),
            None => row.as_ref().map(|row| row.efforts.clone()).unwrap_or_default(),
        };
        let default = model.default_reasoning_level.clone();
        let first = || efforts.iter().find(|effort| **effort == DEFAULT_EFFORT).or(efforts.first()).cloned();
        Self {
            id: model.slug.clone(),
            name: text(&model.display_name, |row| &row.name).unwrap_or_else(|| model.slug.clone()),
            description: text(&model.description, |row| &row.description).unwrap_or_default(),
            default_effort: default.or_else(first).unwrap_or(ReasoningEffort::None),
            efforts,
            takes_images: match &model.input_modalities {
                Some(kinds) => kinds.iter().any(|kind| kind == "image"),
                None => row.as_ref().is_none_or(|row| row.takes_images),
            },
            is_hidden: match model.visibility.as_deref() {
                Some(visibility) => visibility != "list",
                None => own.is_some_and(|row| row.is_hidden),
            },
            is_default: false,
        }
    }
}

/// Whether the table has a model with exactly this name.
fn has_row(name: &str) -> bool {
    table::row(name).is_some_and(|row| row.id == name)
}

/// A model that the provider lists. `OpenAI` lists many that are not useful here.
fn listed(name: &str, config: &Config) -> OfferedModel {
    let row = table::row(name).map(OfferedModel::from);
    OfferedModel {
        id: name.to_owned(),
        name: name.to_owned(),
        description: format!("Listed by {}.", config.provider.name),
        is_hidden: config.provider.requires_openai_auth,
        is_default: false,
        ..row.unwrap_or_else(|| unknown(config))
    }
}

/// A model that only the user's configuration names.
fn unknown(config: &Config) -> OfferedModel {
    let effort = config.model.reasoning_effort.clone().unwrap_or(ReasoningEffort::None);
    OfferedModel {
        id: config.model.name.clone(),
        name: config.model.name.clone(),
        description: format!("The model of your configuration, at {}.", config.provider.name),
        efforts: vec![effort.clone()],
        default_effort: effort,
        takes_images: true,
        is_hidden: false,
        is_default: true,
    }
}

/// The description of an effort.
#[must_use]
pub fn describe_effort(effort: &ReasoningEffort) -> &'static str {
    match effort {
        ReasoningEffort::None => "Answers without reasoning first",
        ReasoningEffort::Minimal => "As little reasoning as possible",
        ReasoningEffort::Low => "Quick answers with a little reasoning",
        ReasoningEffort::Medium => "Enough reasoning for everyday work",
        ReasoningEffort::High => "Careful reasoning for hard problems",
        ReasoningEffort::XHigh => "The most careful reasoning, for the hardest problems",
        ReasoningEffort::Other(_) => "An effort that your configuration asks for",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Overrides, config::tests::load};

    fn list(file: &str, include_hidden: bool) -> Vec<OfferedModel> {
        let (_temp, config) = load(file, &Overrides::default());
        ModelTable::default().offered(&config.unwrap(), include_hidden)
    }

    #[test]
    fn the_configured_model_is_listed_once_and_is_the_default() {
        for (file, expected) in [
            ("", vec!["gpt-5.1-codex", "gpt-5.1-codex-mini"]),
            ("model = 'gpt-5'", vec!["gpt-5.1-codex", "gpt-5.1-codex-mini", "gpt-5"]),
            ("model = 'mine'", vec!["mine", "gpt-5.1-codex", "gpt-5.1-codex-mini"]),
        ] {
            let models = list(file, false);
            assert_eq!(models.iter().map(|model| model.id.as_str()).collect::<Vec<_>>(), expected);
            assert_eq!(models.iter().filter(|model| model.is_default).count(), 1);
            assert!(models.iter().all(|model| !model.is_hidden));
        }
        let mine = list("model = 'mine'\nmodel_reasoning_effort = 'high'\n", false);
        assert_eq!(mine[0].default_effort, ReasoningEffort::High);
    }

    #[test]
    fn the_user_corrects_the_table() {
        let file = r#"
            [models."claude-opus-4-7"]
            thinking = "budget"
            max_output_tokens = 99
            [models.mine]
            context_window = 1000
            reasoning = true
            parallel_tool_calls = true
            shell = "exec_command"
            apply_patch = "freeform"
        "#;
        let (_temp, config) = load(file, &Overrides::default());
        let (table, _) = ModelTable::read(&config.unwrap().model);
        let claude = table.info("claude-opus-4-7");
        assert_eq!((claude.thinking, claude.max_output_tokens), (ThinkingForm::Budget, Some(99)));
        assert_eq!((claude.context_window, claude.patch), (Some(200_000), PatchForm::Function));
        assert_eq!(table.info("claude-opus-4-8").thinking, ThinkingForm::Adaptive, "only the one that was named");
        let mine = table.info("mine");
        assert!(mine.reasons && mine.calls_in_parallel && mine.has_terminals());
        assert_eq!((mine.context_window, mine.patch), (Some(1000), PatchForm::Freeform));
    }

    #[test]
    fn models_that_the_provider_lists_join_the_table() {
        let names = |file: &str, hidden: bool| {
            let (_temp, config) = load(file, &Overrides::default());
            let listed = ["gpt-5.1-codex", "qwen3:latest", "mine"].map(str::to_owned);
            let table = ModelTable::default().joined_by(listed.to_vec());
            let offered = table.offered(&config.unwrap(), hidden);
            offered.into_iter().map(|model| model.id).collect::<Vec<_>>()
        };
        let local = "model = 'mine'\nmodel_provider = 'ollama'";
        assert_eq!(names(local, false), ["mine", "gpt-5.1-codex", "gpt-5.1-codex-mini", "qwen3:latest"]);
        assert!(!names("model = 'mine'", false).contains(&"qwen3:latest".to_owned()));
        assert!(names("model = 'mine'", true).contains(&"qwen3:latest".to_owned()));
    }

    #[test]
    fn hidden_models_are_listed_on_request() {
        let all = list("", true);
        assert_eq!(all.len(), MODELS.iter().filter(|row| row.shown != Shown::Never).count());
        assert!(all.iter().any(|model| model.is_hidden));
    }

    #[test]
    fn a_catalogue_corrects_the_table() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("models.json");
        let models = r#"{"models": [
            {"slug": "gpt-5.2", "visibility": "list", "context_window": 99, "supports_parallel_tool_calls": true},
            {"slug": "mine", "display_name": "Mine", "description": "My own.", "shell_type": "unified_exec",
             "supported_reasoning_levels": [{"effort": "low", "description": "a little"}, {"effort": "high"}],
             "default_reasoning_level": "high", "input_modalities": ["text"]},
            {"slug": "gpt-5", "visibility": "hide"}, {"slug": "secret", "visibility": "none"}]}"#;
        std::fs::write(&path, models).unwrap();
        let (_temp, config) = load(format!("model_catalog_json = '{}'", path.display()), &Overrides::default());
        let config = config.unwrap();
        let (table, unread) = ModelTable::read(&config.model);
        assert_eq!(unread, None);
        let shown = table.offered(&config, false);
        let names: Vec<_> = shown.iter().map(|model| model.name.as_str()).collect();
        assert_eq!(names, ["GPT-5.2", "Mine", "GPT-5.1 Codex", "GPT-5.1 Codex mini"]);
        assert_eq!(shown[0].efforts.len(), 4, "what the catalogue leaves open is as the table has it");
        assert_eq!((shown[1].takes_images, &shown[1].default_effort), (false, &ReasoningEffort::High));
        let info = table.info("gpt-5.2");
        assert_eq!((info.context_window, info.has_terminals()), (Some(99), false));
        assert!(table.info("mine").has_terminals() && table.info("gpt-5.1").calls_in_parallel);
        assert_eq!(table.info("unheard of"), ModelInfo::default());
    }
}
