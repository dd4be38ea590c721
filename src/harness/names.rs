//! Names that a user gives, and what to say of one that does not exist.

/// The name that reads most like `text`.
pub(super) fn nearest<'a>(text: &str, names: impl IntoIterator<Item = &'a str>) -> &'a str {
    let likeness = |name: &str| strsim::jaro_winkler(text, name);
    let nearer = |a: &&str, b: &&str| likeness(a).total_cmp(&likeness(b));
    names.into_iter().max_by(nearer).unwrap_or_default()
}

/// The names as a sentence lists them.
pub(super) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_the_one_that_was_meant() {
        let names = ["log_normal", "power_law", "uniform"];
        assert_eq!(nearest("lognormal", names), "log_normal");
        assert_eq!(nearest("unifrom", names), "uniform");
        assert_eq!(nearest("", []), "");
        assert_eq!(list(names), "log_normal, power_law, uniform");
    }
}
