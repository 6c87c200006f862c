//! How the routes of a collector fit their inboxes, `docs/spec/lark-inbox.md` 3.2. A switched-off route is valid configuration and is only
//! held to uniqueness; the rest waits until it is enabled.

use crate::contract::channel::ids::ProfileName;
use crate::contract::inbox::collector::CollectorConfig;
use crate::contract::inbox::config::InboxConfig;
use crate::contract::inbox::fault::InboxFault;

/// Where the profile of a collector comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProfileSource {
    CollectorConfig,
    EventInboxReply,
}

/// The profile of a collector and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundProfile {
    pub profile: ProfileName,
    pub source: ProfileSource,
}

/// Checks the routes against their inboxes, in route order; `same_path` says whether two inboxes resolve to one place.
pub fn bind(
    config: &CollectorConfig,
    inboxes: &[InboxConfig],
    same_path: impl Fn(usize, usize) -> bool,
) -> Result<Option<BoundProfile>, InboxFault> {
    for later in 0..inboxes.len() {
        if (0..later).any(|earlier| same_path(earlier, later)) {
            return Err(InboxFault::ReconcilePath);
        }
    }
    let profile = profile(config, inboxes);
    if config.enabled {
        for (route, inbox) in config
            .routes
            .iter()
            .zip(inboxes)
            .filter(|(_, inbox)| inbox.enabled)
        {
            let rule = |holds: bool, sentence| {
                if holds {
                    Ok(())
                } else {
                    Err(InboxFault::CollectorRule(sentence))
                }
            };
            rule(
                inbox.capture_scope.is_thread_complete(),
                "every enabled route needs capture_scope configured_chat_all",
            )?;
            let bound = profile.as_ref().map(|bound| &bound.profile);
            rule(
                bound.is_some(),
                "a profile is required: its own, or one shared by all routes",
            )?;
            if let Some(reply) = &inbox.reply {
                rule(
                    Some(&reply.profile) == bound,
                    "the profile must equal the sender profile of every route",
                )?;
                rule(
                    reply.chat == route.chat,
                    "the chat of a route must equal the reply chat of its inbox",
                )?;
            }
            let reviews = config.turn_start_sync.is_none() || inbox.material_review.is_some();
            rule(
                reviews,
                "turn_start_sync needs material_review on every enabled route",
            )?;
        }
    }
    Ok(profile)
}

fn profile(config: &CollectorConfig, inboxes: &[InboxConfig]) -> Option<BoundProfile> {
    if let Some(profile) = &config.profile {
        return Some(BoundProfile {
            profile: profile.clone(),
            source: ProfileSource::CollectorConfig,
        });
    }
    let mut shared = inboxes
        .iter()
        .filter(|inbox| inbox.enabled)
        .map(|inbox| inbox.reply.as_ref().map(|reply| &reply.profile));
    let first = shared.next()??;
    shared
        .all(|other| other == Some(first))
        .then(|| BoundProfile {
            profile: first.clone(),
            source: ProfileSource::EventInboxReply,
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn collector(extra: Value) -> CollectorConfig {
        let mut value = json!({"schema_version": "lark_event_collector_config_v1", "enabled": true, "supervisor": "systemd", "routes": [
            {"route_key": "a", "chat_id": "oc_a", "event_inbox_config": "a"}, {"route_key": "b", "chat_id": "oc_b", "event_inbox_config": "b"}]});
        for (name, given) in extra.as_object().expect("object") {
            value[name] = given.clone();
        }
        CollectorConfig::parse(&value).expect("valid")
    }

    fn inbox(chat: &str, profile: &str, enabled: bool) -> InboxConfig {
        InboxConfig::parse(&json!({"schema_version": "lark_event_inbox_config_v0", "enabled": enabled, "inbox_dir": ".loopx/inbox/x",
            "capture_scope": "configured_chat_all", "reply": {"enabled": true, "sender_profile": profile, "sender_identity": "bot",
            "bot_display_name": "B", "chat_id": chat}}))
        .expect("valid")
    }

    fn bound(
        config: &CollectorConfig,
        inboxes: &[InboxConfig],
    ) -> Result<Option<ProfileSource>, InboxFault> {
        bind(config, inboxes, |_, _| false).map(|bound| bound.map(|bound| bound.source))
    }

    #[test]
    fn a_shared_sender_profile_is_inherited_and_an_explicit_one_wins() {
        let inboxes = [inbox("oc_a", "p", true), inbox("oc_b", "p", true)];
        assert_eq!(
            bound(&collector(json!({})), &inboxes),
            Ok(Some(ProfileSource::EventInboxReply))
        );
        assert_eq!(
            bound(&collector(json!({"profile": "p"})), &inboxes),
            Ok(Some(ProfileSource::CollectorConfig))
        );
        assert!(bound(&collector(json!({"profile": "q"})), &inboxes).is_err());
        assert!(
            bound(
                &collector(json!({})),
                &[inbox("oc_a", "p", true), inbox("oc_b", "q", true)]
            )
            .is_err()
        );
    }

    #[test]
    fn a_switched_off_route_waits_with_its_checks_but_not_with_its_path() {
        let inboxes = [inbox("oc_a", "p", true), inbox("oc_wrong", "q", false)];
        assert!(bound(&collector(json!({})), &inboxes).is_ok());
        assert_eq!(
            bind(&collector(json!({})), &inboxes, |_, _| true),
            Err(InboxFault::ReconcilePath)
        );
    }

    #[test]
    fn a_chat_that_differs_from_its_inbox_is_refused() {
        assert!(
            bound(
                &collector(json!({})),
                &[inbox("oc_b", "p", true), inbox("oc_b", "p", true)]
            )
            .is_err()
        );
    }
}
