//! A named chat with the identity that speaks there, shared by goals on one machine (`docs/spec/goal-channel.md` 3.3 and 8).

use serde_json::{Value, json};

use super::ids::{AppId, ChatId, OpenId, ProfileName};
use crate::contract::error::ContractError;
use crate::contract::text;

/// The schema of the store of targets.
pub const TARGETS_SCHEMA: &str = "loopx_goal_channel_provider_targets_v0";
/// The family of its later versions.
pub const TARGETS_FAMILY: &str = "loopx_goal_channel_provider_targets_v";
/// The provider of every target there is.
pub const PROVIDER: &str = "lark";
const USUAL_PROGRAM: &str = "lark-cli";

/// A target as it was asked for.
#[derive(Clone, Debug, Default)]
pub struct TargetRequest<'a> {
    pub name: &'a str,
    pub chat_id: &'a str,
    pub chat_name: Option<&'a str>,
    pub identity_mode: &'a str,
    pub sender_profile: Option<&'a str>,
    pub sender_identity: Option<&'a str>,
    pub app_id: &'a str,
    pub open_id: Option<&'a str>,
    pub display_name: Option<&'a str>,
    pub program: Option<&'a str>,
}

/// Builds the stored form; the checks come in the order of the contract.
pub fn build(request: &TargetRequest<'_>) -> Result<Value, ContractError> {
    let refuse = |at: &str, reason: &'static str| Err(ContractError::invalid(at, reason));
    if !is_name(request.name) {
        return refuse("name", "must be a lower-case name");
    }
    let Some(chat) = ChatId::new(request.chat_id) else {
        return refuse("chat_id", "must be a chat id");
    };
    let is_project = match request.identity_mode {
        "project_bot" => true,
        "local_user" => false,
        _ => return refuse("identity_mode", "must be local_user or project_bot"),
    };
    if request
        .sender_identity
        .is_some_and(|identity| identity != "bot")
    {
        return refuse("sender_identity", "must be bot");
    }
    let Some(app) = AppId::new(request.app_id) else {
        return refuse("bot_app_id", "must be an application id");
    };
    if request.open_id.is_some_and(|id| OpenId::new(id).is_none()) {
        return refuse("bot_open_id", "must be an open id");
    }
    let profile = request.sender_profile.unwrap_or("");
    if !profile.is_empty() && ProfileName::new(profile).is_none() {
        return refuse(
            "sender_profile",
            "must be a profile name and not the default one",
        );
    }
    let display = text::collapse(request.display_name.unwrap_or(""));
    if is_project && (profile.is_empty() || display.is_empty()) {
        return refuse("identity", "needs a sender profile and a bot display name");
    }
    let checked = Checked {
        chat: chat.as_str(),
        app: app.as_str(),
        profile,
        display: &display,
    };
    Ok(stored_form(request, &checked))
}

/// What the checks of [`build`] have read.
struct Checked<'a> {
    chat: &'a str,
    app: &'a str,
    profile: &'a str,
    display: &'a str,
}

fn stored_form(request: &TargetRequest<'_>, checked: &Checked<'_>) -> Value {
    let chat_name = text::cut(
        &text::collapse(request.chat_name.unwrap_or(request.name)),
        60,
    );
    let mut target = json!({
        "name": request.name,
        "provider": PROVIDER,
        "enabled": true,
        "channel": {"chat_id": checked.chat, "chat_name": chat_name},
        "identity": {
            "mode": request.identity_mode,
            "sender_profile": checked.profile,
            "sender_identity": "bot",
            "bot_app_id": checked.app,
            "bot_display_name": checked.display,
            "cli_bin": request.program.unwrap_or(USUAL_PROGRAM),
        },
    });
    if let Some(open_id) = request.open_id {
        target["identity"]["bot_open_id"] = json!(open_id);
    }
    target
}

fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=64).contains(&name.len())
        && name.bytes().next().is_some_and(is_plain)
        && name
            .bytes()
            .all(|byte| is_plain(byte) || matches!(byte, b'.' | b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> TargetRequest<'static> {
        TargetRequest {
            name: "team",
            chat_id: "oc_a",
            identity_mode: "project_bot",
            sender_profile: Some("bot"),
            app_id: "cli_a",
            display_name: Some("Relay"),
            ..TargetRequest::default()
        }
    }

    #[test]
    fn a_target_names_chat_and_identity() {
        let target = build(&request()).expect("valid");
        assert_eq!(
            (
                target["channel"]["chat_name"].as_str(),
                target["identity"]["cli_bin"].as_str()
            ),
            (Some("team"), Some("lark-cli"))
        );
    }

    #[test]
    fn each_fault_names_its_field() {
        let cases = [
            (
                TargetRequest {
                    name: "Team",
                    ..request()
                },
                "name",
            ),
            (
                TargetRequest {
                    chat_id: "x",
                    ..request()
                },
                "chat_id",
            ),
            (
                TargetRequest {
                    identity_mode: "x",
                    ..request()
                },
                "identity_mode",
            ),
            (
                TargetRequest {
                    sender_identity: Some("user"),
                    ..request()
                },
                "sender_identity",
            ),
            (
                TargetRequest {
                    app_id: "x",
                    ..request()
                },
                "bot_app_id",
            ),
            (
                TargetRequest {
                    sender_profile: None,
                    ..request()
                },
                "identity",
            ),
        ];
        for (request, at) in cases {
            assert_eq!(build(&request).expect_err("refused").at, at);
        }
    }
}
