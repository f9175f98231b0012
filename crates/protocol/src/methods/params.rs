//! The parameters of a request.

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::rpc::ErrorObject;

/// Reads the parameters of a method. Missing ones count as none.
pub(super) fn read_params<P: DeserializeOwned>(params: Option<&RawValue>) -> Result<P, ErrorObject> {
    let text = params.map_or("{}", RawValue::get);
    // The error would show the value, which may be a key in the wrong place.
    if !text.starts_with(['{', '[']) {
        return Err(ErrorObject::invalid("Invalid request: params must be an object"));
    }
    serde_json::from_str(text).map_err(|error| ErrorObject::invalid(format!("Invalid request: {error}")))
}
