//! The models that a picker offers, as data.

use codex_wire::reasoning::ReasoningEffort::{self, High, Low, Medium, Minimal, None as No, XHigh};

use crate::Config;

/// A model that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedModel {
    /// What the provider calls it.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// What it is good for.
    pub description: String,
    /// The efforts it takes, the lowest first; none for a model that does not reason.
    pub efforts: Vec<ReasoningEffort>,
    /// The effort when none is chosen.
    pub default_effort: ReasoningEffort,
    /// Whether it takes images in.
    pub takes_images: bool,
    /// Whether pickers leave it out unless they are asked for all.
    pub is_hidden: bool,
    /// Whether it is the configured one.
    pub is_default: bool,
}

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

/// The models that can be chosen. The configured one is always among them, and it is the default.
#[must_use]
pub fn list_models(config: &Config, include_hidden: bool) -> Vec<OfferedModel> {
    let configured = &config.model;
    let offered = MODELS.iter().map(|entry| entry.offer(&configured.name));
    let mut models: Vec<OfferedModel> = offered.filter(|model| include_hidden || !model.is_hidden).collect();
    if !models.iter().any(|model| model.is_default) {
        models.insert(0, unknown(&configured.name, configured.reasoning_effort.clone(), &config.provider.name));
    }
    models
}

impl Entry {
    fn offer(&self, configured: &str) -> OfferedModel {
        let is_default = self.id == configured;
        OfferedModel {
            id: self.id.to_owned(),
            name: self.name.to_owned(),
            description: self.description.to_owned(),
            efforts: self.efforts.to_vec(),
            default_effort: self.default.clone(),
            takes_images: self.images,
            is_hidden: self.shown == Shown::OnRequest && !is_default,
            is_default,
        }
    }
}

/// A model that only the user knows.
fn unknown(name: &str, effort: Option<ReasoningEffort>, provider: &str) -> OfferedModel {
    let effort = effort.unwrap_or(ReasoningEffort::None);
    OfferedModel {
        id: name.to_owned(),
        name: name.to_owned(),
        description: format!("The model of your configuration, at {provider}."),
        efforts: vec![effort.clone()],
        default_effort: effort,
        takes_images: true,
        is_hidden: false,
        is_default: true,
    }
}

/// What an effort gives, in words.
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
    use crate::{DEFAULT_MODEL, Overrides, config::tests::load};

    fn list(file: &str, include_hidden: bool) -> Vec<OfferedModel> {
        let (_temp, config) = load(file, &Overrides::default());
        list_models(&config.unwrap(), include_hidden)
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
    fn hidden_models_are_listed_on_request() {
        let all = list("", true);
        assert_eq!(all.len(), MODELS.len());
        assert!(all.iter().any(|model| model.is_hidden));
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
