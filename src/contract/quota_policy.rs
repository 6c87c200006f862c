//! How much a goal may spend: its share of a rolling window of slots, with the numbers spelled as the operator wrote them
//! (docs/spec/kernel.md 6.2).

use serde_json::{Number, Value};

use super::parse::Label;
use super::registry_entry::{Parsed, invalid, object};

/// How much a goal may spend.
#[derive(Clone, Debug, PartialEq)]
pub struct QuotaPolicy {
    compute: (f64, Number),
    window_hours: (f64, Number),
    slot_minutes: (f64, Number),
    allowed_slots: Option<u64>,
}

impl QuotaPolicy {
    /// The policy of a goal that names none.
    pub fn standard() -> Self {
        let number =
            |float: f64, text: &str| (float, Number::from_string_unchecked(text.to_owned()));
        Self {
            compute: number(1.0, "1.0"),
            window_hours: number(24.0, "24"),
            slot_minutes: number(1.0, "1"),
            allowed_slots: None,
        }
    }

    /// Reads the policy of an entry; what it does not name is standard.
    pub fn parse(at: &Label, value: Option<&Value>) -> Parsed<Self> {
        let mut policy = Self::standard();
        let Some(value) = value.filter(|value| !value.is_null()) else {
            return Ok(policy);
        };
        let map = object(at, value)?;
        if let Some(found) = map.get("compute") {
            policy.compute = amount(&at.field("compute"), found, 0.0)?;
        }
        if let Some(found) = map.get("window_hours") {
            policy.window_hours = amount(&at.field("window_hours"), found, f64::MIN_POSITIVE)?;
        }
        if let Some(found) = map.get("slot_minutes") {
            policy.slot_minutes = amount(&at.field("slot_minutes"), found, f64::MIN_POSITIVE)?;
        }
        policy.allowed_slots = match map.get("allowed_slots") {
            None | Some(Value::Null) => None,
            Some(found) => Some(
                found
                    .as_u64()
                    .ok_or_else(|| invalid(at.field("allowed_slots"), "must be a whole number"))?,
            ),
        };
        Ok(policy)
    }

    /// The share of the window's slots.
    pub fn compute(&self) -> f64 {
        self.compute.0
    }

    /// The rolling window in microseconds.
    pub fn window_micros(&self) -> i64 {
        // Saturating: a window beyond the calendar counts every spend.
        (self.window_hours.0 * 3_600_000_000.0) as i64
    }

    /// How many slots the window holds; halves go to the even number.
    pub fn allowed_slots(&self) -> u64 {
        self.allowed_slots.unwrap_or_else(|| {
            let slots = self.window_hours.0 * 60.0 / self.slot_minutes.0 * self.compute.0;
            slots.round_ties_even() as u64
        })
    }

    /// The three configured numbers with their own spelling.
    pub fn numbers(&self) -> [(&'static str, Value); 3] {
        [
            ("compute", Value::Number(self.compute.1.clone())),
            ("window_hours", Value::Number(self.window_hours.1.clone())),
            ("slot_minutes", Value::Number(self.slot_minutes.1.clone())),
        ]
    }
}

/// Reads a finite amount of at least `least`, keeping its spelling.
pub fn amount(at: &Label, value: &Value, least: f64) -> Parsed<(f64, Number)> {
    let number = value
        .as_number()
        .ok_or_else(|| invalid(at, "must be a number"))?;
    match number.as_str().parse::<f64>() {
        Ok(float) if float.is_finite() && float >= least => Ok((float, number.clone())),
        _ => Err(invalid(at, "must be finite and not negative")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn policy(value: &Value) -> Parsed<QuotaPolicy> {
        QuotaPolicy::parse(&Label::named("quota"), Some(value))
    }

    #[test]
    fn slots_are_rounded_with_halves_to_even() {
        let slots = |compute: f64| {
            let value = json!({"compute": compute, "window_hours": 1, "slot_minutes": 12});
            policy(&value).map(|policy| policy.allowed_slots())
        };
        assert_eq!(slots(0.5), Ok(2));
        assert_eq!(slots(0.7), Ok(4));
        assert_eq!(slots(1.0), Ok(5));
    }

    #[test]
    fn a_number_that_bounds_nothing_is_refused() {
        for value in [
            json!({"compute": -1}),
            json!({"window_hours": 0}),
            json!({"slot_minutes": "1"}),
            json!({"allowed_slots": 1.5}),
            json!([]),
        ] {
            assert!(policy(&value).is_err(), "{value}");
        }
        assert_eq!(policy(&Value::Null), Ok(QuotaPolicy::standard()));
        let none = policy(&json!({"allowed_slots": 0}));
        assert_eq!(none.map(|policy| policy.allowed_slots()), Ok(0));
    }
}
