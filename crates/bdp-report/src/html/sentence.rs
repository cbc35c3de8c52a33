//! Sentences from the wording of findings.

/// Adds a leading capital, except for system names such as `tcp_rmem`, and a full stop.
pub(super) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let named = text.split(' ').next().is_some_and(|word| word.contains(['_', '.']));
    let first = letters.next().map(|c| if named { c.to_string() } else { c.to_uppercase().collect() });
    format!("{}{}{}", first.unwrap_or_default(), letters.as_str(), stop(text))
}

/// Returns the full stop if the text lacks one.
pub(super) fn stop(text: &str) -> &'static str {
    if text.ends_with(['.', '!', '?']) { "" } else { "." }
}

pub(super) fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
}
