//! What a new application of the chat provider should ask for at once: the recommended scopes and the page where they are applied
//! for (`docs/spec/lark-inbox.md` 13). A list is an aid to ask with; nothing here grants anything.

use serde::Serialize;

use super::extension::CHAT_EXTENSION;

/// Scopes that serve one purpose, in the order in which they are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ScopeGroup {
    /// The purpose.
    pub group: &'static str,
    /// An administrator has to approve them.
    pub sensitive: bool,
    /// The names at the provider.
    pub scopes: &'static [&'static str],
}

/// What is recommended for the application of an extension; empty for one that needs no application.
pub fn recommended(extension: &str) -> &'static [ScopeGroup] {
    match extension {
        CHAT_EXTENSION => &CHAT,
        _ => &[],
    }
}

/// The page that asks for all of them; the operator puts the application id where `<app_id>` stands.
pub fn apply_url(extension: &str) -> Option<String> {
    let groups = recommended(extension);
    let names: Vec<&str> = groups
        .iter()
        .flat_map(|group| group.scopes)
        .copied()
        .collect();
    (!names.is_empty()).then(|| format!("{APPLY_PAGE}{}", names.join("%2C")))
}

const APPLY_PAGE: &str = "https://open.larkoffice.com/page/scope-apply?clientID=<app_id>&scopes=";

const CHAT: [ScopeGroup; 3] = [
    ScopeGroup {
        group: "core",
        sensitive: false,
        scopes: &[
            "im:message",
            "im:chat:read",
            "im:chat:create",
            "im:chat:update",
            "im:chat.members:read",
            "im:chat.members:write_only",
            "contact:user.base:readonly",
            "contact:contact.base:readonly",
            "application:application:self_manage",
            "application:bot.basic_info:read",
        ],
    },
    ScopeGroup {
        group: "inbox",
        sensitive: true,
        scopes: &[
            "im:message:readonly",
            "im:message.group_msg",
            "im:message.group_msg.include_bot:read",
            "im:message.p2p_msg:readonly",
        ],
    },
    ScopeGroup {
        group: "interaction",
        sensitive: false,
        scopes: &[
            "cardkit:card:read",
            "cardkit:card:write",
            "docs:document.comment:read",
            "docs:document.comment:create",
            "docs:document.comment:delete",
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_asks_for_every_scope_once_in_the_order_of_the_groups() {
        let url = apply_url(CHAT_EXTENSION).expect("a page");
        let asked = url.split_once("&scopes=").expect("scopes").1;
        let asked: Vec<&str> = asked.split("%2C").collect();
        assert_eq!(
            (asked.len(), asked[0], asked[18]),
            (19, "im:message", "docs:document.comment:delete")
        );
        let unique: std::collections::BTreeSet<&str> = asked.iter().copied().collect();
        assert_eq!(unique.len(), asked.len());
    }

    #[test]
    fn an_extension_without_an_application_asks_for_nothing() {
        assert_eq!(
            (
                recommended("loopx-finance-execution").len(),
                apply_url("loopx-finance-execution")
            ),
            (0, None)
        );
    }
}
