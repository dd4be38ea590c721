//! The published pages and the README's answer are what the published journals give, and the published
//! selftests are of the kernels that are checked in.

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use fragbench::device::modules::{MODULES, Module};
use fragbench::record::journal::Journal;
use fragbench::record::{Selftest, Status};
use fragbench::selftest::{LAYOUTS, Subject};

const RENEW: &str = "renew it from its journal with `fragbench export` (see docs/FORMAT.md)";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn export(journal: &Path, format: &str) -> String {
    let mut command = Command::cargo_bin("fragbench").expect("the program is built");
    let output = command.arg("export").arg(journal).args(["--format", format]).output();
    let output = output.expect("the program starts");
    assert!(output.status.success(), "{}: {output:?}", journal.display());
    String::from_utf8(output.stdout).expect("text is UTF-8")
}

fn journals() -> Vec<PathBuf> {
    let folders = fs::read_dir(root().join("results")).expect("results/").flatten();
    let files = folders.filter(|entry| entry.path().is_dir()).flat_map(|folder| {
        fs::read_dir(folder.path()).expect("a folder of results").flatten().map(|file| file.path())
    });
    files.filter(|path| path.to_string_lossy().ends_with(".jsonl.gz")).collect()
}

#[test]
fn every_published_journal_has_its_page() {
    let journals = journals();
    assert!(!journals.is_empty(), "no journal under results/");
    for journal in journals {
        let page = PathBuf::from(journal.to_string_lossy().replace(".jsonl.gz", ".md"));
        let written = fs::read_to_string(&page).unwrap_or_default().replace("\r\n", "\n");
        assert!(written == export(&journal, "markdown"), "{}: {RENEW}", page.display());
    }
}

#[test]
fn the_answer_in_the_readme_is_the_quick_run_on_the_h200() {
    let readme = fs::read_to_string(root().join("README.md")).expect("README.md");
    let readme = readme.replace("\r\n", "\n");
    let (_, rest) = readme.split_once("<!-- answer:begin -->\n```text\n").expect("the begin");
    let (shown, _) = rest.split_once("```\n<!-- answer:end -->").expect("the end");
    let journal = root().join("results/nvidia-h200/quick.jsonl.gz");
    assert!(shown == export(&journal, "text"), "the answer in README.md: {RENEW}");
}

#[test]
fn every_published_selftest_is_of_these_kernels() {
    let is_selftest = |path: &PathBuf| path.ends_with("selftest.jsonl.gz");
    let selftests: Vec<PathBuf> = journals().into_iter().filter(is_selftest).collect();
    assert!(!selftests.is_empty(), "no selftest.jsonl.gz under results/");
    for path in selftests {
        check_selftest(&path);
    }
}

/// Modules without a kernel of the selftest: gathers by windows are held against the default kernel in
/// every group that measures them, and duels move nothing.
const ELSEWHERE: [&str; 3] = ["duel", "windows", "windows_80"];

fn check_selftest(path: &Path) {
    let shown = path.display();
    let again = "run `fragbench selftest` on that device again";
    let Journal { run, selftests, .. } = Journal::read(path).unwrap();
    let capability = run.device.compute_capability.as_deref().and_then(|text| {
        let (major, minor) = text.split_once('.')?;
        Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
    });
    let capability = capability.unwrap_or_else(|| panic!("{shown}: of no GPU"));
    let is_tested = |module: &&Module| !ELSEWHERE.contains(&module.name);
    for module in MODULES.iter().filter(is_tested) {
        let hash = run.modules.get(module.name).map(String::as_str);
        assert_eq!(hash, Some(module.sha256), "{shown}: other kernels ({}): {again}", module.name);
    }
    let subjects = Subject::all();
    assert_eq!(selftests.len(), subjects.len(), "{shown}: other kernels: {again}");
    for (record, subject) in selftests.iter().zip(subjects) {
        let kernel = &record.kernel;
        assert_eq!(*kernel, subject.name(), "{shown}: {again}");
        match (module(subject, capability), subject) {
            (None, subject) if subject.entry().is_some() => {
                assert_eq!(record.status, Status::Skipped, "{shown}: {kernel}");
            }
            (module, _) => {
                assert_eq!(record.module.as_deref(), module, "{shown}: {kernel}: {again}");
                check_record(record, &format!("{shown}: {kernel}"));
            }
        }
    }
}

/// The module that a device takes a kernel from; none where it has none.
fn module(subject: Subject, capability: (u32, u32)) -> Option<&'static str> {
    let names = subject.entry()?.modules().iter().copied();
    let least = |name: &str| {
        let module = MODULES.iter().find(|module| module.name == name);
        module.expect("the module is embedded").least_capability
    };
    names.into_iter().find(|name| capability >= least(name))
}

fn check_record(record: &Selftest, what: &str) {
    assert_eq!((&record.status, &record.reason), (&Status::Ok, &None), "{what}");
    assert!(record.layouts >= LAYOUTS, "{what}: {} layouts", record.layouts);
    assert!(record.compared > 0 && record.mismatches == 0, "{what}: sound runs");
    assert!(record.planted() > 0 && record.caught() == record.planted(), "{what}: faults");
}
