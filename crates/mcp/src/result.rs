//! The result of a call: bounded for the log, and in the form that models expect.

use std::time::Duration;

use codex_tools::command::cut;
use codex_tools::lifecycle::ToolOutput;
use codex_wire::mcp::CallToolResult;
use codex_wire::response::ContentItem;
use serde_json::{Value, json};

/// The maximum length of a text of a result, and of the structured content.
const MOST_TEXT: usize = 256 * 1024;
/// The maximum length of an encoded image or sound.
const MOST_DATA: usize = 8 * 1024 * 1024;
/// The maximum number of parts of a result.
const MOST_PARTS: usize = 256;

/// Decodes a result, and shortens it. Unknown parts are kept unchanged, if they are short.
pub(crate) fn read(answer: Value) -> CallToolResult {
    let Value::Object(mut answer) = answer else {
        return CallToolResult { content: Vec::new(), structured_content: None, is_error: None };
    };
    let content = match answer.remove("content") {
        Some(Value::Array(parts)) => parts,
        _ => Vec::new(),
    };
    let left_out = content.len().saturating_sub(MOST_PARTS);
    let mut content: Vec<Value> = content.into_iter().take(MOST_PARTS).map(bounded).collect();
    if left_out > 0 {
        content.push(text_part(format!("[{left_out} more parts are left out]")));
    }
    let structured = answer.remove("structuredContent").filter(|value| !value.is_null());
    let is_short = |value: &Value| serde_json::to_string(value).is_ok_and(|text| text.len() <= MOST_TEXT);
    CallToolResult {
        content,
        structured_content: structured.filter(is_short),
        is_error: answer.remove("isError").and_then(|value| value.as_bool()),
    }
}

/// Whether a model is shown only a part of a result: of its texts, or of its pictures and sounds.
pub(crate) fn is_cut(answer: &Value, most_bytes: usize) -> bool {
    let parts = answer["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let data = |part: &Value| part["data"].as_str().map_or(0, str::len);
    let is_media = |part: &Value| part["type"] == "image" || part["type"] == "audio";
    let structured = &answer["structuredContent"];
    let texts = if structured.is_null() {
        parts.iter().filter(|part| !is_media(part)).map(|part| part.to_string().len()).sum()
    } else {
        structured.to_string().len()
    };
    texts > most_bytes || parts.len() > MOST_PARTS || parts.iter().any(|part| data(part) > MOST_DATA)
}

fn text_part(text: String) -> Value {
    json!({"type": "text", "text": text})
}

fn bounded(mut part: Value) -> Value {
    let kind = part["type"].as_str().unwrap_or_default().to_owned();
    match kind.as_str() {
        "text" => {
            if let Some(text) = part["text"].as_str().filter(|text| text.len() > MOST_TEXT) {
                part["text"] = cut(text, MOST_TEXT, text.len() as u64, text.lines().count()).into();
            }
            part
        }
        "image" | "audio" => match part["data"].as_str().map(str::len) {
            Some(bytes) if bytes <= MOST_DATA => part,
            bytes => text_part(format!("[{kind} of {} bytes is left out]", bytes.unwrap_or_default())),
        },
        _ => {
            let text = part.to_string();
            if text.len() <= MOST_TEXT {
                return part;
            }
            let shown = if kind.is_empty() { "part" } else { &kind };
            text_part(format!("[{shown} of {} bytes is left out]", text.len()))
        }
    }
}

/// The form of a result for the model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Telling {
    /// The maximum number of bytes of text.
    pub(crate) most_bytes: usize,
    /// The duration of the call, for models that receive it.
    pub(crate) took: Option<Duration>,
}

/// The result for the model: the structured content if there is any, else the parts.
pub(crate) fn for_model(result: &CallToolResult, telling: Telling) -> ToolOutput {
    let shortened = |text: String| {
        let (bytes, lines) = (text.len() as u64, text.lines().count());
        cut(&text, telling.most_bytes, bytes, lines)
    };
    let head = telling.took.map(|took| format!("Wall time: {:.4} seconds\nOutput:", took.as_secs_f64()));
    if let Some(structured) = &result.structured_content {
        let text = shortened(structured.to_string());
        return ToolOutput::Text(head.map_or_else(|| text.clone(), |head| format!("{head}\n{text}")));
    }
    let has_pictures = result.content.iter().any(|part| picture(part).is_some());
    match head {
        None if !has_pictures => ToolOutput::Text(shortened(Value::Array(result.content.clone()).to_string())),
        head => {
            let mut left = telling.most_bytes;
            let mut parts: Vec<ContentItem> =
                head.into_iter().map(|head| ContentItem::InputText { text: head.into() }).collect();
            for part in &result.content {
                if let Some(image_url) = picture(part) {
                    parts.push(ContentItem::InputImage { image_url });
                } else if left > 0 {
                    let text = part["text"].as_str().map_or_else(|| described(part), str::to_owned);
                    let text = cut(&text, left, text.len() as u64, text.lines().count());
                    left = left.saturating_sub(text.len());
                    parts.push(ContentItem::InputText { text: text.into() });
                }
            }
            ToolOutput::Parts(parts)
        }
    }
}

/// An image as a URL. Only the data itself is passed on: a URL of a server could name any file or host.
fn picture(part: &Value) -> Option<String> {
    if part["type"] != "image" {
        return None;
    }
    let mime = part["mimeType"].as_str().filter(|mime| mime.starts_with("image/") && !mime.contains([',', ';']));
    Some(format!("data:{};base64,{}", mime?, part["data"].as_str()?))
}

/// A part that is neither text nor an image.
fn described(part: &Value) -> String {
    match part["type"].as_str() {
        Some("audio") => format!("[audio, {}]", part["mimeType"].as_str().unwrap_or("unknown type")),
        _ => part.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Telling = Telling { most_bytes: 1000, took: None };
    const TIMED: Telling = Telling { most_bytes: 1000, took: Some(Duration::from_millis(1500)) };

    #[test]
    fn results_have_the_form_that_models_expect() {
        let both = read(json!({"content": [{"type": "text", "text": "x"}], "structuredContent": {"v": 1}}));
        assert_eq!(for_model(&both, PLAIN), ToolOutput::Text(r#"{"v":1}"#.to_owned()));
        assert_eq!(
            for_model(&both, TIMED),
            ToolOutput::Text("Wall time: 1.5000 seconds\nOutput:\n{\"v\":1}".to_owned())
        );
        let text = read(json!({"content": [{"type": "text", "text": "x"}]}));
        assert_eq!(for_model(&text, PLAIN), ToolOutput::Text(r#"[{"type":"text","text":"x"}]"#.to_owned()));
        let ToolOutput::Parts(parts) = for_model(&text, TIMED) else { panic!("it has parts") };
        assert_eq!(parts.len(), 2);
    }

    #[test]
    fn pictures_are_data_and_never_addresses() {
        let image = |mime: &str| {
            let result = read(json!({"content": [
                {"type": "text", "text": "see"}, {"type": "image", "data": "AAAA", "mimeType": mime}
            ]}));
            for_model(&result, PLAIN)
        };
        let ToolOutput::Parts(parts) = image("image/png") else { panic!("it has parts") };
        let data = ContentItem::InputImage { image_url: "data:image/png;base64,AAAA".to_owned() };
        assert_eq!(parts[1], data);
        assert!(matches!(image("text/html,x"), ToolOutput::Text(_)), "it is no picture");
        let link = read(json!({"content": [{"type": "image", "url": "file:///etc/passwd"}]}));
        assert_eq!(link.content, [text_part("[image of 0 bytes is left out]".to_owned())]);
    }

    #[test]
    fn a_large_result_is_shortened() {
        let result = read(json!({
            "content": [{"type": "text", "text": "q".repeat(20 << 20)}, {"type": "odd", "x": "y".repeat(MOST_TEXT)}],
            "structuredContent": {"v": "z".repeat(MOST_TEXT)},
            "isError": false,
        }));
        assert!(result.content[0]["text"].as_str().unwrap().len() < MOST_TEXT + 100);
        assert_eq!(result.content[1]["text"], "[odd of 262165 bytes is left out]");
        assert_eq!(result.structured_content, None);
        let ToolOutput::Text(text) = for_model(&result, PLAIN) else { panic!("it is text") };
        assert!(text.len() < 1100, "{}", text.len());
        let many = read(json!({"content": vec![json!({"type": "text", "text": ""}); 1000]}));
        assert_eq!(many.content.len(), MOST_PARTS + 1);
    }

    #[test]
    fn a_result_is_cut_if_a_text_of_it_is_and_a_picture_is_not_text() {
        let text = |bytes: usize| json!({"content": [{"type": "text", "text": "x".repeat(bytes)}]});
        assert!(!is_cut(&text(900), 1000) && is_cut(&text(1000), 1000));
        let image = |bytes: usize| json!({"content": [{"type": "image", "data": "A".repeat(bytes)}]});
        assert!(!is_cut(&image(5000), 1000) && is_cut(&image(MOST_DATA + 1), 1000));
        let structured = json!({"content": text(5000)["content"], "structuredContent": {"v": 1}});
        assert!(!is_cut(&structured, 1000), "the model is shown the structured content in place of the text");
        assert!(!is_cut(&Value::Null, 0));
    }

    #[test]
    fn anything_is_a_result() {
        for odd in [json!(null), json!([]), json!({"content": 7}), json!({"content": [1, null, "x"], "isError": "no"})]
        {
            drop(for_model(&read(odd), PLAIN));
        }
    }
}
