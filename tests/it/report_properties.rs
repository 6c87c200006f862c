//! Any bytes and any change of a good request give a packet or a typed refusal, never a panic.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::golden::{FILES, cases};
use crate::support::Sandbox;
use loopx::contract::json as strict;
use loopx::flow::report_contract::ReportContract;

fn goldens() -> Vec<(ReportContract, Value)> {
    let cases = FILES.iter().flat_map(|file| cases(file));
    cases
        .filter(|case| !case["input"].is_null())
        .filter_map(|case| {
            let name = case["command"][1].as_str()?.to_owned();
            let contract = ReportContract::ALL
                .into_iter()
                .find(|one| one.name() == name)?;
            Some((contract, case["input"].clone()))
        })
        .collect()
}

fn odd_values() -> Vec<Value> {
    vec![
        Value::Null,
        json!(true),
        json!(-1),
        json!(1.5),
        json!(""),
        json!("\u{202e}\u{0}x"),
        json!("2026-02-30T00:00:00Z"),
        json!("9999-12-31T23:59:59Z"),
        json!("0001-01-01T00:00:00Z"),
        json!("x".repeat(1_001)),
        json!([]),
        json!([null]),
        json!({}),
        json!({"": {"": []}}),
        json!(u64::MAX),
    ]
}

/// Replaces, removes or doubles the member at the `steps`-th turn of a walk through a value.
fn change(value: &mut Value, steps: &[usize], with: &Value) {
    let Some((step, rest)) = steps.split_first() else {
        *value = with.clone();
        return;
    };
    match value {
        Value::Object(map) if !map.is_empty() => {
            let key = map
                .keys()
                .nth(step % map.len())
                .cloned()
                .unwrap_or_default();
            match (rest.is_empty(), step % 7) {
                (true, 0) => {
                    map.remove(&key);
                }
                _ => change(map.entry(key).or_insert(Value::Null), rest, with),
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let index = step % items.len();
            if rest.is_empty() && step % 5 == 0 {
                let copy = items[index].clone();
                items.push(copy);
            } else {
                change(&mut items[index], rest, with);
            }
        }
        _ => *value = with.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_changed_request_is_answered_or_refused(
        case in 0_usize..10_000,
        steps in proptest::collection::vec(0_usize..50, 0..7),
        odd in 0_usize..15,
    ) {
        thread_local! {
            static GOLDENS: Vec<(ReportContract, Value)> = goldens();
        }
        let (contract, mut request) = GOLDENS.with(|all| all[case % all.len()].clone());
        change(&mut request, &steps, &odd_values()[odd]);
        if let Ok(packet) = contract.answer(&request) {
            prop_assert!(packet["ok"].is_boolean());
            prop_assert_eq!(contract.answer(&request).ok(), Some(packet));
        }
    }

    #[test]
    fn any_object_is_answered_or_refused(text in "\\{(\"[a-z_]{1,12}\":(null|1|\"x\"|\\[\\]|\\{\\}),?){0,4}\\}") {
        if let Ok(value) = strict::parse(text.as_bytes()) {
            for contract in ReportContract::ALL {
                let _ = contract.answer(&value);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_bytes_on_standard_input_give_one_packet(bytes in proptest::collection::vec(any::<u8>(), 0..300), which in 0_usize..11) {
        let name = ReportContract::ALL[which].name();
        let flag = if name == "inspect-profile" { "--profile-json" } else { "--request-json" };
        let sandbox = Sandbox::new();
        let args = ["periodic-report", name, flag, "-", "--format", "json"];
        let finished = sandbox.loopx(args).stdin(&bytes).run();
        prop_assert_eq!(finished.code, Some(1));
        let packet = finished.json();
        prop_assert_eq!(&packet["ok"], &json!(false));
        prop_assert_eq!(&packet["command"], &json!(name));
        prop_assert!(packet["error_code"].is_string());
    }
}
