//! Where the mentions of a shown message stand, and whose they are.
//!
//! A name is never evidence: it only finds the place of a mention whose identity the list proves, and only where it belongs to one
//! identity alone.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::contract::channel::mention::{MemberIdKind, MentionId};
use crate::contract::channel::observed::{Aliases, Observed};
use crate::contract::channel::outbound::{OutboundText, normalize};

/// One listed mention and the identity it proves.
pub(super) struct Matched<'a> {
    key: &'a str,
    pub(super) id: &'a MentionId,
    name: Option<&'a str>,
}

/// Matches every listed mention to one requested identity; none when one is foreign, ambiguous or nameless.
pub(super) fn matched<'a>(
    wanted: &'a BTreeMap<MentionId, MemberIdKind>,
    aliases: &'a Aliases,
    message: &'a Observed,
) -> Option<Vec<Matched<'a>>> {
    let mut by_key: BTreeMap<&str, &MentionId> = BTreeMap::new();
    let mut found = Vec::new();
    for mention in message.mentions.as_ref()?.as_array()? {
        let key = mention
            .get("key")
            .and_then(Value::as_str)
            .filter(|key| !key.is_empty())?;
        let ids = ids(mention);
        let aliased = ids
            .iter()
            .filter_map(|id| aliases.get(&MentionId::new(*id)).map(MentionId::as_str));
        let all: BTreeSet<&str> = ids.iter().copied().chain(aliased).collect();
        let mut requested = wanted.keys().filter(|id| all.contains(id.as_str()));
        let (Some(id), None) = (requested.next(), requested.next()) else {
            return None;
        };
        if by_key.insert(key, id).is_some_and(|known| known != id) {
            return None;
        }
        found.push(Matched {
            key,
            id,
            name: mention
                .get("name")
                .and_then(Value::as_str)
                .filter(|name| !name.is_empty()),
        });
    }
    Some(found)
}

const ID_NAMES: [&str; 5] = ["open_id", "user_id", "union_id", "app_id", "member_id"];

fn ids(mention: &Value) -> Vec<&str> {
    let direct = mention.get("id").and_then(Value::as_str);
    let inner = mention.get("id").filter(|id| id.is_object());
    let named = [Some(mention), inner]
        .into_iter()
        .flatten()
        .flat_map(|object| {
            ID_NAMES
                .iter()
                .filter_map(|name| object.get(*name).and_then(Value::as_str))
        });
    direct.into_iter().chain(named).collect()
}

/// Whether a shown name may find the place of a mention.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    MayPlace,
    Never,
}

/// Tells whether the mentions stand in `text` where they stand in what was sent.
pub(super) fn places(
    sent: &OutboundText,
    text: &str,
    mentions: &[Matched<'_>],
    names: Names,
) -> bool {
    let ids: Vec<&MentionId> = sent.mentions().keys().collect();
    let token = |id: &MentionId| {
        let index = ids
            .iter()
            .position(|known| *known == id)
            .unwrap_or(ids.len());
        format!("\u{1}{index}\u{2}")
    };
    let wanted = sent.tokenized(token);
    let mut shown = text.to_owned();
    let mut keys: Vec<&Matched<'_>> = mentions.iter().collect();
    keys.sort_by_key(|mention| std::cmp::Reverse(mention.key.len()));
    for mention in keys {
        shown = shown.replace(mention.key, &token(mention.id));
    }
    if names == Names::MayPlace {
        let mut named: Vec<&Matched<'_>> = mentions
            .iter()
            .filter(|mention| mention.name.is_some())
            .collect();
        named.sort_by_key(|mention| std::cmp::Reverse(mention.name.map_or(0, str::len)));
        for mention in named {
            let own = token(mention.id);
            let missing = wanted
                .matches(&own)
                .count()
                .saturating_sub(shown.matches(&own).count());
            let display = format!("@{}", mention.name.unwrap_or_default());
            let is_shared = mentions
                .iter()
                .any(|other| other.name == mention.name && other.id != mention.id);
            if missing == 0 {
                continue;
            }
            if is_shared || shown.matches(&display).count() != missing {
                return false;
            }
            shown = shown.replace(&display, &own);
        }
    }
    normalize(&shown) == normalize(&wanted)
}
