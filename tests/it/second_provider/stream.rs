//! A live stream that is a list: typed events in, stored messages out. No line, no field name and no JSON of another provider is in it.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;

use loopx::contract::channel::ids::{
    ChatId, DocumentId, EventId, MessageId, Opaque, ProfileName, SenderId,
};
use loopx::contract::channel::outcome::ExternalWriteOutcome;
use loopx::contract::inbox::comment::{CommentCard, CommentConfig};
use loopx::contract::inbox::live_event::{Given, LiveEvent, LiveMessage};
use loopx::contract::inbox::stream::{ConsumerEnd, EndReason, EventKey, StreamCode};
use loopx::contract::time::Timestamp;
use loopx::flow::inbox::collector_run::{self, RunRequest};
use loopx::flow::inbox::drain;
use loopx::flow::inbox::ports::Providers;
use loopx::port::channel::{ProgramChoice, ProviderError, ProviderErrorKind};
use loopx::port::clock::Clock;
use loopx::port::comments::{CardPage, CommentRights, CommentSource, ReplyPage, RightsFault};
use loopx::port::events::{ConsumerId, ConsumerSpec, EventStreams, NotStarted, StreamSignal};
use loopx::port::tools::{ProgramAge, TooOld};
use serde_json::{Value, json};

use super::memory::{self, Memory, message};
use super::{Bench, NOW};

/// One consumer that says everything it knows and ends as planned.
struct Once {
    said: Vec<LiveEvent>,
    signals: VecDeque<StreamSignal>,
    elapsed: Duration,
}

impl ProgramAge for Once {
    fn outdated(&self) -> Option<TooOld> {
        None
    }
}

impl EventStreams for Once {
    fn start(&mut self, spec: &ConsumerSpec<'_>) -> Result<(ConsumerId, u32), NotStarted> {
        assert_eq!(spec.key, EventKey::Message);
        let id = ConsumerId(1);
        self.signals.push_back(StreamSignal::Ready(id));
        let said = self.said.drain(..);
        self.signals
            .extend(said.map(|event| StreamSignal::Event(id, event)));
        let end = ConsumerEnd {
            exit: Some(0),
            reason: Some(EndReason::Planned),
            refusal: StreamCode::StreamNotReady,
        };
        self.signals.push_back(StreamSignal::Ended(id, end));
        Ok((id, 0))
    }

    fn next(&mut self, within: Duration) -> Option<StreamSignal> {
        let next = self.signals.pop_front();
        if next.is_none() {
            self.elapsed += within;
        }
        next
    }

    fn terminate(&mut self, _: ConsumerId) {}

    fn kill(&mut self, _: ConsumerId) {}

    fn elapsed(&self) -> Duration {
        self.elapsed
    }

    fn spread(&self) -> u32 {
        0
    }

    fn registered(&self) -> Option<Vec<(EventKey, u32)>> {
        None
    }

    fn end_left(&self, _: u32) {}

    fn stop_bus(&self) {}

    fn probe_bus(&self) -> bool {
        true
    }
}

/// A provider without documents refuses each of their calls.
struct NoDocuments;

const REFUSED: ProviderError = ProviderError {
    kind: ProviderErrorKind::Rejected,
    effect: ExternalWriteOutcome::None,
    code: None,
    exit: None,
};

impl CommentSource for NoDocuments {
    fn is_supported(&self) -> bool {
        false
    }

    fn rights(&self) -> Result<CommentRights, RightsFault> {
        Err(RightsFault::Unknown)
    }

    fn cards(&self, _: &Opaque) -> Result<CardPage, ProviderError> {
        Err(REFUSED)
    }

    fn replies(&self, _: &CommentCard, _: Option<&Opaque>) -> Result<ReplyPage, ProviderError> {
        Err(REFUSED)
    }

    fn create(&self, _: &CommentCard, _: &str, _: &str) -> Result<DocumentId, ProviderError> {
        Err(REFUSED)
    }
}

impl Providers for Memory {
    fn streams(&self, _: Option<String>, _: ProfileName, _: PathBuf) -> Box<dyn EventStreams> {
        Box::new(Once {
            said: std::mem::take(&mut self.world().said),
            signals: VecDeque::new(),
            elapsed: Duration::ZERO,
        })
    }

    fn comments(&self, _: &CommentConfig) -> Box<dyn CommentSource> {
        Box::new(NoDocuments)
    }

    fn probe(&self, _: Option<String>, _: ProfileName, _: PathBuf) -> Result<bool, TooOld> {
        Ok(true)
    }

    fn locate(&self, _: &str) -> Option<ProgramChoice> {
        None
    }

    fn is_compatible(&self, _: &str, _: &ProfileName) -> Result<bool, TooOld> {
        Ok(true)
    }
}

struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::parse(NOW).expect("an instant")
    }
}

/// What somebody says, as the stream brings it.
fn said(id: &str, words: &str, (kind, sender): (&str, &str)) -> LiveMessage {
    LiveMessage {
        message: MessageId::new(id),
        event: Given::read(EventId::new(format!("ev-{id}"))),
        sent_at: "1789722000000".to_owned(),
        words: Given::Value(words.to_owned()),
        attachments: Given::Value(0),
        sender_kind: Some(kind.to_owned()),
        sender: Given::read(SenderId::new(sender)),
        ..LiveMessage::of(ChatId::new("oc_memory").expect("a chat"))
    }
}

fn live(message: LiveMessage) -> LiveEvent {
    LiveEvent::Message(Box::new(message))
}

fn collect(bench: &Bench) -> Value {
    let context = bench.context(".loopx/config/collector.json");
    let request = RunRequest {
        context: &context,
        continuous: false,
        clock: &Still,
    };
    let run = collector_run::run(&bench.desk(), &bench.provider, &request);
    run.expect("a run").0
}

#[test]
fn a_stream_of_another_provider_is_stored_once_and_its_replies_are_known() {
    let bench = Bench::new();
    let ann = ("user", "ou_ann");
    let own = ("app", memory::APP);
    {
        let mut world = bench.provider.world();
        world.messages.push(message("om_ours", "a question", own));
        world.messages.push(message("om_1", "an answer", ann));
        world.messages.push(message("om_2", "aside", ann));
        let answer = LiveMessage {
            parent: Given::read(MessageId::new("om_ours")),
            ..said("om_1", "an answer", ann)
        };
        let elsewhere = LiveMessage {
            chat: ChatId::new("oc_other").expect("a chat"),
            ..said("om_3", "of another chat", ann)
        };
        let odd = LiveMessage {
            attachments: Given::Malformed,
            ..said("om_4", "odd", ann)
        };
        world.said = vec![
            live(answer.clone()),
            live(said("om_2", "aside", ann)),
            live(answer),
            live(said("om_ours", "a question", own)),
            live(elsewhere),
            live(odd),
            LiveEvent::Other,
        ];
    }
    let run = collect(&bench);
    for (name, value) in [
        ("ok", json!(true)),
        ("captured_count", json!(2)),
        ("self_message_skipped_count", json!(1)),
        ("reply_to_bot_count", json!(1)),
        ("source_healthy", json!(true)),
    ] {
        assert_eq!(run[name], value, "{name} of {run}");
    }
    let context = bench.context(".loopx/config/one.json");
    let (shown, _) = drain::run(&bench.desk(), &context, 20).expect("shown");
    let items = shown["items"].as_array().cloned().unwrap_or_default();
    let words: Vec<&str> = items
        .iter()
        .filter_map(|item| item["content"].as_str())
        .collect();
    assert_eq!(words, ["an answer", "aside"]);
}
