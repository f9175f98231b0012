//! What of the configuration has no effect, told on standard error.

use codex_config::{ConfigError, Env, Home, Layers, Overrides};

use crate::console;

/// Tells of each key once. A file that cannot be read is told by those who need it, and a key that may not be there, because
/// the user wants no such key, is an error.
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
