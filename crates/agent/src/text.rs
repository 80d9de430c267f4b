//! Escapes untrusted text for terminals and logs.

use std::borrow::Cow;

/// Escapes the control characters of a text, except line breaks: a name can contain escape sequences that control a
/// terminal.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_harmful = |letter: char| letter.is_control() && letter != '\n';
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    // The escapes of JSON; four digits suffice, because all control characters are below U+00A0.
    let escape =
        |letter: char| if is_harmful(letter) { format!("\\u{:04x}", letter as u32) } else { letter.to_string() };
    Cow::Owned(text.chars().map(escape).collect())
}

/// Like [`printable`], on one line.
pub fn on_one_line(text: &str) -> String {
    printable(text).replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable("a b\nc"), "a b\nc");
        assert_eq!(printable("\u{1b}]0;x\u{7}\u{9b}2J\r"), "\\u001b]0;x\\u0007\\u009b2J\\u000d");
        assert_eq!(on_one_line("a\nb"), "a\\nb");
    }
}
