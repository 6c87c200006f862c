//! Any bytes as a request of any pure report command: a packet or a typed refusal, never a panic.
//!
//! The first byte names the command, the rest is what stands on standard input.

#![no_main]

use libfuzzer_sys::fuzz_target;
use loopx::contract::json;
use loopx::contract::parse::Label;
use loopx::contract::periodic_report::projection::read_progress;
use loopx::flow::report_contract::ReportContract;

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else {
        return;
    };
    let Ok(value) = json::parse(rest) else {
        return;
    };
    let contract = ReportContract::ALL[usize::from(*first) % ReportContract::ALL.len()];
    if let Ok(packet) = contract.answer(&value) {
        assert!(packet["ok"].is_boolean());
        assert_eq!(contract.answer(&value).ok(), Some(packet));
    }
    // The same bytes as a facts file.
    let _ = read_progress(&Label::named("facts"), &value, Some("zh-CN"));
});
