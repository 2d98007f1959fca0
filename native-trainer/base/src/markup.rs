//! HTML that akin writes: texts of users as text, and parts that share the style of a report.

/// A text as content of SVG and HTML, or as an attribute in double quotes. A character that XML does not allow, such as a
/// control character, becomes a replacement character.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            '\n' | '\t' => escaped.push(' '),
            c if c.is_control() || ['\u{fffe}', '\u{ffff}'].contains(&c) => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// The start of a part that is moved sideways where it is too wide, also by keyboard.
pub fn scroll(name: &str) -> String {
    format!("<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{}\">", escape(name))
}
