//! Warnings on standard error about configuration keys without effect.

use codex_config::{ConfigError, Env, Home, Layers, Overrides};

use crate::console;

/// Warns about each key once. Code that needs a file reports that it cannot be read. With `--strict-config` such a key
/// is an error.
pub(crate) fn tell(home: &Home, env: &Env, overrides: &Overrides) -> Result<(), ConfigError> {
    match Layers::read(home, env, overrides) {
        Ok(layers) => {
            for warning in layers.warnings() {
                console::note(format_args!("warning: {warning}"));
            }
            Ok(())
        }
        Err(error @ ConfigError::Strict { .. }) => Err(error),
        Err(_) => Ok(()),
    }
}
