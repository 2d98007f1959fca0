//! Words for a command line that the user can copy.

use std::env;
use std::path::Path;

/// A word, quoted if a shell would not take it as it is.
pub fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=.,/:@+".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// A path as a word, relative to the current directory if it is inside it.
pub fn path(path: &Path) -> String {
    let here = env::current_dir().ok();
    let short = here.and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path);
    let short = if short.as_os_str().is_empty() { Path::new(".") } else { short };
    word(&short.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_only_if_needed() {
        assert_eq!(word("run.steps=1"), "run.steps=1");
        assert_eq!(word("it's 5"), r"'it'\''s 5'");
        assert_eq!(word(""), "''");
    }

    #[test]
    fn a_path_in_the_current_directory_is_relative() {
        let here = env::current_dir().unwrap();
        assert_eq!(path(&here.join("runs/a")), "runs/a");
        assert_eq!(path(&here), ".");
        assert_eq!(path(Path::new("/elsewhere/b c")), "'/elsewhere/b c'");
    }
}
