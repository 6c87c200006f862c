//! The comments of one document: pages of cards, pages of replies, one answer.

use std::time::Duration;

use serde_json::{Value, json};

use super::call::{Answer, Deadline, Program, not_started};
use super::failure::{first_object, unreadable};
use super::{argv, read, version};
use crate::contract::channel::ids::{DocumentId, Opaque};
use crate::contract::inbox::comment::{CommentCard, CommentConfig, CommentIdentity, ShownReply};
use crate::port::channel::{ProgramChoice, ProviderError};
use crate::port::comments::{
    CardPage, CommentRights, CommentSource, ReplyPage, RightsFault, ShownCard,
};
use crate::process::Ending;

const SCOPES: [&str; 2] = ["docs:document.comment:read", "docs:document.comment:create"];
/// The member of `extra` that carries our key.
const KEY_NAME: &str = "loopx_idempotency_key";

/// One configured document.
pub(crate) struct LarkComments {
    program: Option<Program>,
    config: CommentConfig,
}

impl LarkComments {
    pub(crate) fn new(choice: &ProgramChoice, config: CommentConfig) -> Self {
        Self {
            program: Program::find(choice),
            config,
        }
    }

    fn call(&self, tail: &[String]) -> Result<Answer, ProviderError> {
        let program = self.program.as_ref().ok_or_else(not_started)?;
        let deadline = Deadline::Of(Duration::from_secs(self.config.timeout_seconds));
        program.call(Some(&self.config.profile), tail, deadline)
    }

    fn identity(&self) -> &'static str {
        self.config.identity.as_str()
    }

    fn replies_path(card: &CommentCard) -> String {
        format!(
            "/open-apis/drive/v1/files/{}/comments/{}/replies",
            card.file_token.as_str(),
            card.comment_id.as_str()
        )
    }

    fn bot_rights(&self) -> Result<CommentRights, RightsFault> {
        let app = self.bare(&["whoami", "--as", "bot"])?;
        let app = read::app_id(&app).ok_or(RightsFault::Invalid)?;
        let path = format!(
            "/open-apis/application/v6/applications/{}/app_versions",
            app.as_str()
        );
        let params = json!({"lang": "zh_cn", "page_size": "2"}).to_string();
        let tail = [
            "api", "GET", &path, "--as", "bot", "--params", &params, "--json",
        ]
        .map(str::to_owned);
        let envelope = self
            .call(&tail)
            .and_then(Answer::envelope)
            .map_err(|_| RightsFault::Unknown)?;
        let newest = envelope["data"]["items"]
            .as_array()
            .and_then(|items| items.first())
            .ok_or(RightsFault::Invalid)?;
        let is_published = newest["status"].as_i64() == Some(1)
            && newest["publish_time"]
                .as_str()
                .is_some_and(|time| !time.is_empty() && time != "0");
        if !is_published {
            return Err(RightsFault::Unknown);
        }
        let scopes: Vec<&str> = newest["scopes"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(tenant_scope)
            .collect();
        Ok(rights(|scope| scopes.contains(&scope)))
    }

    fn user_rights(&self) -> Result<CommentRights, RightsFault> {
        let tail = ["auth", "check", "--scope", &SCOPES.join(" "), "--json"].map(str::to_owned);
        let answer = self.call(&tail).map_err(|_| RightsFault::Unknown)?;
        if !matches!(answer.ending, Ending::Exit(0 | 1)) {
            return Err(RightsFault::Unknown);
        }
        let value = first_object(&answer.stdout).ok_or(RightsFault::Invalid)?;
        let list = |name: &str| -> Vec<&str> {
            value[name]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect()
        };
        let (granted, missing) = (list("granted"), list("missing"));
        let mut named: Vec<&str> = granted.iter().chain(&missing).copied().collect();
        named.sort_unstable();
        let mut asked = SCOPES;
        asked.sort_unstable();
        match named == asked {
            true => Ok(rights(|scope| granted.contains(&scope))),
            false => Err(RightsFault::Invalid),
        }
    }

    fn bare(&self, words: &[&str]) -> Result<Value, RightsFault> {
        let tail: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        self.call(&tail)
            .and_then(Answer::bare)
            .map_err(|_| RightsFault::Unknown)
    }
}

fn rights(has: impl Fn(&str) -> bool) -> CommentRights {
    CommentRights {
        may_read: has(SCOPES[0]),
        may_create: has(SCOPES[1]),
    }
}

fn tenant_scope(entry: &Value) -> Option<&str> {
    let tokens = entry["token_types"].as_array()?;
    tokens
        .iter()
        .any(|token| token == "tenant")
        .then(|| entry["scope"].as_str())
        .flatten()
}

impl CommentSource for LarkComments {
    fn is_supported(&self) -> bool {
        self.program.as_ref().is_some_and(version::reaches_floor)
    }

    fn rights(&self) -> Result<CommentRights, RightsFault> {
        let status = self.bare(&["auth", "status", "--json"])?;
        // The identity that is meant decides, never the one at the top.
        if status["identities"][self.identity()]["available"] != json!(true) {
            return Err(RightsFault::IdentityMismatch);
        }
        match self.config.identity {
            CommentIdentity::Bot => self.bot_rights(),
            CommentIdentity::User => self.user_rights(),
        }
    }

    fn cards(&self, token: &Opaque) -> Result<CardPage, ProviderError> {
        let tail = argv::comment_cards(self.config.document.as_str(), self.identity(), token);
        let envelope = self.call(&tail)?.envelope()?;
        card_page(&envelope["data"], token)
    }

    fn replies(
        &self,
        card: &CommentCard,
        token: Option<&Opaque>,
    ) -> Result<ReplyPage, ProviderError> {
        let path = Self::replies_path(card);
        let mut params =
            json!({"file_type": card.file_type.as_str(), "page_size": self.config.page_size});
        if let Some(token) = token.filter(|token| !token.as_str().is_empty()) {
            params["page_token"] = json!(token.as_str());
        }
        let tail = argv::api_as(
            ("GET", &path),
            Some(params.to_string()),
            None,
            self.identity(),
        );
        let data = self.call(&tail)?.envelope()?;
        let data = &data["data"];
        Ok(ReplyPage {
            replies: shown_replies(list(&data["items"])?)?,
            next: next(data, token)?,
        })
    }

    fn create(
        &self,
        card: &CommentCard,
        text: &str,
        key: &str,
    ) -> Result<DocumentId, ProviderError> {
        let path = Self::replies_path(card);
        let params = json!({"file_type": card.file_type.as_str()}).to_string();
        let extra = json!({KEY_NAME: key}).to_string();
        let data = json!({"content": {"elements": [{"type": "text_run", "text_run": {"text": text}}]}, "extra": extra}).to_string();
        let tail = argv::api_as(("POST", &path), Some(params), Some(data), self.identity());
        let envelope = self.call(&tail)?.envelope()?;
        // Created, but under no id that can be asked for: nobody knows.
        created_reply(&envelope["data"], key).ok_or_else(unreadable)
    }
}

/// The id of a new reply: named alone, or that one of a list which carries our key. A single one without any key is ours too; of
/// several nobody can tell.
fn created_reply(data: &Value, key: &str) -> Option<DocumentId> {
    let id = |value: &Value| value["reply_id"].as_str().and_then(DocumentId::new);
    if let Some(found) = id(data).or_else(|| id(&data["reply"])) {
        return Some(found);
    }
    let listed = data["reply_list"]["replies"].as_array()?;
    let is_ours = |reply: &&Value| key_of(&reply["extra"]).as_deref() == Some(key);
    match (listed.iter().find(is_ours), listed.as_slice()) {
        (Some(ours), _) => id(ours),
        (None, [single]) if key_of(&single["extra"]).is_none() => id(single),
        (None, _) => None,
    }
}

fn list(value: &Value) -> Result<&[Value], ProviderError> {
    match value {
        Value::Null => Ok(&[]),
        Value::Array(items) => Ok(items),
        _ => Err(unreadable()),
    }
}

fn next(data: &Value, sent: Option<&Opaque>) -> Result<Option<Opaque>, ProviderError> {
    match data["has_more"].as_bool() {
        Some(false) => Ok(None),
        Some(true) => {
            let token = data["page_token"]
                .as_str()
                .filter(|token| !token.trim().is_empty())
                .map(Opaque::new);
            token
                .filter(|token| Some(token) != sent)
                .map(Some)
                .ok_or_else(unreadable)
        }
        None => Err(unreadable()),
    }
}

fn card_page(data: &Value, sent: &Opaque) -> Result<CardPage, ProviderError> {
    let id = |value: &Value| {
        value
            .as_str()
            .and_then(DocumentId::new)
            .ok_or_else(unreadable)
    };
    let mut cards = Vec::new();
    for item in list(&data["items"])? {
        let is_closed = item["is_solved"] == json!(true) || item["is_whole"] == json!(true);
        let card = CommentCard {
            comment_id: id(&item["comment_id"])?,
            file_token: id(&data["file_token"])?,
            file_type: id(&data["file_type"])?,
            can_reply: !is_closed,
        };
        let more = (item["has_more"] == json!(true))
            .then(|| Opaque::new(item["page_token"].as_str().unwrap_or("")));
        cards.push(ShownCard {
            card,
            replies: shown_replies(list(&item["reply_list"]["replies"])?)?,
            more,
        });
    }
    Ok(CardPage {
        cards,
        next: next(data, Some(sent))?,
    })
}

fn shown_replies(items: &[Value]) -> Result<Vec<ShownReply>, ProviderError> {
    items
        .iter()
        .map(|item| shown_reply(item).ok_or_else(unreadable))
        .collect()
}

fn shown_reply(item: &Value) -> Option<ShownReply> {
    let text: String = item["content"]["elements"]
        .as_array()
        .into_iter()
        .flatten()
        .map(element_text)
        .collect();
    let create_time = match &item["create_time"] {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        _ => String::new(),
    };
    Some(ShownReply {
        reply_id: DocumentId::new(item["reply_id"].as_str()?)?,
        text: Opaque::new(text),
        create_time,
        user_id: item["user_id"]
            .as_str()
            .filter(|id| !id.is_empty())
            .map(Opaque::new),
        key: key_of(&item["extra"]),
    })
}

fn element_text(element: &Value) -> &str {
    let text = element["text_run"]["text"]
        .as_str()
        .or_else(|| element["docs_link"]["url"].as_str());
    text.unwrap_or("")
}

/// Our key in the extra member, which is a text of JSON or an object.
fn key_of(extra: &Value) -> Option<String> {
    let parsed;
    let object = match extra {
        Value::String(text) => {
            parsed = serde_json::from_str::<Value>(text).ok()?;
            &parsed
        }
        other => other,
    };
    object[KEY_NAME].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(file: &str, comment: &str, reply: &str) -> Result<CardPage, ProviderError> {
        let shown = json!({"file_token": file, "file_type": "docx", "has_more": false, "page_token": "",
            "items": [{"comment_id": comment, "reply_list": {"replies": [{"reply_id": reply}]}}]});
        card_page(&shown, &Opaque::new(""))
    }

    #[test]
    fn a_new_reply_is_the_one_that_is_named_alone_or_carries_the_key() {
        let keyed = |id: &str, key: &str| json!({"reply_id": id, "extra": json!({KEY_NAME: key}).to_string()});
        let bare = |id: &str| json!({"reply_id": id, "extra": {"image_list": []}});
        let listed = |replies: Value| json!({"reply_list": {"replies": replies}});
        for (data, expected) in [
            (json!({"reply_id": "r1"}), Some("r1")),
            (json!({"reply": {"reply_id": "r1"}}), Some("r1")),
            (listed(json!([bare("r1")])), Some("r1")),
            (listed(json!([bare("r1"), keyed("r2", "k")])), Some("r2")),
            (
                listed(json!([keyed("r1", "x"), keyed("r2", "k")])),
                Some("r2"),
            ),
            (listed(json!([bare("r1"), bare("r2")])), None),
            (listed(json!([keyed("r1", "x")])), None),
            (listed(json!([])), None),
            (json!({}), None),
        ] {
            let found = created_reply(&data, "k");
            assert_eq!(found.as_ref().map(DocumentId::as_str), expected, "{data}");
        }
    }

    #[test]
    fn a_page_with_an_id_that_is_none_is_no_page() {
        assert!(page("doc", "c1", "r1").is_ok());
        for (file, comment, reply) in [
            ("../x", "c1", "r1"),
            ("doc", "c/1", "r1"),
            ("doc", "c1", "r 1"),
            ("doc", "", "r1"),
        ] {
            assert!(page(file, comment, reply).is_err());
        }
    }
}
