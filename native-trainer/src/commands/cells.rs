//! The list of trainings that several machines share, as `--cells` prints it.

use std::{env, iter};

use akin_base::progress::Progress;
use akin_base::{shell, terminal};
use anyhow::Result;
use serde_json::{Value, json};

use crate::comparison::compare::cells::{Cell, CellState};

/// Prints the cells that can begin, as commands; as JSON, every cell.
///
/// # Errors
///
/// A stdout that cannot be written.
pub fn print_cells(cells: &[Cell], json: bool, progress: Progress) -> Result<()> {
    if json {
        let entry = |cell: &Cell| {
            json!({
                "cell": cell.number, "row": cell.row, "name": cell.name, "state": cell.state,
                "waits_for": cell.waits_for, "command": cell_command(cell.number),
            })
        };
        let entries: Vec<Value> = cells.iter().map(entry).collect();
        terminal::print(&serde_json::to_string_pretty(&entries)?)?;
        return Ok(());
    }
    let commands: Vec<String> =
        cells.iter().filter(|cell| cell.state.can_begin()).map(|cell| cell_command(cell.number)).collect();
    if !commands.is_empty() {
        terminal::print(&commands.join("\n"))?;
    }
    let states = [
        (CellState::Failed, "failed before"),
        (CellState::Running, "running"),
        (CellState::Waiting, "waiting for others"),
        (CellState::NotNeeded, "not needed"),
        (CellState::Done, "done"),
    ];
    let mut counts = vec![format!("{} of {} can begin", commands.len(), cells.len())];
    for (state, words) in states {
        let count = cells.iter().filter(|cell| cell.state == state).count();
        counts.extend((count > 0).then(|| format!("{count} {words}")));
    }
    progress.say("Cells", &counts.join(", "));
    Ok(())
}

/// The command line, quoted for a shell.
pub fn command_line() -> String {
    quoted(env::args().skip(1))
}

/// The command line of `--cells` with `--cell N` in its place.
fn cell_command(number: usize) -> String {
    quoted(env::args().skip(1).filter(|word| word != "--json").flat_map(|word| match &*word {
        "--cells" => vec!["--cell".to_owned(), number.to_string()],
        _ => vec![word],
    }))
}

fn quoted(arguments: impl Iterator<Item = String>) -> String {
    let words = arguments.map(|word| shell::word(&word));
    iter::once("akin".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}
