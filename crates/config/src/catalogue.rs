//! The models that a picker offers, as data: `model/list`.

use codex_protocol::v2::model::{InputModality, Model, ModelListParams, ModelListResponse, ReasoningEffortOption};
use codex_wire::reasoning::ReasoningEffort::{self, High, Low, Medium, Minimal, None as No, XHigh};

use crate::{
    Config,
    page::{CursorError, page},
};

/// Whether a picker shows a model that is not the configured one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Always,
    OnRequest,
}

/// What is known of a model.
struct Entry {
    id: &'static str,
    name: &'static str,
    description: &'static str,
    /// The efforts it takes, the lowest first; none for a model that does not reason.
    efforts: &'static [ReasoningEffort],
    default: ReasoningEffort,
    images: bool,
    shown: Shown,
}

/// The models, the recommended ones first. Older ones are for those who ask for them.
#[rustfmt::skip]
const MODELS: &[Entry] = &[
    Entry { id: "gpt-5.1-codex", name: "GPT-5.1 Codex", description: "The default for work on code, from quick edits to long tasks.", efforts: &[Low, Medium, High], default: Medium, images: true, shown: Shown::Always },
    Entry { id: "gpt-5.1-codex-mini", name: "GPT-5.1 Codex mini", description: "Smaller and cheaper, for simple changes and many of them.", efforts: &[Medium, High], default: Medium, images: true, shown: Shown::Always },
    Entry { id: "gpt-5.2", name: "GPT-5.2", description: "A broad model with good judgement beyond code.", efforts: &[Low, Medium, High, XHigh], default: Medium, images: true, shown: Shown::OnRequest },
    Entry { id: "gpt-5.1-codex-max", name: "GPT-5.1 Codex max", description: "For the hardest tasks on code, with the most patience.", efforts: &[Low, Medium, High, XHigh], default: Medium, images: true, shown: Shown::OnRequest },
    Entry { id: "gpt-5.1", name: "GPT-5.1", description: "A broad model of the generation before 5.2.", efforts: &[Low, Medium, High], default: Medium, images: true, shown: Shown::OnRequest },
    Entry { id: "gpt-5-codex", name: "GPT-5 Codex", description: "The first model of this family that was made for code.", efforts: &[Low, Medium, High], default: Medium, images: true, shown: Shown::OnRequest },
    Entry { id: "gpt-5", name: "GPT-5", description: "The broad model that this family began with.", efforts: &[Minimal, Low, Medium, High], default: Medium, images: true, shown: Shown::OnRequest },
    Entry { id: "codex-mini-latest", name: "Codex mini", description: "A small model for code of an older generation.", efforts: &[Low, Medium, High], default: Medium, images: true, shown: Shown::OnRequest },
    Entry { id: "o3", name: "o3", description: "An older model that reasons at length.", efforts: &[Low, Medium, High], default: Medium, images: true, shown: Shown::OnRequest },
    Entry { id: "o4-mini", name: "o4-mini", description: "An older small model that reasons.", efforts: &[Low, Medium, High], default: Medium, images: true, shown: Shown::OnRequest },
    Entry { id: "gpt-4.1", name: "GPT-4.1", description: "An older model with a very large window that answers at once.", efforts: &[], default: No, images: true, shown: Shown::OnRequest },
    Entry { id: "gpt-oss-120b", name: "gpt-oss 120B", description: "An open model for large machines of one's own.", efforts: &[Low, Medium, High], default: Medium, images: false, shown: Shown::OnRequest },
    Entry { id: "gpt-oss-20b", name: "gpt-oss 20B", description: "An open model for smaller machines of one's own.", efforts: &[Low, Medium, High], default: Medium, images: false, shown: Shown::OnRequest },
];

/// One page of the models that can be chosen. The configured one is always among them, and it is the default.
pub fn list_models(config: &Config, params: &ModelListParams) -> Result<ModelListResponse, CursorError> {
    let configured = &config.model;
    let hidden = |entry: &Entry| entry.shown == Shown::OnRequest && entry.id != configured.name;
    let known = MODELS.iter().filter(|entry| params.include_hidden == Some(true) || !hidden(entry));
    let mut models: Vec<Model> = known.map(|entry| entry.model(hidden(entry), entry.id == configured.name)).collect();
    if !models.iter().any(|model| model.is_default) {
        models.insert(0, unknown(&configured.name, configured.reasoning_effort.clone(), &config.provider.name));
    }
    let (data, next_cursor) = page(models, params.cursor.as_deref(), params.limit)?;
    Ok(ModelListResponse { data, next_cursor })
}

impl Entry {
    fn model(&self, hidden: bool, is_default: bool) -> Model {
        let efforts = self.efforts.iter().cloned().map(option).collect();
        let mut input = vec![InputModality::Text];
        input.extend(self.images.then_some(InputModality::Image));
        Model {
            input_modalities: input,
            hidden,
            is_default,
            ..bare(self.id, self.name, self.description, efforts, self.default.clone())
        }
    }
}

/// A model that only the user knows.
fn unknown(name: &str, effort: Option<ReasoningEffort>, provider: &str) -> Model {
    let effort = effort.unwrap_or(ReasoningEffort::None);
    let description = format!("The model of your configuration, at {provider}.");
    Model { is_default: true, ..bare(name, name, &description, vec![option(effort.clone())], effort) }
}

fn bare(
    id: &str,
    name: &str,
    description: &str,
    efforts: Vec<ReasoningEffortOption>,
    default: ReasoningEffort,
) -> Model {
    Model {
        id: id.to_owned(),
        model: id.to_owned(),
        upgrade: None,
        upgrade_info: None,
        availability_nux: None,
        display_name: name.to_owned(),
        description: description.to_owned(),
        hidden: false,
        supported_reasoning_efforts: efforts,
        default_reasoning_effort: default,
        input_modalities: vec![InputModality::Text, InputModality::Image],
        supports_personality: false,
        additional_speed_tiers: Vec::new(),
        service_tiers: Vec::new(),
        default_service_tier: None,
        is_default: false,
    }
}

fn option(effort: ReasoningEffort) -> ReasoningEffortOption {
    let description = match &effort {
        ReasoningEffort::None => "Answers without reasoning first",
        ReasoningEffort::Minimal => "As little reasoning as possible",
        ReasoningEffort::Low => "Quick answers with a little reasoning",
        ReasoningEffort::Medium => "Enough reasoning for everyday work",
        ReasoningEffort::High => "Careful reasoning for hard problems",
        ReasoningEffort::XHigh => "The most careful reasoning, for the hardest problems",
        ReasoningEffort::Other(_) => "An effort that your configuration asks for",
    };
    ReasoningEffortOption { reasoning_effort: effort, description: description.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DEFAULT_MODEL, Overrides, config::tests::load};

    fn list(file: &str, params: &ModelListParams) -> Result<ModelListResponse, CursorError> {
        let (_temp, config) = load(file, &Overrides::default());
        list_models(&config.unwrap(), params)
    }

    fn ids(response: &ModelListResponse) -> Vec<&str> {
        response.data.iter().map(|model| model.id.as_str()).collect()
    }

    fn params(cursor: Option<&str>, limit: u32) -> ModelListParams {
        ModelListParams { cursor: cursor.map(str::to_owned), limit: Some(limit), include_hidden: None }
    }

    /// The case `v2-model-list`, which says nothing about which models there are.
    #[test]
    fn pages_follow_each_other_as_recorded() {
        let file = "model = 'mock-model'\n";
        let first = list(file, &params(None, 2)).unwrap();
        assert_eq!(ids(&first), ["mock-model", "gpt-5.1-codex"]);
        assert_eq!(first.next_cursor.as_deref(), Some("2"));
        let second = list(file, &params(first.next_cursor.as_deref(), 1)).unwrap();
        assert_eq!((ids(&second), second.next_cursor.as_deref()), (vec!["gpt-5.1-codex-mini"], None));
        let error = list(file, &params(Some("nonsense"), 1)).unwrap_err();
        assert_eq!(error.to_string(), "invalid cursor: nonsense");
    }

    #[test]
    fn the_configured_model_is_listed_once_and_is_the_default() {
        for (file, expected) in [
            ("", vec!["gpt-5.1-codex", "gpt-5.1-codex-mini"]),
            ("model = 'gpt-5'", vec!["gpt-5.1-codex", "gpt-5.1-codex-mini", "gpt-5"]),
            ("model = 'mine'", vec!["mine", "gpt-5.1-codex", "gpt-5.1-codex-mini"]),
        ] {
            let response = list(file, &ModelListParams::default()).unwrap();
            assert_eq!(ids(&response), expected);
            assert_eq!(response.data.iter().filter(|model| model.is_default).count(), 1);
            assert!(response.data.iter().all(|model| !model.hidden));
        }
        let mine = list("model = 'mine'\nmodel_reasoning_effort = 'high'\n", &params(None, 1)).unwrap();
        assert_eq!(mine.data[0].default_reasoning_effort, ReasoningEffort::High);
    }

    #[test]
    fn hidden_models_are_listed_on_request() {
        let all = list("", &ModelListParams { include_hidden: Some(true), ..ModelListParams::default() }).unwrap();
        assert_eq!(all.data.len(), MODELS.len());
        assert!(all.data.iter().any(|model| model.hidden));
    }

    #[test]
    fn the_table_is_consistent() {
        assert!(MODELS.iter().any(|entry| entry.id == DEFAULT_MODEL && entry.shown == Shown::Always));
        for entry in MODELS {
            assert!(entry.efforts.is_empty() || entry.efforts.contains(&entry.default), "{}", entry.id);
            assert_eq!(MODELS.iter().filter(|other| other.id == entry.id).count(), 1, "{}", entry.id);
        }
    }
}
