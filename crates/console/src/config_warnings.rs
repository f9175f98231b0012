//! Warnings on standard error about configuration keys without effect.

use codex_config::{ConfigError, ConfigFindings, Env, Home, Layers, Overrides};

/// Warns about each key once, and returns the findings. Code that needs a file reports that it cannot be read.
///
/// # Errors
/// If there is such a key and the configuration is strict.
pub fn tell(home: &Home, env: &Env, overrides: &Overrides) -> Result<ConfigFindings, ConfigError> {
    match Layers::read(home, env, overrides) {
        Ok(layers) => {
            let findings = layers.findings();
            for warning in &findings.warnings {
                crate::note(format_args!("warning: {warning}"));
            }
            Ok(findings)
        }
        Err(error @ ConfigError::Strict { .. }) => Err(error),
        Err(_) => Ok(ConfigFindings::default()),
    }
}
