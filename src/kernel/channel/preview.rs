//! Is what the provider would send what is meant?

use crate::contract::channel::body::OutboundBody;
use crate::contract::channel::observed::SentWords;

/// Tells whether a preview shows what is meant: any of the calls for a text, the only one for a post.
pub fn is_previewed(body: &OutboundBody, shown: &[SentWords]) -> bool {
    match body {
        OutboundBody::Text(text) => shown
            .iter()
            .any(|call| matches!(call, SentWords::Text(shown) if shown == text.as_str())),
        OutboundBody::Post(post) => {
            matches!(shown, [SentWords::Post(shown)] if shown == post.as_str())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::channel::body::ContentFormat;
    use crate::contract::channel::outbound::LengthRule;

    fn body(raw: &str, format: ContentFormat) -> OutboundBody {
        OutboundBody::parse(raw, format, LengthRule::ChatRoot)
            .expect("valid")
            .0
    }

    #[test]
    fn a_preview_shows_the_text_in_any_call_and_the_post_in_the_only_one() {
        let text = body("hi", ContentFormat::Text);
        let post = body("hi", ContentFormat::Markdown);
        let (a_text, a_post) = (
            SentWords::Text("hi".to_owned()),
            SentWords::Post("hi".to_owned()),
        );
        assert!(is_previewed(&text, &[SentWords::Other, a_text.clone()]));
        assert!(is_previewed(&post, std::slice::from_ref(&a_post)));
        assert!(!is_previewed(&post, &[a_post.clone(), SentWords::Other]));
        assert!(!is_previewed(&post, &[a_text]) && !is_previewed(&text, &[a_post]));
    }
}
