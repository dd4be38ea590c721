//! Reads the text of `PYTORCH_ALLOC_CONF`: `key:value,key:[a:b,c:d]`, white space ignored.

use std::str::FromStr;

use super::{Config, ConfigError, INTERVALS, MIB, Reserve, Share, WithoutEffect};
use crate::policy::caching::rounding::LIMIT_BYTES;

/// What a setting that changes nothing takes.
#[derive(Clone, Copy)]
enum Takes {
    Bool,
    /// A whole number from 1 on.
    Positive,
    /// A power of two up to 128.
    Threads,
    /// A list of names with a reserve each.
    Reserves,
}

const PINNED: &str = "it is for pinned host memory";
const DRIVER: &str = "it is for how the driver is called, not for which blocks are handed out";

/// Settings that change nothing in any configuration.
const INERT: [(&str, Takes, &str); 11] = [
    ("pinned_use_background_threads", Takes::Bool, PINNED),
    ("pinned_use_cuda_host_register", Takes::Bool, PINNED),
    ("pinned_use_hip_host_register", Takes::Bool, PINNED),
    ("pinned_num_register_threads", Takes::Threads, PINNED),
    ("pinned_reserve_segment_size_mb", Takes::Positive, PINNED),
    ("pinned_free_catch_all", Takes::Bool, PINNED),
    ("release_lock_on_cudamalloc", Takes::Bool, DRIVER),
    ("release_lock_on_hipmalloc", Takes::Bool, DRIVER),
    ("throw_on_cudamalloc_oom", Takes::Bool, DRIVER),
    ("graph_capture_record_stream_reuse", Takes::Bool, "no graph is captured here"),
    (
        "expandable_segments_reserve_by_class",
        Takes::Reserves,
        "a program gives its streams their classes",
    ),
];

/// Settings that act.
const ACTING: [&str; 9] = [
    "backend",
    "large_segment_size_mb",
    "max_split_size_mb",
    "max_non_split_rounding_mb",
    "garbage_collection_threshold",
    "roundup_power2_divisions",
    "expandable_segments",
    "expandable_segments_reserve",
    "per_process_memory_fraction",
];

impl FromStr for Config {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        let mut tokens = Tokens::new(text);
        let mut rounding_given = false;
        while let Some(key) = tokens.next() {
            let Some(known) = known_key(&key) else {
                return Err(match is_mark(&key) {
                    true => tokens.syntax("a key"),
                    false => ConfigError::UnknownKey { nearest: nearest_key(&key), key },
                });
            };
            tokens.expect(":", "a colon and a value")?;
            rounding_given |= known == "max_non_split_rounding_mb";
            config.set(known, &mut tokens)?;
            if tokens.peek().is_some() {
                tokens.expect(",", "a comma, then the next key")?;
            }
        }
        config.check_limits(rounding_given)?;
        Ok(config)
    }
}

impl Config {
    fn set(&mut self, key: &'static str, tokens: &mut Tokens) -> Result<(), ConfigError> {
        if let Some((_, takes, reason)) = INERT.iter().find(|(inert, ..)| *inert == key) {
            takes.check(key, tokens)?;
            self.inert.retain(|inert| inert.key != key);
            self.inert.push(WithoutEffect { key, reason });
            return Ok(());
        }
        if key == "roundup_power2_divisions" {
            return self.set_divisions(key, tokens);
        }
        let value = tokens.value()?;
        match key {
            "backend" => match &*value {
                "native" => {}
                "cudaMallocAsync" => return Err(ConfigError::Backend),
                _ => return Err(refused(key, value, "native or cudaMallocAsync")),
            },
            "large_segment_size_mb" => {
                self.large_segment_bytes = mebibytes(key, &value, 11, "more than 10")?;
            }
            // Their least value is known when all keys are read.
            "max_split_size_mb" => {
                self.max_split_bytes = Some(mebibytes(key, &value, 1, "at least 20")?);
            }
            "max_non_split_rounding_mb" => {
                self.max_non_split_rounding_bytes = mebibytes(key, &value, 1, "at least 20")?;
            }
            "garbage_collection_threshold" => {
                let share = share(&value).filter(|share| 0 < share.0 && share.0 < Share::WHOLE);
                let takes = "a number between 0 and 1, as in 0.8";
                self.garbage_collection_threshold =
                    Some(share.ok_or_else(|| refused(key, value, takes))?);
            }
            "expandable_segments" => self.expandable_segments = boolean(key, &value)?,
            "expandable_segments_reserve" => {
                self.expandable_segments_reserve = Some(reserve(key, &value)?);
            }
            "per_process_memory_fraction" => {
                let fraction =
                    share(&value).ok_or_else(|| refused(key, value, "a number from 0 to 1"))?;
                self.memory_fraction = (fraction.0 < Share::WHOLE).then_some(fraction);
            }
            _ => unreachable!("a key of ACTING without an arm"),
        }
        Ok(())
    }

    /// One number for all intervals, or a list of boundaries in MB. The first boundary's number
    /// also stands for the intervals below it; `>` for those above the boundary before it, where
    /// there is none those from 2 MiB on; intervals between two boundaries stay as they were.
    fn set_divisions(&mut self, key: &'static str, tokens: &mut Tokens) -> Result<(), ConfigError> {
        if tokens.peek() != Some("[") {
            let value = tokens.value()?;
            let divisions = whole(&value).filter(|of| of.is_power_of_two());
            let takes = "a power of two, or a list as in [64:8,256:4,>:1]";
            let divisions = divisions.ok_or_else(|| refused(key, value, takes))?;
            self.roundup_power2_divisions = [divisions; INTERVALS];
            return Ok(());
        }
        tokens.next();
        let mut boundary = None;
        while tokens.peek() != Some("]") {
            let upper = tokens.value()?;
            tokens.expect(":", "a colon, then the number of divisions")?;
            let value = tokens.value()?;
            let divisions = whole(&value).filter(|&of| of == 0 || of.is_power_of_two());
            let Some(divisions) = divisions else {
                let value = format!("[{upper}:{value}]");
                return Err(refused(key, value, "0 or a power of two as divisions"));
            };
            if upper == ">" {
                let above = boundary.unwrap_or(0) + 1;
                self.roundup_power2_divisions[above..].fill(divisions);
            } else {
                let Some(mib) = whole(&upper).filter(|mib| mib.is_power_of_two()) else {
                    let value = format!("[{upper}:{value}]");
                    return Err(refused(key, value, "a power of two of MB, or >, as boundary"));
                };
                let index = (mib.ilog2() as usize).min(INTERVALS - 1);
                if boundary.is_none() {
                    self.roundup_power2_divisions[..index].fill(divisions);
                }
                self.roundup_power2_divisions[index] = divisions;
                boundary = Some(index);
            }
            if tokens.peek() != Some("]") {
                tokens.expect(",", "a comma and the next boundary, or ]")?;
            }
        }
        tokens.next();
        Ok(())
    }

    /// Limits against other keys, whatever their order.
    fn check_limits(&self, rounding_given: bool) -> Result<(), ConfigError> {
        let least = self.large_segment_bytes / MIB;
        let takes = format!("at least {least} (MB), the large_segment_size_mb");
        let limited = [
            ("max_split_size_mb", self.max_split_bytes),
            (
                "max_non_split_rounding_mb",
                rounding_given.then_some(self.max_non_split_rounding_bytes),
            ),
        ];
        for (key, bytes) in limited {
            if let Some(bytes) = bytes.filter(|bytes| *bytes < self.large_segment_bytes) {
                return Err(refused(key, (bytes / MIB).to_string(), &takes));
            }
        }
        Ok(())
    }
}

impl Takes {
    fn check(self, key: &'static str, tokens: &mut Tokens) -> Result<(), ConfigError> {
        if let Self::Reserves = self {
            return reserves(key, tokens);
        }
        let value = tokens.value()?;
        match self {
            Self::Bool => boolean(key, &value).map(drop),
            Self::Positive if whole(&value).is_none_or(|number| number == 0) => {
                Err(refused(key, value, "a whole number from 1 on"))
            }
            Self::Threads
                if whole(&value).is_none_or(|number| !number.is_power_of_two() || number > 128) =>
            {
                Err(refused(key, value, "a power of two up to 128"))
            }
            _ => Ok(()),
        }
    }
}

/// Keys, values and marks, one after another.
struct Tokens {
    tokens: Vec<String>,
    next: usize,
}

impl Tokens {
    fn new(text: &str) -> Self {
        let mut tokens = vec![String::new()];
        for c in text.chars().filter(|c| !c.is_whitespace()) {
            if [',', ':', '[', ']'].contains(&c) {
                tokens.extend([c.to_string(), String::new()]);
            } else if let Some(token) = tokens.last_mut() {
                token.push(c);
            }
        }
        tokens.retain(|token| !token.is_empty());
        Self { tokens, next: 0 }
    }

    fn peek(&self) -> Option<&str> {
        self.tokens.get(self.next).map(String::as_str)
    }

    fn next(&mut self) -> Option<String> {
        let token = self.tokens.get(self.next).cloned();
        self.next += 1;
        token
    }

    fn expect(&mut self, mark: &str, takes: &'static str) -> Result<(), ConfigError> {
        match self.next().as_deref() == Some(mark) {
            true => Ok(()),
            false => Err(self.syntax(takes)),
        }
    }

    fn value(&mut self) -> Result<String, ConfigError> {
        let token = self.next().filter(|token| !is_mark(token));
        token.ok_or_else(|| self.syntax("a value"))
    }

    /// The token that was taken last is none that may stand there.
    fn syntax(&self, takes: &'static str) -> ConfigError {
        let taken = self.next - 1;
        let found =
            self.tokens.get(taken).map_or("nothing".to_owned(), |token| format!("`{token}`"));
        let before = self.tokens[..taken].concat();
        let place = match before.is_empty() {
            true => "at the beginning".to_owned(),
            false => format!("after `{before}`"),
        };
        ConfigError::Syntax { place, found, takes }
    }
}

fn is_mark(token: &str) -> bool {
    [",", ":", "[", "]"].contains(&token)
}

pub(super) fn keys() -> impl Iterator<Item = &'static str> {
    ACTING.into_iter().chain(INERT.iter().map(|(key, ..)| *key))
}

fn known_key(key: &str) -> Option<&'static str> {
    keys().find(|known| *known == key)
}

fn nearest_key(key: &str) -> &'static str {
    let likeness = |known: &&str| strsim::jaro_winkler(key, known);
    keys().max_by(|a, b| likeness(a).total_cmp(&likeness(b))).unwrap_or(ACTING[0])
}

fn refused(key: &'static str, value: String, takes: &str) -> ConfigError {
    ConfigError::Value { key, value, takes: takes.to_owned() }
}

/// Digits alone; more than 64 bits hold is the most that they hold.
fn whole(value: &str) -> Option<u64> {
    let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| value.parse().unwrap_or(u64::MAX))
}

fn mebibytes(
    key: &'static str,
    value: &str,
    least: u64,
    takes: &'static str,
) -> Result<u64, ConfigError> {
    match whole(value).filter(|mib| *mib >= least) {
        // No request is as large, so more would change nothing.
        Some(mib) => Ok(mib.min(LIMIT_BYTES / MIB) * MIB),
        None => Err(refused(key, value.to_owned(), &format!("a whole number of MB, {takes}"))),
    }
}

fn boolean(key: &'static str, value: &str) -> Result<bool, ConfigError> {
    match value {
        "True" => Ok(true),
        "False" => Ok(false),
        _ => Err(refused(key, value.to_owned(), "True or False, written so")),
    }
}

fn share(value: &str) -> Option<Share> {
    value.parse().ok().and_then(Share::new)
}

fn reserve(key: &'static str, value: &str) -> Result<Reserve, ConfigError> {
    let reserve = match value.strip_suffix(['G', 'g']) {
        Some(number) => number.parse().ok().map(|gib: f64| gib * (1u64 << 30) as f64).map(
            // A size beyond 64 bits, or no number, becomes one of their ends.
            |bytes| Reserve::Bytes(bytes as u64),
        ),
        None => share(value).map(Reserve::Share),
    };
    let some = |reserve: &Reserve| {
        !matches!(reserve, Reserve::Bytes(0 | u64::MAX) | Reserve::Share(Share(0)))
    };
    let takes = "a share of the device's memory above 0, as in 0.5, or a size, as in 40G";
    reserve.filter(some).ok_or_else(|| refused(key, value.to_owned(), takes))
}

/// `[name:reserve,name:reserve]`.
fn reserves(key: &'static str, tokens: &mut Tokens) -> Result<(), ConfigError> {
    tokens.expect("[", "a list as in [serving:0.25,training:40G]")?;
    while tokens.peek() != Some("]") {
        tokens.value()?;
        tokens.expect(":", "a colon, then a reserve")?;
        reserve(key, &tokens.value()?)?;
        if tokens.peek() != Some("]") {
            tokens.expect(",", "a comma and the next class, or ]")?;
        }
    }
    tokens.next();
    Ok(())
}
