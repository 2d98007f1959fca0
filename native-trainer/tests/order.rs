//! No file of the trainer imports a file above it. The page in `src/main.rs` gives the order.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The source text of each module: `commands/eval` is `src/commands/eval.rs` or `src/commands/eval/mod.rs`.
type Sources = BTreeMap<String, String>;

/// The line of each module in the order, counted from the top.
type Order = BTreeMap<String, usize>;

#[test]
fn no_file_imports_one_above_it() {
    let sources = read_sources();
    let found = violations(&sources, &order(&sources["main"]));
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// So that a test can make every write fail, see `src/faults.rs`. The folder of build tools in `page/build` holds no results.
#[test]
fn only_one_module_writes() {
    let writes = [
        "fs::write",
        "fs::copy",
        "fs::rename",
        "fs::remove",
        "fs::create_dir",
        "File::create",
        "OpenOptions",
    ];
    for (module, text) in
        read_sources().iter().filter(|(module, _)| !["files", "faults", "page/build"].contains(&&***module))
    {
        // The tests of a module write as they like.
        let text = text.split("#[cfg(test)]").next().unwrap();
        let found = text.lines().map(code).find(|line| writes.iter().any(|write| line.contains(write)));
        assert!(found.is_none() || module.ends_with("tests") || module == "config_md", "{module}: {found:?}");
    }
}

#[test]
fn an_upward_import_is_found() {
    let order =
        order("//! ```text\n//! main\n//! cli\n//! data compare/plan\n//! data/csv\n//! problem\n//! ```\n");
    let check = |module: &str, text: &str| {
        let mut sources: Sources = order.keys().map(|name| (name.clone(), String::new())).collect();
        sources.insert(module.to_owned(), text.to_owned());
        violations(&sources, &order)
    };
    let nothing = Vec::<String>::new();
    assert_eq!(check("cli", "use crate::problem::problem;"), nothing);
    assert_eq!(check("problem", "// crate::cli"), nothing);
    assert_eq!(check("problem", "let path = \"crate::cli\";"), nothing);
    assert_eq!(check("data/csv", "use super::Dataset;"), nothing);
    assert_eq!(check("problem", "mod tests {\n    use super::*;\n}\n"), nothing);
    for (module, text, target) in [
        ("problem", "use crate::cli;", "cli"),
        ("problem", "use crate::{data::csv, problem};", "data/csv"),
        ("problem", "fn f() -> super::Thing {}", "main"),
        ("problem", "mod tests {\n    use super::super::cli::Cli;\n}\n", "cli"),
        ("data", "use crate::compare::plan::Plan;", "compare/plan"),
        ("data/csv", "use super::super::cli::Cli;", "cli"),
    ] {
        assert_eq!(check(module, text), [format!("{module} imports {target}, which is not below it")]);
    }
    assert_eq!(check("new", ""), ["new is not in the order in src/main.rs"]);
}

/// Every file of `src`.
fn read_sources() -> Sources {
    let mut sources = Sources::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let module = path.strip_prefix(&root).unwrap().with_extension("");
                let module = module.to_str().unwrap().replace('\\', "/");
                let module = module.strip_suffix("/mod").unwrap_or(&module);
                sources.insert(module.to_owned(), fs::read_to_string(&path).unwrap());
            }
        }
    }
    sources
}

/// The order in the page of `main`: a block of lines, from the top to the bottom.
fn order(main: &str) -> Order {
    let block = main.split("//! ```text\n").nth(1).expect("the page has a block of text");
    let lines = block.lines().map(|line| line.trim_start_matches("//!").trim());
    let lines = lines.take_while(|line| *line != "```").enumerate();
    lines
        .flat_map(|(line, names)| names.split_whitespace().map(move |name| (name.to_owned(), line)))
        .collect()
}

/// What contradicts the order, in words.
fn violations(sources: &Sources, order: &Order) -> Vec<String> {
    let missing = order.keys().filter(|name| !sources.contains_key(*name));
    let mut found: Vec<String> =
        missing.map(|name| format!("the order names {name}, which is no file")).collect();
    for (module, text) in sources {
        let Some(line) = order.get(module) else {
            found.push(format!("{module} is not in the order in src/main.rs"));
            continue;
        };
        for target in imports(module, text, sources) {
            // A file may use what the file of its own folder defines.
            let is_own_folder = module.strip_prefix(&target).is_some_and(|rest| rest.starts_with('/'));
            if target != *module && !is_own_folder && order.get(&target).is_none_or(|below| below <= line) {
                found.push(format!("{module} imports {target}, which is not below it"));
            }
        }
        // The paths of a folder's file into its folder need no `crate` or `super`.
        for part in order.iter().filter(|(name, _)| name.starts_with(&format!("{module}/"))) {
            if part.1 <= line {
                found.push(format!("{} is not below {module}", part.0));
            }
        }
    }
    found
}

/// The modules that a module names in paths that start with `crate` or `super`.
fn imports(module: &str, text: &str, sources: &Sources) -> Vec<String> {
    let mut targets = Vec::new();
    // rustfmt indents the closing brace of a module as its first line.
    let mut open_modules: Vec<(String, &str)> = Vec::new();
    let text: String = text.lines().map(|line| code(line) + "\n").collect();
    let mut start = 0;
    for line in text.lines() {
        let trimmed = line.trim_start();
        let indentation = &line[..line.len() - trimmed.len()];
        if open_modules.last().is_some_and(|(closing, _)| closing == line.trim_end()) {
            open_modules.pop();
        }
        if let Some(declaration) = trimmed.trim_end().strip_suffix(" {")
            && let Some((visibility, name)) = declaration.split_once("mod ")
            && (visibility.is_empty() || visibility.starts_with("pub"))
        {
            open_modules.push((format!("{indentation}}}"), name));
        }
        for root in ["crate::", "super::"] {
            for (place, _) in line.match_indices(root) {
                let before = line[..place].chars().next_back();
                if before.is_some_and(|c| c.is_alphanumeric() || "_:".contains(c)) {
                    continue;
                }
                let mut base: Vec<&str> = module.split('/').collect();
                base.extend(open_modules.iter().map(|(_, name)| name));
                for path in expand(&text[start + place..]) {
                    targets.push(resolve(&base, &path, sources));
                }
            }
        }
        start += line.len() + 1;
    }
    targets.sort();
    targets.dedup();
    targets
}

/// A line without its comment and without the texts in its quotes.
fn code(line: &str) -> String {
    let mut code = String::new();
    let mut in_text = false;
    for (place, character) in line.char_indices() {
        let escaped = line[..place].ends_with('\\');
        match character {
            '"' if !escaped => in_text = !in_text,
            '/' if !in_text && line[place..].starts_with("//") => break,
            _ if !in_text => code.push(character),
            _ => {}
        }
    }
    code
}

/// The paths that a text starts with: `a::{b, c::D}` stands for `a::b` and `a::c::D`.
fn expand(text: &str) -> Vec<Vec<&str>> {
    let mut path = Vec::new();
    let mut rest = text;
    loop {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        if !name.is_empty() {
            path.push(name);
        }
        match after.strip_prefix("::") {
            Some(next) if next.starts_with('{') => {
                let tails = entries(&next[1..]).into_iter().flat_map(expand);
                return tails.map(|tail| [&path[..], &tail].concat()).collect();
            }
            Some(next) => rest = next,
            None => return vec![path],
        }
    }
}

/// The entries of a group, up to its closing brace.
fn entries(group: &str) -> Vec<&str> {
    let (mut entries, mut depth, mut start) = (Vec::new(), 0, 0);
    for (place, character) in group.char_indices() {
        let ends_entry = depth == 0 && (character == ',' || character == '}');
        if ends_entry && !group[start..place].trim().is_empty() {
            entries.push(group[start..place].trim());
        }
        match character {
            ',' if depth == 0 => start = place + 1,
            '}' if depth == 0 => break,
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
    }
    entries
}

/// The module that a path leads to: the longest part of it that is a file.
fn resolve(base: &[&str], path: &[&str], sources: &Sources) -> String {
    let supers = path.iter().take_while(|name| **name == "super").count();
    let (base, names) = match supers {
        0 => (&base[..0], &path[1..]),
        _ => (&base[..base.len().saturating_sub(supers)], &path[supers..]),
    };
    let full = [base, names].concat();
    let prefixes = (1..=full.len()).rev().map(|length| full[..length].join("/"));
    prefixes.into_iter().find(|prefix| sources.contains_key(prefix)).unwrap_or_else(|| "main".to_owned())
}
