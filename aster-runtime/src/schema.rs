//! The schema pass.

use schemars::JsonSchema;
use serde_json::Value;

pub(crate) fn is_wrapped<T: JsonSchema>() -> bool {
    output_root::<T>().get("type").and_then(Value::as_str) != Some("object")
}

pub(crate) fn output<T: JsonSchema>() -> Value {
    let schema = output_root::<T>();
    if is_wrapped::<T>() {
        serde_json::json!({"type": "object", "properties": {"result": schema}, "required": ["result"]})
    } else {
        schema
    }
}

fn output_root<T: JsonSchema>() -> Value {
    schemars::generate::SchemaSettings::draft2020_12()
        .with(|s| {
            s.inline_subschemas = true;
            s.meta_schema = None;
        })
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value()
}
