//! The published pages and the README's answer are what the published journals give.

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;

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
