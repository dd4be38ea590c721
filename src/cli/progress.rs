//! Progress on standard error: a bar with the time left on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The progress of a run.
pub struct Progress {
    bar: Option<ProgressBar>,
    total: usize,
    done: usize,
}

impl Progress {
    /// For this many groups.
    pub fn new(total: usize) -> Progress {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar =
                ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr());
            let template = "{bar:30} {pos}/{len}, about {eta} left  {wide_msg}";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(250));
            bar
        });
        Progress { bar, total, done: 0 }
    }

    /// A group begins.
    pub fn begin(&self, case: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(case.to_owned());
        }
    }

    /// A group ended, in this way.
    pub fn end(&mut self, case: &str, how: &str) {
        self.done += 1;
        match &self.bar {
            Some(bar) => bar.inc(1),
            None => tell!("[{}/{}] {case}: {how}", self.done, self.total),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
