//! The readers against recorded answers of the program.

use serde_json::Value;

use super::call::Answer;
use super::{failure, read};
use crate::contract::channel::ids::{ChatId, MessageId, Opaque};
use crate::contract::channel::mention::MentionId;
use crate::contract::channel::observed::SentWords;
use crate::contract::channel::outcome::ExternalWriteOutcome as Outcome;
use crate::port::channel::ProviderErrorKind as Kind;
use crate::process::Ending;

fn recording(name: &str) -> Value {
    let path = format!("{}/fixtures/lark/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_slice(&std::fs::read(path).expect("the recording exists"))
        .expect("the recording is JSON")
}

fn answer(name: &str) -> Answer {
    let recorded = recording(name);
    let text = |part: &str| recorded[part].as_str().unwrap_or("").to_owned();
    Answer {
        ending: recorded["rc"].as_i64().map_or(Ending::Signal(9), |code| {
            Ending::Exit(i32::try_from(code).expect("small"))
        }),
        stdout: text("stdout"),
        stderr: text("stderr"),
    }
}

fn envelope(name: &str) -> Value {
    answer(name)
        .envelope()
        .unwrap_or_else(|error| panic!("{name}: {error:?}"))
}

#[test]
fn every_failure_says_what_a_write_may_have_done_and_what_it_means() {
    let cases = [
        ("error-230027", Outcome::None, Kind::GroupHistoryPermission),
        ("error-99991400", Outcome::None, Kind::RateLimited),
        ("error-230020", Outcome::None, Kind::RateLimited),
        ("error-page-429", Outcome::None, Kind::RateLimited),
        ("error-230001", Outcome::None, Kind::Rejected),
        ("error-230002", Outcome::None, Kind::NotInChat),
        ("error-232033", Outcome::None, Kind::NotInChat),
        ("error-10014", Outcome::None, Kind::Rejected),
        ("error-99991543", Outcome::None, Kind::Rejected),
        ("error-99991661", Outcome::None, Kind::AuthorizationMissing),
        ("error-99991663", Outcome::None, Kind::AuthorizationMissing),
        ("error-99991677", Outcome::None, Kind::AuthorizationMissing),
        ("error-99991662", Outcome::None, Kind::PermissionMissing),
        ("error-99991672", Outcome::None, Kind::PermissionMissing),
        ("error-99991676", Outcome::None, Kind::PermissionMissing),
        ("error-99991679", Outcome::None, Kind::PermissionMissing),
        ("error-wrong-secret", Outcome::None, Kind::Rejected),
        ("error-unknown-profile", Outcome::None, Kind::Rejected),
        ("error-unknown-command", Outcome::None, Kind::Rejected),
        ("error-unknown-flag", Outcome::None, Kind::Rejected),
        ("error-missing-flag", Outcome::None, Kind::Rejected),
        ("error-service-method", Outcome::None, Kind::Rejected),
        (
            "api-user-not-logged-in",
            Outcome::None,
            Kind::AuthorizationMissing,
        ),
        (
            "im-search-missing-scope",
            Outcome::None,
            Kind::PermissionMissing,
        ),
        ("error-7", Outcome::Unknown, Kind::Rejected),
        ("error-2200", Outcome::Unknown, Kind::Rejected),
        ("error-cut-after", Outcome::Unknown, Kind::Unavailable),
        ("error-cut-before", Outcome::Unknown, Kind::Unavailable),
        ("error-http-504", Outcome::Unknown, Kind::Unavailable),
        (
            "error-http-500-without-code",
            Outcome::Unknown,
            Kind::Unavailable,
        ),
        ("error-http-502-html", Outcome::Unknown, Kind::Failed),
        ("error-http-500-empty", Outcome::Unknown, Kind::Failed),
        ("error-http-200-empty", Outcome::Unknown, Kind::Failed),
        ("error-page-500", Outcome::Unknown, Kind::Unavailable),
        ("error-proxy-refuses", Outcome::Unknown, Kind::Unavailable),
        ("error-wrong-ca", Outcome::Unknown, Kind::Unavailable),
        ("error-token-503", Outcome::Unknown, Kind::Unavailable),
        ("error-token-429", Outcome::None, Kind::RateLimited),
        (
            "drive-comments-http-500-coded",
            Outcome::Unknown,
            Kind::Rejected,
        ),
        (
            "drive-comments-http-502-html",
            Outcome::Unknown,
            Kind::Unavailable,
        ),
        (
            "drive-comments-forbidden",
            Outcome::None,
            Kind::PermissionMissing,
        ),
        (
            "drive-comments-denied",
            Outcome::None,
            Kind::PermissionMissing,
        ),
        ("im-thread-none", Outcome::Unknown, Kind::NotFound),
        (
            "api-reaction-create-answer-lost",
            Outcome::Unknown,
            Kind::Unavailable,
        ),
    ];
    for (name, effect, kind) in cases {
        let error = answer(name).envelope().expect_err(name);
        assert_eq!(
            (error.effect, error.kind),
            (effect, kind),
            "{name}: {error:?}"
        );
    }
}

#[test]
fn an_exit_of_zero_without_the_expected_answer_is_no_success() {
    let name = "api-page-200";
    let error = answer(name).envelope().expect_err(name);
    assert_eq!(
        (error.effect, error.kind),
        (Outcome::Unknown, Kind::PayloadInvalid)
    );
    let accepted = envelope("im-send-accepted-without-data");
    assert_eq!(read::sent_message(&accepted), Err(failure::unreadable()));
}

#[test]
fn a_sent_message_and_a_new_mark_are_named() {
    for name in [
        "im-send",
        "im-send-repeated",
        "im-reply",
        "im-reply-in-thread",
        "im-send-mention",
    ] {
        assert!(read::sent_message(&envelope(name)).is_ok(), "{name}");
    }
    assert!(read::mark_id(&envelope("api-reaction-create")).is_ok());
}

#[test]
fn previews_show_the_text_that_would_go_out() {
    for name in ["im-send-dry-run", "im-reply-dry-run"] {
        let value = answer(name).bare().expect(name);
        assert_eq!(
            read::previewed(&value),
            [SentWords::Text("hello".to_owned())],
            "{name}"
        );
    }
}

#[test]
fn the_bot_of_a_profile_is_ready_only_when_it_was_verified() {
    let status = |name: &str| read::bot_status(&answer(name).bare().expect(name));
    let verified = status("auth-status-verified");
    assert!(
        verified.is_ready && verified.name.as_deref() == Some("Peer Bot") && verified.app.is_some()
    );
    for name in ["auth-status-verify-failed", "auth-status-wrong-secret"] {
        let failed = status(name);
        assert!(
            !failed.is_ready && failed.may_be_retried && failed.name.is_none(),
            "{name}"
        );
    }
    assert!(!status("auth-status-local").is_ready);
    assert!(status("auth-status-signed-in").is_ready);
    assert!(answer("auth-status-not-configured").bare().is_err());
}

#[test]
fn whoami_names_the_application() {
    let app = read::app_id(&answer("whoami-bot").bare().expect("bare"));
    assert_eq!(app.as_ref().map(|app| app.as_str()), Some("cli_peer0001"));
    assert!(answer("whoami-unknown-profile").bare().is_err());
}

#[test]
fn members_carry_their_pairs_and_say_whether_they_are_all() {
    let chat = ChatId::new("oc_peer").expect("id");
    let members = |name: &str| read::members(&envelope(name), &chat).expect(name);
    let all = members("im-members");
    assert!(all.is_complete && all.ids.contains(&MentionId::new("ou_ann")));
    assert_eq!(
        all.aliases().get(&MentionId::new("cli_other01")),
        Some(&MentionId::new("ou_otherbot"))
    );
    let other = ChatId::new("oc_other").expect("id");
    assert!(
        read::members(&envelope("im-members"), &other).is_err(),
        "the list of another chat"
    );
    assert!(members("im-members-two-pages").is_complete);
    for name in [
        "im-members-page-limit",
        "im-members-same-token",
        "im-members-truncated",
    ] {
        assert!(!members(name).is_complete, "{name}");
    }
}

#[test]
fn pages_of_history_end_only_where_the_provider_says_so() {
    let page = |name: &str| read::page(&envelope(name), None).expect(name);
    let first = page("im-history-first-page");
    assert!(!first.messages.is_empty() && first.next.is_some());
    assert!(page("im-history-last-page").next.is_none());
    assert!(page("im-history-empty").messages.is_empty());
    assert!(page("im-history-page-limit").next.is_some());
    for name in ["im-history-no-token", "im-history-same-token"] {
        assert!(answer(name).envelope().is_err(), "{name}");
    }
    let token = first.next.expect("a token");
    assert!(read::page(&envelope("im-history-first-page"), Some(&token)).is_err());
    assert!(
        read::page(
            &envelope("im-history-first-page"),
            Some(&Opaque::new("other"))
        )
        .is_ok()
    );
}

#[test]
fn threads_are_nested_and_say_when_they_are_cut() {
    let page = |name: &str| read::page(&envelope(name), None).expect(name);
    let cut = page("im-history-thread-cut");
    assert!(
        cut.messages[0].thread_is_cut
            && cut.messages[0]
                .replies
                .as_ref()
                .is_some_and(|replies| replies.len() == 50)
    );
    assert!(
        page("im-history-thread-error")
            .messages
            .iter()
            .any(|message| message.thread_is_cut)
    );
    assert!(
        page("im-history-thread")
            .messages
            .iter()
            .any(|message| message.replies.is_some() && !message.thread_is_cut)
    );
    assert!(page("im-thread-first-page").next.is_some());
    assert!(
        page("im-thread-last-page").next.is_none()
            && page("im-thread-by-message-id").next.is_none()
    );
}

#[test]
fn a_readback_finds_a_message_wherever_it_is_nested() {
    let id = MessageId::new("om_peer000003").expect("id");
    let read = read::read_back(&envelope("im-mget-thread-reply")).expect("read");
    let copies = read
        .iter()
        .filter(|message| message.message_id.as_ref() == Some(&id))
        .count();
    assert!(copies >= 1 && read.iter().all(|message| message.parent_id.is_none()));
    let plain = read::read_back(&envelope("im-mget-plain-reply")).expect("read");
    assert!(plain.iter().any(|message| message.parent_id.is_some()));
    assert!(
        read::read_back(&envelope("im-mget-missing"))
            .expect("read")
            .is_empty()
    );
    let mentions = read::read_back(&envelope("im-mget-mentions")).expect("read");
    assert_eq!(mentions[0].mention_count(), 2);
    assert!(read::read_back(&envelope("im-mget-deleted")).expect("read")[0].is_deleted);
}

#[test]
fn a_raw_message_names_what_it_answers() {
    let id = MessageId::new("om_peer000003").expect("id");
    let raw = read::raw_message(&envelope("api-message-get-thread-reply"), &id).expect("raw");
    assert_eq!(
        raw.parent_id.as_ref().map(|id| id.as_str()),
        Some("om_peer000001")
    );
    assert!(raw.root_id.is_some() && raw.thread.is_some() && raw.body.is_some());
    assert!(answer("api-message-get-missing").envelope().is_err());
}

#[test]
fn marks_are_paged() {
    let page = |name: &str| read::mark_page(&envelope(name), None).expect(name);
    let first = page("api-reactions-first-page");
    assert!(first.marks.len() == 2 && first.next.is_some());
    assert!(page("api-reactions-last-page").next.is_none());
    assert!(page("api-reactions-empty").marks.is_empty());
    assert!(
        answer("api-reaction-delete").envelope().is_ok()
            && answer("api-reaction-delete-missing").envelope().is_err()
    );
}

#[test]
fn a_search_is_a_page_of_messages_or_no_page() {
    let page = |name: &str| {
        let shown = answer(name)
            .envelope()
            .and_then(|shown| read::under("user", shown));
        shown.and_then(|shown| read::page(&shown, None))
    };
    assert_eq!(page("im-search").expect("a page").messages.len(), 1);
    assert!(page("im-search-none").expect("a page").messages.is_empty());
    let error = page("im-search-ids-only").expect_err("the messages could not be read");
    assert_eq!(error.kind, Kind::PayloadInvalid);
    let error = page("im-search-not-logged-in").expect_err("nobody is signed in");
    assert_eq!(error.kind, Kind::AuthorizationMissing);
}

#[test]
fn a_person_is_signed_in_where_the_status_says_so_twice() {
    let signed_in = |name: &str| read::is_user_ready(&answer(name).bare().expect(name));
    assert!(signed_in("auth-status-signed-in"));
    assert!(!signed_in("auth-status-verified"), "the bot alone");
    assert!(!signed_in("auth-status-local"), "nobody asked");
}

#[test]
fn an_answer_under_another_identity_is_none() {
    assert!(read::under("bot", envelope("im-members")).is_ok());
    assert!(read::under("user", envelope("im-members")).is_err());
}

#[test]
fn a_post_is_sent_as_recorded_and_shown_with_its_type() {
    let recorded = recording("im-send-post");
    let words: Vec<&str> = recorded["argv"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let content = words
        .iter()
        .position(|word| *word == "--content")
        .map(|at| words[at + 1]);
    let preview =
        serde_json::json!({"data": {"api": [{"body": {"msg_type": "post", "content": content}}]}});
    assert_eq!(
        read::previewed(&preview),
        [SentWords::Post("hello".to_owned())]
    );
    assert!(read::sent_message(&envelope("im-send-post")).is_ok());
    let shown = read::read_back(&envelope("im-mget-post")).expect("read");
    assert_eq!(shown[0].message_type, "post");
}

#[test]
fn an_ending_nobody_documents_says_nothing_about_a_write() {
    let refused = |exit: i32, error: &str| {
        let stderr = format!("{{\"ok\":false,\"error\":{error}}}");
        failure::ended(Ending::Exit(exit), "", &stderr).effect
    };
    let listed = "{\"type\":\"api\",\"subtype\":\"unknown\",\"code\":230001}";
    assert_eq!(refused(1, listed), Outcome::None);
    for exit in [4, 5, 7, 77, 124] {
        assert_eq!(refused(exit, listed), Outcome::Unknown, "{exit}");
    }
    let denied = "{\"type\":\"authorization\",\"subtype\":\"user_unauthorized\",\"code\":230027}";
    assert_eq!(refused(3, denied), Outcome::None);
    assert_eq!(refused(5, denied), Outcome::Unknown);
    let zero = "{\"type\":\"api\",\"subtype\":\"rate_limit\",\"code\":0}";
    assert_eq!(refused(1, zero), Outcome::Unknown, "0 is no refusal");
}

#[test]
fn shown_times_are_instants_to_the_minute_second_or_millisecond() {
    let at = |time: &str| {
        let message = read::observed(&serde_json::json!({"create_time": time}));
        message.created.map(|instant| instant.unix_seconds())
    };
    assert_eq!(at("1970-01-01 00:02"), Some(120));
    assert_eq!(at("1970-01-01 00:02:59"), Some(179));
    assert_eq!(at("1767225101000"), Some(1_767_225_101));
    assert_eq!(at("yesterday"), None);
}
