//! A formatted post, as it comes back: told by its type, so that plain text of the same look is none.

use serde_json::Value;

use crate::contract::channel::body::PostText;
use crate::contract::channel::observed::Observed;
use crate::contract::channel::outbound::trim_formatted;

/// The type a provider shows for a formatted message.
const POST: &str = "post";

/// Tells whether a message is a post of exactly these words.
pub(super) fn is_post(post: &PostText, message: &Observed) -> bool {
    message.message_type == POST && post_text(message).is_some_and(|shown| shown == post.as_str())
}

/// The formatted words of a post: of its raw body where there is one, else what is shown.
fn post_text(message: &Observed) -> Option<String> {
    let Some(body) = &message.body else {
        return Some(trim_formatted(&message.content));
    };
    let value: Value = serde_json::from_str(body).ok()?;
    let mut texts = Vec::new();
    formatted(&value, &mut texts);
    match texts.as_slice() {
        [text] => Some(trim_formatted(text)),
        _ => None,
    }
}

/// Finds the formatted elements of a raw body, whatever language they stand under.
fn formatted<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::Object(map) => {
            if map.get("tag").and_then(Value::as_str) == Some("md") {
                texts.extend(map.get("text").and_then(Value::as_str));
            }
            map.values().for_each(|inner| formatted(inner, texts));
        }
        Value::Array(items) => items.iter().for_each(|item| formatted(item, texts)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::channel::body::{ContentFormat, OutboundBody};
    use crate::contract::channel::outbound::LengthRule;
    use serde_json::json;

    fn proves(message: &Observed) -> bool {
        let parsed =
            OutboundBody::parse("# T\n\n* a", ContentFormat::Markdown, LengthRule::ChatRoot);
        match parsed {
            Ok((OutboundBody::Post(post), None)) => is_post(&post, message),
            other => panic!("no post: {other:?}"),
        }
    }

    fn shown(kind: &str, content: &str) -> Observed {
        Observed {
            message_type: kind.to_owned(),
            content: content.to_owned(),
            ..Observed::default()
        }
    }

    #[test]
    fn a_shown_post_is_compared_after_line_ends_and_ends_are_folded() {
        assert!(proves(&shown("post", "# T\r\n\r\n* a\n")));
        assert!(!proves(&shown("post", "# T\n* a")));
    }

    #[test]
    fn plain_text_of_the_same_look_is_no_post() {
        assert!(!proves(&shown("text", "# T\n\n* a")));
    }

    #[test]
    fn a_raw_post_has_exactly_one_formatted_element() {
        let raw = |texts: &[&str]| {
            let elements: Vec<Value> = texts
                .iter()
                .map(|text| json!({"tag": "md", "text": text}))
                .collect();
            Observed {
                body: Some(json!({"zh_cn": {"content": [elements]}}).to_string()),
                ..shown("post", "anything")
            }
        };
        assert!(proves(&raw(&["# T\n\n* a"])));
        assert!(!proves(&raw(&["# T"])) && !proves(&raw(&["# T\n\n* a", "more"])));
    }
}
