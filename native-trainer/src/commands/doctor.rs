//! `akin doctor`: says what akin finds on this machine, and what is broken.

use std::env;
use std::io::Read;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use akin_base::problem::{a_few, problem};
use akin_base::quantities::{counted, rounded_bytes};
use akin_base::text_table::align_words;
use akin_base::{machine, terminal};
use akin_server::page::{self, State};
use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};

use crate::config::device;
use crate::config::{DeviceName, setting_name};

/// Say what akin finds on this machine, and what is broken.
///
/// Tries every back end of this build, and looks at memory, disk, threads, programs and the page. Exits with 0 unless
/// something that akin needs is broken. What is only missing, such as a GPU, is no fault.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print the findings as JSON.
    #[arg(long)]
    pub json: bool,
    /// Try only this back end, in this process.
    #[arg(long, hide = true, value_enum, value_name = "DEVICE")]
    pub probe: Option<DeviceName>,
}

/// How long a back end may take to answer. The first use of a GPU compiles its programs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Less free space than this is too little for a run.
const LITTLE_DISK: u64 = 200_000_000;

/// What stands beside a finding.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Good,
    /// Something that is not there, and that akin can do without.
    Missing,
    Broken,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Missing => "–",
            Self::Broken => "broken",
        }
    }
}

struct Finding {
    name: String,
    verdict: Verdict,
    text: String,
}

/// Prints what is found.
pub fn run(args: &DoctorArgs) -> Result<()> {
    if let Some(name) = args.probe {
        terminal::print(&device::try_out(name)?)?;
        return Ok(());
    }
    let mut findings = vec![version(), system()];
    findings.extend([memory(), disk()]);
    let devices: Vec<Finding> = device::BACK_ENDS.into_iter().map(back_end).collect();
    let computes = devices.iter().any(|finding| finding.verdict == Verdict::Good);
    findings.extend(devices);
    findings.extend([nvidia(), onnx(), page(), browser(), node()]);
    if args.json {
        let entry = |Finding { name, verdict, text }: &Finding| -> Value {
            let verdict = match verdict {
                Verdict::Good => "ok",
                Verdict::Missing => "missing",
                Verdict::Broken => "broken",
            };
            json!({ "name": name, "state": verdict, "text": text })
        };
        let findings: Vec<Value> = findings.iter().map(entry).collect();
        terminal::print(&serde_json::to_string_pretty(&findings)?)?;
    } else {
        let row = |finding: &Finding| {
            vec![finding.name.clone(), finding.verdict.word().to_owned(), finding.text.clone()]
        };
        let rows: Vec<Vec<String>> = findings.iter().map(row).collect();
        terminal::print(&align_words(&["", "state", "found"], &rows, terminal::width()))?;
    }
    let broken: Vec<&str> = findings
        .iter()
        .filter(|finding| finding.verdict == Verdict::Broken)
        .map(|finding| finding.name.as_str())
        .collect();
    if !computes {
        return Err(problem(
            "no back end of this build works on this machine",
            "build akin with `cargo build --release`, which includes the back end for the CPU",
        ));
    }
    if !broken.is_empty() {
        return Err(problem(
            format!("{} broken: {}", counted(broken.len(), "thing is", "things are"), a_few(&broken)),
            "the table above says what is wrong with each",
        ));
    }
    Ok(())
}

fn good(name: &str, text: String) -> Finding {
    Finding { name: name.into(), verdict: Verdict::Good, text }
}

fn missing(name: &str, text: &str) -> Finding {
    Finding { name: name.into(), verdict: Verdict::Missing, text: text.into() }
}

fn broken(name: &str, text: String) -> Finding {
    Finding { name: name.into(), verdict: Verdict::Broken, text }
}

fn onnx() -> Finding {
    #[cfg(feature = "onnx")]
    return match akin_onnx::engine() {
        Ok(engine) => good("ONNX files", format!("run by {engine}")),
        Err(error) => broken("ONNX files", akin_base::problem::parts(&error).0),
    };
    #[cfg(not(feature = "onnx"))]
    missing("ONNX files", "not in this build; `cargo build --release --features onnx` adds their engine")
}

fn version() -> Finding {
    let built = if cfg!(debug_assertions) { "debug build: slow, for development" } else { "release build" };
    let back_ends: Vec<String> =
        device::BACK_ENDS.into_iter().filter(|&name| device::is_built_in(name)).map(setting_name).collect();
    good("akin", format!("{}, {built}, back ends: {}", env!("CARGO_PKG_VERSION"), back_ends.join(", ")))
}

fn system() -> Finding {
    let threads = rayon::current_num_threads();
    let cores = machine::cores();
    let text = format!(
        "{} on {}, {}, {}",
        env::consts::OS,
        env::consts::ARCH,
        counted(cores, "core", "cores"),
        counted(threads, "thread", "threads")
    );
    good("system", text)
}

fn memory() -> Finding {
    match machine::memory() {
        Some((all, free)) => {
            good("memory", format!("{} free of {}", rounded_bytes(free), rounded_bytes(all)))
        }
        None => missing("memory", "not known on this system"),
    }
}

fn disk() -> Finding {
    let here = match env::current_dir() {
        Ok(here) => here,
        Err(error) => return broken("disk", format!("the current directory cannot be found: {error}")),
    };
    match machine::free_disk(&here) {
        Some(free) if free < LITTLE_DISK => broken(
            "disk",
            format!("{} free in {}: too little for a run", rounded_bytes(free), here.display()),
        ),
        Some(free) => good("disk", format!("{} free in {}", rounded_bytes(free), here.display())),
        None => missing("disk", "not known on this system"),
    }
}

/// Tries a back end in a process of its own, since a driver may crash the process or never answer.
fn back_end(name: DeviceName) -> Finding {
    let option = setting_name(name);
    let title = format!("device {option}");
    if !device::is_built_in(name) {
        let text = format!("not in this build; `cargo build --release --features {option}` adds it");
        return missing(&title, &text);
    }
    match answer_of_probe(&option) {
        Ok(text) => good(&title, text),
        // Without a GPU nothing is broken.
        Err(text) if name != DeviceName::Cpu => missing(&title, &format!("does not work here: {text}")),
        Err(text) => broken(&title, text),
    }
}

fn answer_of_probe(device: &str) -> Result<String, String> {
    let program = env::current_exe().map_err(|error| format!("akin does not find itself: {error}"))?;
    let began = Instant::now();
    let mut child = Command::new(program)
        .args(["doctor", "--probe", device])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("akin cannot start itself: {error}"))?;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if began.elapsed() < PATIENCE => sleep(Duration::from_millis(10)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("no answer in {} s", PATIENCE.as_secs()));
            }
        }
    };
    let mut text = String::new();
    if status.success() {
        let _ = child.stdout.take().map(|mut out| out.read_to_string(&mut text));
        return Ok(format!("{}, {:.2} s to start", text.trim(), began.elapsed().as_secs_f64()));
    }
    let _ = child.stderr.take().map(|mut out| out.read_to_string(&mut text));
    let words = text.lines().find_map(|line| line.strip_prefix("error: ")).or(text.lines().next());
    Err(words.unwrap_or("it ended without a message").to_owned())
}

/// The GPUs that the driver of NVIDIA knows.
fn nvidia() -> Finding {
    let Some(program) = machine::program("nvidia-smi") else {
        return missing("NVIDIA driver", "not installed");
    };
    let answer = Command::new(program)
        .args(["--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"])
        .stdin(Stdio::null())
        .output();
    match answer {
        Ok(answer) if answer.status.success() => {
            let gpus = String::from_utf8_lossy(&answer.stdout);
            good("NVIDIA driver", gpus.trim().replace('\n', "; "))
        }
        Ok(answer) => missing("NVIDIA driver", String::from_utf8_lossy(&answer.stdout).trim()),
        Err(error) => missing("NVIDIA driver", &format!("nvidia-smi cannot be started: {error}")),
    }
}

fn page() -> Finding {
    match page::state() {
        State::Embedded => good("page", "in this program".into()),
        State::Built(folder) => good("page", format!("built, in {}", folder.display())),
        State::Old(folder) => {
            missing("page", &format!("of {} is not up to date; `akin page` builds it", folder.display()))
        }
        State::None => missing("page", "not in this program; `native-trainer/install` takes it in"),
    }
}

fn browser() -> Finding {
    const NAMES: [&str; 6] =
        ["firefox", "google-chrome", "chromium", "chromium-browser", "microsoft-edge", "brave-browser"];
    let found: Vec<String> =
        NAMES.into_iter().filter_map(machine::program).map(|program| program.display().to_string()).collect();
    match found.is_empty() {
        true => missing("browser", "none found in PATH; any current browser shows the page"),
        false => good("browser", found.join(", ")),
    }
}

fn node() -> Finding {
    match (machine::program("node"), machine::program("npm")) {
        (Some(node), Some(npm)) => good("Node", format!("{}, {}", node.display(), npm.display())),
        _ => missing("Node", "not found; only building the page needs node and npm"),
    }
}
