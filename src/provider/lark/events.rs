//! The live stream: consumers as children, their two pipes read apart, their lines understood.
//!
//! The ready marker says that the local bus took the consumer, and nothing of the connection behind it. Standard error may hold
//! connection credentials: it is classified line by line and forgotten (`docs/spec/lark-cli.md` 6).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use serde_json::Value;

use super::call::{Deadline, Program};
use super::diagnostics::{Diagnostics, Said};
use super::oddity::Oddity;
use super::{click, live, version};
use crate::contract::channel::ids::{ChatId, ProfileName};
use crate::contract::inbox::live_event::LiveEvent;
use crate::contract::inbox::stream::EventKey;
use crate::contract::json;
use crate::port::channel::ProgramChoice;
use crate::port::events::{ConsumerId, ConsumerSpec, EventStreams, NotStarted, StreamSignal};
use crate::port::tools::{ProgramAge, TooOld};
use crate::process::{self, Stopwatch, StreamEvent, StreamItem, Streaming};

/// How long a left consumer may take to end.
const LEFT_GRACE: Duration = Duration::from_secs(10);

/// What the channel of the streams carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tag {
    Consumer(ConsumerId),
    Stop,
}

/// The consumers of one run.
pub(crate) struct LarkStreams {
    program: Option<Program>,
    profile: ProfileName,
    cwd: PathBuf,
    watch: Stopwatch,
    sink: Sender<StreamItem<Tag>>,
    items: Receiver<StreamItem<Tag>>,
    consumers: BTreeMap<ConsumerId, Consumer>,
    next_id: u32,
    oddity: Oddity,
}

struct Consumer {
    key: EventKey,
    child: Streaming,
    reader: Diagnostics,
}

impl LarkStreams {
    /// Prepares the streams of a profile; nothing is started. With `catches_stop` the signals that end this process become a message.
    pub(crate) fn new(choice: &ProgramChoice, profile: ProfileName, cwd: PathBuf) -> Self {
        let (sink, items) = mpsc::channel();
        Self {
            program: Program::find(choice),
            profile,
            cwd,
            watch: Stopwatch::start(),
            sink,
            items,
            consumers: BTreeMap::new(),
            next_id: 0,
            oddity: Oddity::default(),
        }
    }

    /// From now on a stop signal is a message of the streams.
    pub(crate) fn catch_stop(&self) {
        let sink = self.sink.clone();
        process::stop_signals(move || {
            let _ = sink.send(StreamItem {
                tag: Tag::Stop,
                what: StreamEvent::Out(Vec::new()),
            });
        });
    }

    fn understand(&mut self, item: StreamItem<Tag>) -> Option<StreamSignal> {
        let Tag::Consumer(id) = item.tag else {
            return Some(StreamSignal::Stop);
        };
        match item.what {
            StreamEvent::Out(line) => {
                let line = String::from_utf8_lossy(&line);
                let Ok(line) = json::parse_object(line.as_bytes()) else {
                    // An event that cannot be read is a hole; what begins otherwise is none.
                    let is_event = line.trim_start().starts_with('{');
                    return is_event.then_some(StreamSignal::Warning(id));
                };
                let event = match self.consumers.get(&id)?.key {
                    EventKey::Message => live::message(&line),
                    EventKey::Callback => click::click(&Value::Object(line))
                        .map_or(LiveEvent::Other, LiveEvent::Click),
                };
                Some(StreamSignal::Event(id, event))
            }
            StreamEvent::Err(line) => {
                let line = String::from_utf8_lossy(&line).into_owned();
                let said = self.consumers.get_mut(&id)?.reader.line(&line)?;
                Some(match said {
                    Said::Ready => StreamSignal::Ready(id),
                    Said::Source(state) => StreamSignal::Source(state),
                    Said::Warning => StreamSignal::Warning(id),
                })
            }
            StreamEvent::Ended(ending) => {
                let consumer = self.consumers.remove(&id)?;
                if consumer.reader.is_not_understood(ending) {
                    self.oddity.note(&self.profile);
                }
                Some(StreamSignal::Ended(id, consumer.reader.end(ending)))
            }
        }
    }

    fn bus(&self, words: &[&str]) -> Option<super::call::Answer> {
        let tail: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        self.program
            .as_ref()?
            .call(Some(&self.profile), &tail, Deadline::Usual)
            .ok()
    }
}

impl EventStreams for LarkStreams {
    fn start(&mut self, spec: &ConsumerSpec<'_>) -> Result<(ConsumerId, u32), NotStarted> {
        let program = self.program.as_ref().ok_or(NotStarted)?;
        let id = ConsumerId(self.next_id);
        self.next_id += 1;
        let invocation = program
            .invocation(Some(&self.profile), &argv(spec))
            .cwd(&self.cwd);
        let child = process::stream(&invocation, Tag::Consumer(id), self.sink.clone())
            .map_err(|_| NotStarted)?;
        let pid = child.pid();
        self.consumers.insert(
            id,
            Consumer {
                key: spec.key,
                child,
                reader: Diagnostics::default(),
            },
        );
        Ok((id, pid))
    }

    fn next(&mut self, within: Duration) -> Option<StreamSignal> {
        let end = self.watch.elapsed() + within;
        loop {
            let left = end.saturating_sub(self.watch.elapsed());
            let item = self.items.recv_timeout(left).ok()?;
            if let Some(signal) = self.understand(item) {
                return Some(signal);
            }
        }
    }

    fn terminate(&mut self, id: ConsumerId) {
        if let Some(consumer) = self.consumers.get(&id) {
            consumer.child.terminate();
        }
    }

    fn kill(&mut self, id: ConsumerId) {
        if let Some(consumer) = self.consumers.get(&id) {
            consumer.child.kill();
        }
    }

    fn elapsed(&self) -> Duration {
        self.watch.elapsed()
    }

    fn spread(&self) -> u32 {
        // Fresh per call and process: the low digits of the elapsed time, which nobody can predict and nothing depends on.
        self.watch.elapsed().subsec_nanos() / 17 % 1001
    }

    fn registered(&self) -> Option<Vec<(EventKey, u32)>> {
        let value = self.bus(&["event", "status", "--json"])?.bare().ok()?;
        Some(registered(&value))
    }

    fn end_left(&self, pid: u32) {
        if !process::terminate_pid(pid) {
            return;
        }
        let started = self.watch.elapsed();
        while process::pid_alive(pid) && self.watch.elapsed() - started < LEFT_GRACE {
            std::thread::sleep(Duration::from_millis(50));
        }
        if process::pid_alive(pid) {
            process::kill_pid(pid);
        }
    }

    fn stop_bus(&self) {
        let _ = self.bus(&["event", "stop", "--json"]);
    }

    fn probe_bus(&self) -> bool {
        let answer = self.bus(&["event", "status", "--json", "--fail-on-orphan"]);
        let shown = answer.map(super::call::Answer::success);
        shown.is_some_and(|shown| self.oddity.look(&self.profile, shown).is_ok())
    }
}

impl ProgramAge for LarkStreams {
    fn outdated(&self) -> Option<TooOld> {
        let profile = self.oddity.take()?;
        version::outdated(self.program.as_ref()?, &profile)
    }
}

fn registered(status: &Value) -> Vec<(EventKey, u32)> {
    let apps = status
        .get("apps")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let consumers = apps.flat_map(|app| {
        app.get("consumers")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    });
    consumers
        .filter_map(|consumer| {
            let key = consumer.get("event_key")?.as_str()?;
            let key = [EventKey::Message, EventKey::Callback]
                .into_iter()
                .find(|known| known.as_str() == key)?;
            Some((key, u32::try_from(consumer.get("pid")?.as_u64()?).ok()?))
        })
        .collect()
}

fn argv(spec: &ConsumerSpec<'_>) -> Vec<String> {
    let filter = chat_filter(spec.chats);
    let program = match spec.key {
        EventKey::Message => format!("select({filter}) | {PROJECTION}"),
        EventKey::Callback => format!("select({filter})"),
    };
    [
        "event",
        "consume",
        spec.key.as_str(),
        "--as",
        "bot",
        "--timeout",
        &spec.timeout,
        "--jq",
        &program,
    ]
    .iter()
    .map(|word| (*word).to_owned())
    .collect()
}

/// What is kept of a message on its way.
const PROJECTION: &str = "{schema_version:\"lark_event_inbox_event_v0\", event_id:(.event_id // .message_id // .id), \
message_id:(.message_id // .id), create_time, content, parent_id:(.parent_id // .reply_to), root_id, mentions, thread_id, \
attachment_count:(.attachment_count // 0), sender_type:(.sender_type // .sender.sender_type), \
sender_id:(.sender_id // .sender.id // .sender.sender_id), chat_id}";

fn chat_filter(chats: &[ChatId]) -> String {
    let tests: Vec<String> = chats
        .iter()
        .map(|chat| format!(".chat_id == {}", Value::from(chat.as_str())))
        .collect();
    tests.join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(line: &[u8]) -> Option<StreamSignal> {
        let profile = ProfileName::new("bot").expect("a name");
        let mut streams = LarkStreams::new(&ProgramChoice::default(), profile, PathBuf::new());
        let id = ConsumerId(0);
        let invocation = process::Invocation::new("/bin/true", [] as [&str; 0]);
        let child = process::stream(&invocation, Tag::Consumer(id), streams.sink.clone());
        let consumer = Consumer {
            key: EventKey::Message,
            child: child.expect("it starts"),
            reader: Diagnostics::default(),
        };
        streams.consumers.insert(id, consumer);
        streams.understand(StreamItem {
            tag: Tag::Consumer(id),
            what: StreamEvent::Out(line.to_vec()),
        })
    }

    #[test]
    fn a_line_with_a_broken_byte_is_an_event_and_one_that_cannot_be_read_is_a_hole() {
        let line = b"{\"message_id\":\"om_1\",\"chat_id\":\"oc_1\",\"content\":\"a\xffb\"}";
        let Some(StreamSignal::Event(_, LiveEvent::Message(message))) = heard(line) else {
            panic!("an event");
        };
        assert_eq!(
            message.words.value().map(String::as_str),
            Some("a\u{fffd}b")
        );
        for line in [
            &b"{\"content\":\"\\ud800\"}"[..],
            b"{\"a\":1,\"a\":2}",
            b"{cut",
        ] {
            assert!(matches!(heard(line), Some(StreamSignal::Warning(_))));
        }
        assert!(heard(b"a line of words").is_none());
    }

    #[test]
    fn the_filter_names_every_chat_in_order() {
        let chats = ["oc_a", "oc_b"].map(|chat| ChatId::new(chat).expect("id"));
        let spec = ConsumerSpec {
            key: EventKey::Callback,
            timeout: "30m".to_owned(),
            chats: &chats,
        };
        assert_eq!(
            argv(&spec).join(" "),
            "event consume card.action.trigger --as bot --timeout 30m --jq select(.chat_id == \"oc_a\" or .chat_id == \"oc_b\")"
        );
    }

    #[test]
    fn registered_consumers_are_read_with_their_keys() {
        let status = serde_json::json!({"apps": [{"app_id": "x", "consumers": [
            {"pid": 7, "event_key": "im.message.receive_v1"}, {"pid": 8, "event_key": "other"}]}]});
        assert_eq!(registered(&status), vec![(EventKey::Message, 7)]);
    }
}
