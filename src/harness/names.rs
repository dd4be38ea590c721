//! Names that a user gives, and what to say of one that does not exist.

/// How alike two names are, from 0 to 1, for one to be taken for a slip of the other.
const LEAST_LIKENESS: f64 = 0.8;

/// The name that was probably meant, as it stands in a sentence: `, perhaps log_normal`; nothing
/// where none is near.
pub(super) fn perhaps<'a>(text: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let likeness = |name: &str| strsim::jaro_winkler(text, name);
    let nearest = names.into_iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    let nearest = nearest.filter(|name| likeness(name) > LEAST_LIKENESS);
    nearest.map_or_else(String::new, |name| format!(", perhaps {name}"))
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
        assert_eq!(perhaps("lognormal", names), ", perhaps log_normal");
        assert_eq!(perhaps("unifrom", names), ", perhaps uniform");
        assert_eq!(perhaps("zipf", names), "");
        assert_eq!(perhaps("", []), "");
        assert_eq!(list(names), "log_normal, power_law, uniform");
    }
}
