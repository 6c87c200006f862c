//! The links of captured messages, with their lineage and without the words around them, `docs/spec/lark-inbox.md` 10.6.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::contract::channel::ids::RouteKey;
use crate::contract::digest;
use crate::contract::text;

const MAX_URL: usize = 2048;
const TRAILING: &str = ".,;:!?，。；：！？、)]}）】》」』";

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct LinkItem {
    evidence_ref: String,
    source_kind: &'static str,
    evidence_kind: &'static str,
    route_key: RouteKey,
    message_id: String,
    create_time: String,
    url: String,
}

/// The links of one page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LinkEvidence {
    schema_version: &'static str,
    route_key: RouteKey,
    item_count: usize,
    items: Vec<LinkItem>,
    owner_private_evidence_returned: bool,
    raw_message_content_returned: bool,
    sender_identity_returned: bool,
    provider_payload_returned: bool,
}

/// One message whose links are wanted.
#[derive(Clone, Copy, Debug)]
pub struct LinkSource<'a> {
    pub message_id: &'a str,
    pub create_time: &'a str,
    pub content: &'a str,
}

impl LinkEvidence {
    /// Collects the links of messages, in text order, each once a message.
    pub fn collect<'a>(
        route_key: &RouteKey,
        messages: impl IntoIterator<Item = LinkSource<'a>>,
    ) -> Self {
        let items: Vec<LinkItem> = messages
            .into_iter()
            .flat_map(|message| links_of(route_key, message))
            .collect();
        Self {
            schema_version: "lark_group_message_link_evidence_v0",
            route_key: route_key.clone(),
            item_count: items.len(),
            owner_private_evidence_returned: !items.is_empty(),
            items,
            raw_message_content_returned: false,
            sender_identity_returned: false,
            provider_payload_returned: false,
        }
    }
}

fn links_of(route_key: &RouteKey, message: LinkSource<'_>) -> Vec<LinkItem> {
    let mut seen = BTreeSet::new();
    urls(message.content)
        .into_iter()
        .filter(|url| seen.insert(url.clone()))
        .map(|url| LinkItem {
            evidence_ref: format!(
                "sha256:{}",
                digest::nul_joined(&[message.message_id, &url]).short(24)
            ),
            source_kind: "lark_group_message",
            evidence_kind: "link",
            route_key: route_key.clone(),
            message_id: message.message_id.to_owned(),
            create_time: message.create_time.to_owned(),
            url,
        })
        .collect()
}

fn urls(content: &str) -> Vec<String> {
    let lower = content.to_ascii_lowercase();
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = lower[from..].find("http").map(|at| at + from) {
        let rest = &lower[at..];
        let scheme = ["https://", "http://"]
            .into_iter()
            .find(|scheme| rest.starts_with(scheme));
        let Some(scheme) = scheme else {
            from = at + 4;
            continue;
        };
        let body = &content[at..];
        let end = body
            .find(|c: char| text::is_space(c) || "<>\"'".contains(c))
            .unwrap_or(body.len());
        from = at + end.max(scheme.len());
        let url = body[..end].trim_end_matches(|c: char| TRAILING.contains(c));
        found.extend(
            url.get(scheme.len()..)
                .and_then(|rest| normalized(scheme, rest)),
        );
    }
    found
}

fn normalized(scheme: &str, rest: &str) -> Option<String> {
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, tail) = rest.split_at(end);
    let is_host = !host.is_empty() && !host.starts_with(':') && !host.contains('@');
    let url = format!("{scheme}{}{tail}", host.to_lowercase());
    (is_host && !text::is_longer_than(&url, MAX_URL)).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_end_before_punctuation_and_have_a_lower_case_host() {
        let cases = [
            (
                "see HTTPS://Example.COM/Path?q=A.",
                vec!["https://example.com/Path?q=A"],
            ),
            ("（https://a.example/x）。", vec!["https://a.example/x"]),
            (
                "<http://a.example> \"https://b.example:8443/\"",
                vec!["http://a.example", "https://b.example:8443/"],
            ),
            (
                "https://user:pw@a.example/ http:// https:///x httpx",
                vec![],
            ),
        ];
        for (content, expected) in cases {
            assert_eq!(urls(content), expected, "{content}");
        }
        assert!(urls(&format!("https://a.example/{}", "x".repeat(2048))).is_empty());
    }

    #[test]
    fn a_link_counts_once_a_message() {
        let key = RouteKey::new("a").expect("key");
        let source = LinkSource {
            message_id: "om_1",
            create_time: "t",
            content: "https://a.example https://a.example",
        };
        let evidence = LinkEvidence::collect(
            &key,
            [
                source,
                LinkSource {
                    message_id: "om_2",
                    ..source
                },
            ],
        );
        assert_eq!(evidence.item_count, 2);
    }
}
