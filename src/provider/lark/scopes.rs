//! The scopes a new application should ask for at once, and the page where they are asked for (`docs/spec/lark-inbox.md` 13).

use crate::contract::extension_scopes::{ScopeAdvice, ScopeGroup};

/// What is recommended; the operator puts the application id where `<app_id>` stands.
pub(crate) fn recommended() -> ScopeAdvice {
    let names: Vec<&str> = GROUPS
        .iter()
        .flat_map(|group| group.scopes)
        .copied()
        .collect();
    ScopeAdvice {
        groups: &GROUPS,
        apply_url: Some(format!("{APPLY_PAGE}{}", names.join("%2C"))),
    }
}

const APPLY_PAGE: &str = "https://open.larkoffice.com/page/scope-apply?clientID=<app_id>&scopes=";

const GROUPS: [ScopeGroup; 3] = [
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
        let url = recommended().apply_url.expect("a page");
        let asked = url.split_once("&scopes=").expect("scopes").1;
        let asked: Vec<&str> = asked.split("%2C").collect();
        assert_eq!(
            (asked.len(), asked[0], asked[18]),
            (19, "im:message", "docs:document.comment:delete")
        );
        let unique: std::collections::BTreeSet<&str> = asked.iter().copied().collect();
        assert_eq!(unique.len(), asked.len());
    }
}
