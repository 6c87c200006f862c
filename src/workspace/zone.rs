//! The name of the system's zone. Its rules are never read here.

/// Returns the IANA name the system is set to, none when it cannot be told.
pub fn system_name() -> Option<String> {
    iana_time_zone::get_timezone()
        .ok()
        .filter(|name| !name.is_empty())
}

/// Reads the value of the zone variable: a leading `:` is dropped; the system's own file says nothing.
pub fn of_variable(value: &str) -> Option<&str> {
    let name = value.strip_prefix(':').unwrap_or(value);
    let is_unset = name.is_empty() || name == "/etc/localtime";
    (!is_unset).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_may_have_a_colon_and_may_say_nothing() {
        assert_eq!(of_variable(":Europe/Paris"), Some("Europe/Paris"));
        assert_eq!(of_variable("UTC"), Some("UTC"));
        assert_eq!(of_variable(":/etc/localtime"), None);
        assert_eq!(of_variable(":"), None);
    }
}
