//! A second provider fits: messages, posts, marks, notifications, history and a live stream run through the flows on lists in memory.
//!
//! Nothing of the real provider is touched: the flows see ports alone. What a post is and how its words come back is proved here too,
//! since posts are sent by callers inside the program and by no command (`docs/spec/lark-inbox.md` 6.1).

mod memory;
mod stream;

use std::path::{Path, PathBuf};

use loopx::contract::channel::body::ContentFormat;
use loopx::contract::channel::mention::MentionId;
use loopx::contract::extension::{CHAT_EXTENSION, Manifest};
use loopx::contract::inbox::guidance::MessagePurpose;
use loopx::contract::time::Timestamp;
use loopx::flow::Mode;
use loopx::flow::extension::{self, Operation};
use loopx::flow::inbox::catch_up::{self, CatchUpRequest};
use loopx::flow::inbox::context::{ContextArgs, Desk};
use loopx::flow::inbox::notify;
use loopx::flow::inbox::outbound::{self, Depth, Request};
use loopx::flow::inbox::{drain, ingest, marks};
use loopx::flow::place::Place;
use loopx::port::placement::{ConfigPlacement, Placement, ProbeFailed};
use serde_json::{Value, json};

use crate::support::Sandbox;
use memory::{Memory, Slip, message};

/// The instant of every command here.
const NOW: &str = "2026-09-18T09:00:00Z";

struct NoWorkTree;

impl ConfigPlacement for NoWorkTree {
    fn look(&self, _: &Path) -> Result<Placement, ProbeFailed> {
        Ok(Placement::NoWorkTree)
    }
}

/// A project with one inbox, a collector of it, and a provider in memory.
struct Bench {
    sandbox: Sandbox,
    place: Place,
    provider: Memory,
}

impl Bench {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        let registry = sandbox.project().join(".loopx/registry.json");
        let runtime = sandbox.root().join("runtime");
        let place = Place::locate(Some(&registry), Some(&runtime)).expect("places");
        let manifest = Manifest::bundled(CHAT_EXTENSION).expect("bundled");
        let record = extension::record(&place, None);
        let install = Operation::Install(manifest);
        extension::run(&record, &install, Mode::Execute, NOW).expect("installed");
        let inbox = json!({"schema_version": "lark_event_inbox_config_v0", "enabled": true, "inbox_dir": ".loopx/inbox/one",
            "capture_scope": "configured_chat_all",
            "reply": {"enabled": true, "sender_profile": "memory", "sender_identity": "bot", "bot_display_name": "Memory",
                "bot_app_id": memory::APP, "chat_id": "oc_memory", "received_reaction_emoji": "Get", "processing_reaction_emoji": "OnIt",
                "reader_profile": "person"}});
        sandbox.file(".loopx/config/one.json", inbox.to_string());
        let collector = json!({"schema_version": "lark_event_collector_config_v1", "enabled": true, "profile": "memory", "supervisor": "systemd",
            "routes": [{"route_key": "alpha", "chat_id": "oc_memory", "event_inbox_config": ".loopx/config/one.json"}]});
        sandbox.file(".loopx/config/collector.json", collector.to_string());
        Self {
            sandbox,
            place,
            provider: Memory::default(),
        }
    }

    fn desk(&self) -> Desk<'_> {
        Desk {
            place: &self.place,
            placement: &NoWorkTree,
            now: Timestamp::parse(NOW).expect("an instant"),
        }
    }

    fn context(&self, config: &str) -> ContextArgs {
        ContextArgs {
            project: Some(self.sandbox.project()),
            config: Some(PathBuf::from(config)),
            ..ContextArgs::default()
        }
    }

    fn send(&self, text: &str, format: ContentFormat) -> Value {
        let context = self.context(".loopx/config/one.json");
        let request = request(&context, text, format);
        let (packet, _) =
            outbound::send(&self.desk(), &self.provider, &request, None).expect("a packet");
        json!(packet)
    }

    fn reply(&self, text: &str, format: ContentFormat) -> Value {
        let context = self.context(".loopx/config/one.json");
        let request = request(&context, text, format);
        let (packet, _) =
            outbound::reply(&self.desk(), &self.provider, &request, "om_1").expect("a packet");
        json!(packet)
    }

    /// Stores one message of a person.
    fn with_message(self) -> Self {
        self.provider
            .world()
            .messages
            .push(message("om_1", "please look", ("user", "ou_ann")));
        let event = json!([{"schema_version": "lark_event_inbox_event_v0", "message_id": "om_1", "create_time": "1789722000000",
            "content": "please look", "sender_type": "user", "sender_id": "ou_ann", "mentions": []}]);
        let context = self.context(".loopx/config/one.json");
        ingest::run(
            &self.desk(),
            &context,
            event.to_string().as_bytes(),
            Mode::Execute,
        )
        .expect("stored");
        self
    }

    fn count(&self, what: &str) -> usize {
        let world = self.provider.world();
        world.asked.iter().filter(|asked| **asked == what).count()
    }
}

fn request<'a>(context: &'a ContextArgs, text: &'a str, format: ContentFormat) -> Request<'a> {
    Request {
        context,
        text,
        format,
        depth: Depth::Execute,
        purpose: MessagePurpose::Unspecified,
        reviewed: None,
    }
}

#[test]
fn a_message_with_a_mention_is_sent_and_a_lost_answer_joined() {
    let bench = Bench::new();
    bench.provider.world().members = vec![MentionId::new("ou_bob")];
    bench.provider.world().slip = Some(Slip::LoseAnswer);
    let text = "<at open_id=\"ou_bob\">Bob</at> please look";
    let lost = bench.send(text, ContentFormat::Text);
    assert_eq!(lost["external_write_outcome"], "unknown", "{lost}");
    let again = bench.send(text, ContentFormat::Text);
    assert_eq!(again["status"], "sent_verified", "{again}");
    assert_eq!(bench.provider.world().messages.len(), 1);
    let order = bench.provider.world().asked.clone();
    assert_eq!(
        order[4..],
        ["verify", "members", "preview", "send", "read_back"]
    );
}

#[test]
fn a_post_is_sent_as_one_and_read_back_as_one() {
    let bench = Bench::new().with_message();
    let packet = bench.reply("# Title\n\n* one\n* two", ContentFormat::Markdown);
    assert_eq!(packet["status"], "sent_verified", "{packet}");
    assert_eq!(packet["content_format"], "markdown");
    assert_eq!(packet["format_fallback"], Value::Null);
    assert_eq!(bench.provider.world().messages[1].message_type, "post");
}

#[test]
fn a_plain_text_of_the_same_look_proves_no_post() {
    let bench = Bench::new().with_message();
    bench.provider.world().slip = Some(Slip::FlattenPost);
    let packet = bench.reply("# Title", ContentFormat::Markdown);
    assert_eq!(
        (&packet["status"], &packet["blocker"]),
        (
            &json!("sent_unverified"),
            &json!("lark_inbox_reply_not_verified")
        )
    );
}

#[test]
fn what_no_post_can_hold_goes_as_text_and_says_so() {
    let bench = Bench::new().with_message();
    bench.provider.world().members = vec![MentionId::new("ou_bob")];
    let long = bench.reply(&"word ".repeat(6001), ContentFormat::Markdown);
    assert_eq!(long["status"], "sent_verified", "{long}");
    assert_eq!(
        (&long["content_format"], &long["format_fallback"]),
        (&json!("text"), &json!("post_size_limit"))
    );
    let named = bench.reply(
        "**hi** <at open_id=\"ou_bob\">Bob</at>",
        ContentFormat::Markdown,
    );
    assert_eq!(named["status"], "sent_verified", "{named}");
    assert_eq!(named["format_fallback"], "structured_mentions");
}

#[test]
fn the_same_words_as_text_and_as_a_post_are_two_messages() {
    let bench = Bench::new().with_message();
    let text = bench.reply("same words", ContentFormat::Text);
    let post = bench.reply("same words", ContentFormat::Markdown);
    assert_ne!(text["idempotency_key"], post["idempotency_key"]);
    assert_eq!(bench.count("send"), 2);
}

#[test]
fn marks_follow_the_work() {
    let bench = Bench::new().with_message();
    let context = bench.context(".loopx/config/one.json");
    let marks_now = || {
        let world = bench.provider.world();
        world.marks.get("om_1").map_or(0, Vec::len)
    };
    let subject = (&context, "om_1");
    marks::processing(&bench.desk(), &bench.provider, subject, Mode::Execute).expect("a packet");
    assert_eq!(marks_now(), 1);
    marks::complete(&bench.desk(), &bench.provider, subject, Mode::Execute).expect("a packet");
    assert_eq!(marks_now(), 0);
}

#[test]
fn history_comes_page_by_page_and_is_stored_once() {
    let bench = Bench::new();
    for index in 0..5 {
        let id = format!("om_h{index}");
        let words = format!("words {index}");
        let row = message(&id, &words, ("user", "ou_ann"));
        bench.provider.world().messages.push(row);
    }
    let context = bench.context(".loopx/config/collector.json");
    let request = CatchUpRequest {
        context: &context,
        route_key: "alpha",
        start: "2026-09-01T00:00:00Z",
        page_size: 2,
        mode: Mode::Execute,
    };
    let page = || {
        let (packet, _) = catch_up::run(
            &bench.desk(),
            (&bench.provider, &loopx::flow::inbox::progress::Silent),
            &request,
        )
        .expect("a packet");
        (packet["status"].clone(), packet["accepted_count"].clone())
    };
    assert_eq!(page(), (json!("page_captured"), json!(2)));
    assert_eq!(page(), (json!("page_captured"), json!(2)));
    assert_eq!(page(), (json!("history_complete"), json!(1)));
    let (drained, _) = drain::run(&bench.desk(), &context, 20).expect("a packet");
    assert_eq!(drained["pending_count"], 5);
}

#[test]
fn a_hundred_thousand_messages_are_caught_up_at_one_pace() {
    const PAGES: usize = 20;
    const SIZE: usize = 5_000;
    let bench = Bench::new();
    bench.provider.world().messages = (0..PAGES * SIZE)
        .map(|index| message(&format!("om_h{index}"), "words", ("user", "ou_ann")))
        .collect();
    let context = bench.context(".loopx/config/collector.json");
    let request = CatchUpRequest {
        context: &context,
        route_key: "alpha",
        start: "2026-09-01T00:00:00Z",
        page_size: u32::try_from(SIZE).expect("small"),
        mode: Mode::Execute,
    };
    let mut times = Vec::with_capacity(PAGES);
    for page in 1..=PAGES {
        let before = std::time::Instant::now();
        let silent = loopx::flow::inbox::progress::Silent;
        let (packet, _) =
            catch_up::run(&bench.desk(), (&bench.provider, &silent), &request).expect("a packet");
        times.push(before.elapsed());
        assert_eq!(packet["accepted_count"], SIZE, "page {page}: {packet}");
        assert_eq!(packet["history_complete"], page == PAGES);
    }
    let (drained, _) = drain::run(&bench.desk(), &context, 20).expect("a packet");
    assert_eq!(drained["pending_count"], PAGES * SIZE);
    let median = |times: &[std::time::Duration]| {
        let mut times = times.to_vec();
        times.sort();
        times[times.len() / 2]
    };
    let (early, late) = (median(&times[1..PAGES / 2]), median(&times[PAGES / 2..]));
    assert!(
        late < early * 3,
        "a page takes {early:?} early and {late:?} late"
    );
}

#[test]
fn a_reviewer_is_notified_once() {
    let bench = Bench::new();
    bench.provider.world().members = vec![MentionId::new("ou_bob")];
    let context = bench.context(".loopx/config/one.json");
    let request = notify::Request {
        context: &context,
        route_key: None,
        text: "<at open_id=\"ou_bob\">Bob</at> please review",
        address: "https://git.example/pull/7",
        reader: None,
        depth: Depth::Execute,
    };
    let run = || {
        let (packet, _) = notify::run(&bench.desk(), &bench.provider, &request).expect("a packet");
        json!(packet)["status"].clone()
    };
    assert_eq!(
        (run(), run()),
        (json!("sent_verified"), json!("already_sent"))
    );
    assert_eq!(bench.count("send"), 1);
}
