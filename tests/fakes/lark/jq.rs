//! As much of the language of `--jq` as is used: paths, `select`, `//`, `tonumber`, objects. Only the first output of a program counts,
//! as the real program has it.

use serde_json::{Map, Value, json};

/// The first output for an event; none when a `select` left nothing, an error when the program fails on it.
pub(crate) fn first(program: &str, event: &Value) -> Result<Option<Value>, ()> {
    let mut value = event.clone();
    for stage in split(program, "|") {
        // Of several outputs the first is taken.
        let stage = split(stage, ",").into_iter().next().unwrap_or_default();
        match stage
            .strip_prefix("select(")
            .and_then(|rest| rest.strip_suffix(')'))
        {
            Some(condition) if holds(condition, &value)? => {}
            Some(_) => return Ok(None),
            None => value = evaluated(stage, &value)?,
        }
    }
    Ok(Some(value))
}

fn holds(condition: &str, value: &Value) -> Result<bool, ()> {
    for one in split(condition, " or ") {
        let (left, right) = one.split_once("==").ok_or(())?;
        if evaluated(left.trim(), value)? == evaluated(right.trim(), value)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn evaluated(text: &str, value: &Value) -> Result<Value, ()> {
    if let Some(fields) = text
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
    {
        let mut object = Map::new();
        for field in split(fields, ",") {
            match split(field, ":")[..] {
                [name, expression] => object.insert(
                    name.trim_matches('"').to_owned(),
                    evaluated(expression, value)?,
                ),
                _ => object.insert(field.to_owned(), value[field].clone()),
            };
        }
        object.sort_keys();
        return Ok(Value::Object(object));
    }
    if let Some(inner) = text
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'))
    {
        return evaluated(inner, value);
    }
    let alternatives = split(text, "//");
    if alternatives.len() > 1 {
        let mut found = Value::Null;
        for alternative in alternatives {
            found = evaluated(alternative, value)?;
            if !found.is_null() && found != json!(false) {
                break;
            }
        }
        return Ok(found);
    }
    match text {
        "tonumber" => match value {
            Value::Number(_) => Ok(value.clone()),
            Value::String(digits) => digits
                .trim()
                .parse::<i64>()
                .map(Value::from)
                .map_err(|_| ()),
            _ => Err(()),
        },
        path if path.starts_with('.') => {
            let names = path.split('.').filter(|name| !name.is_empty());
            Ok(names.fold(value.clone(), |value, name| value[name].clone()))
        }
        literal => serde_json::from_str(literal).map_err(|_| ()),
    }
}

/// Splits where no bracket and no text is open.
fn split<'a>(text: &'a str, at: &str) -> Vec<&'a str> {
    let (mut parts, mut start, mut depth, mut in_text) = (Vec::new(), 0, 0_usize, false);
    let mut skip = 0;
    for (index, sign) in text.char_indices() {
        match sign {
            '"' => in_text = !in_text,
            '(' | '{' | '[' if !in_text => depth += 1,
            ')' | '}' | ']' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && !in_text && index >= skip && text[index..].starts_with(at) {
            parts.push(text[start..index].trim());
            start = index + at.len();
            skip = start;
        }
    }
    parts.push(text[start..].trim());
    parts
}
