//! `codex features`: lists and sets features.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

use codex_config::{Config, ConfigEdit, Env, Home, UserConfig, WriteRequest, list_features};

use crate::args::{FeaturesCommand, Shared};
use crate::console;

pub(crate) fn run(shared: &Shared, command: &FeaturesCommand) -> anyhow::Result<ExitCode> {
    let env = Env::process();
    let home = Home::find(&env)?;
    let overrides = shared.overrides();
    let config = Config::load(&home, &env, &overrides)?;
    let known = known(&config);
    match command {
        FeaturesCommand::List => {
            let mut out = console::out();
            let width = known.keys().map(String::len).max().unwrap_or(0);
            for (name, (is_on, what)) in &known {
                let state = if *is_on { "on" } else { "off" };
                writeln!(out, "{name:width$}  {state:3}  {what}")?;
            }
        }
        FeaturesCommand::Enable { name } => set(&UserConfig::new(&home, &env, &overrides), &known, name, true)?,
        FeaturesCommand::Disable { name } => set(&UserConfig::new(&home, &env, &overrides), &known, name, false)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The features that have an effect and those that are set: whether they are on, and their description.
type Known = BTreeMap<String, (bool, String)>;

fn known(config: &Config) -> Known {
    let set = config.features.iter().map(|(name, is_on)| (name.clone(), (*is_on, String::new())));
    let mut known: Known = set.collect();
    // The features that the engine itself reads.
    for (name, what, default) in [
        ("parallel", "Runs several calls of one answer side by side.", true),
        ("unified_exec", "Gives the model terminals that live longer than one call.", false),
    ] {
        let is_on = config.features.get(name).copied().unwrap_or(default);
        known.insert(name.to_owned(), (is_on, what.to_owned()));
    }
    for feature in list_features(config) {
        known.insert(feature.name.to_owned(), (feature.is_on, feature.description.to_owned()));
    }
    known
}

fn set(config: &UserConfig<'_>, known: &Known, name: &str, is_on: bool) -> anyhow::Result<()> {
    anyhow::ensure!(
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'),
        "`{name}` is not a valid feature name"
    );
    if !known.contains_key(name) {
        console::note(format_args!("warning: unknown feature `{name}` (saved, but has no effect)"));
    }
    config.write(&WriteRequest::of([ConfigEdit::set(format!("features.{name}"), is_on)]))?;
    Ok(())
}
