//! The curves of a run as plots in plain characters.

use std::collections::BTreeMap;

use super::text::{bytes, clean, fitted, wrapped};
use crate::record::size;
use crate::stats::Interval;
use crate::summary::{BracketKey, Flag, Row};

/// The widest line.
const WIDTH: usize = 100;
/// Room for the numbers beside the plot.
const MARGIN: usize = 5;
/// Steps above zero; each takes a line.
const STEPS: usize = 11;
/// What a step may be worth.
const STEP_SIZES: [f64; 3] = [0.1, 0.2, 0.5];
/// The most columns between a size and its double.
const OCTAVE: usize = 8;
/// A curve of fewer sizes reads better in the table.
const FEWEST_SIZES: usize = 4;
/// The most plots and the most curves in one.
const PLOTS: usize = 4;
const CURVES: usize = 8;

/// The relative bandwidth by fragment size: a plot for each kernel and pattern, with a letter for
/// each footprint. At most four plots of at least four sizes each: shuffled reads first, then where
/// most is lost. Empty where there is nothing to draw.
///
/// No line is wider than 100 columns, and nothing depends on colour.
pub fn plot(rows: &[Row]) -> String {
    let mut plots: BTreeMap<[String; 3], Plot<'_>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.figure.median.is_some()) {
        let size = row.fragment_bytes.filter(|size| *size > 0);
        let (Some(key), Some(size)) = (BracketKey::of(row), size) else { continue };
        let plot =
            plots.entry([key.run, key.kernel.to_string(), key.pattern.to_string()]).or_default();
        plot.curves.entry(key.footprint_bytes).or_default().entry(size).or_insert(row);
    }
    let mut plots: Vec<Plot<'_>> =
        plots.into_values().filter(|plot| plot.sizes().len() >= FEWEST_SIZES).collect();
    plots.sort_by(|a, b| b.is_first().cmp(&a.is_first()).then(a.least().total_cmp(&b.least())));
    plots.iter().take(PLOTS).map(Plot::draw).collect::<Vec<_>>().join("\n")
}

/// The curves of one kernel and pattern: by footprint, then by fragment size.
#[derive(Default)]
struct Plot<'a> {
    curves: BTreeMap<u64, BTreeMap<u64, &'a Row>>,
}

/// A figure on the plot: column, letter, and lines from the bottom.
struct Mark {
    column: usize,
    letter: char,
    line: usize,
    low: usize,
    high: usize,
}

impl<'a> Plot<'a> {
    fn rows(&self) -> impl Iterator<Item = &'a Row> {
        self.curves.values().take(CURVES).flat_map(|curve| curve.values().copied())
    }

    fn sizes(&self) -> Vec<u64> {
        let mut sizes: Vec<u64> = self.rows().filter_map(|row| row.fragment_bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    fn is_first(&self) -> bool {
        self.rows().next().is_some_and(|row| {
            row.kernel_text() == "gather_read" && row.pattern_text() == "shuffled"
        })
    }

    fn least(&self) -> f64 {
        self.rows().filter_map(|row| row.figure.median).fold(f64::INFINITY, f64::min)
    }

    fn draw(&self) -> String {
        let sizes = self.sizes();
        let columns = columns(&sizes, self.curves.len());
        let at = |size: u64| {
            sizes.iter().zip(&columns).find(|(known, _)| **known == size).map_or(0, |(_, at)| *at)
        };
        let step = self.step();
        let marks = self.marks(step, at);
        let mut canvas = vec![vec![' '; WIDTH - MARGIN]; STEPS + 1];
        // What packed has is drawn where it lies on a line.
        let packed = (1.0 / step).round() as usize;
        let width = columns.last().map_or(0, |last| last + 1);
        canvas[packed][..width].fill('.');
        let mut distinct = columns.clone();
        distinct.dedup();
        for (nth, &column) in distinct.iter().enumerate() {
            let next = distinct.get(nth + 1).copied();
            // A letter less than there is room for, so that two sizes do not run into each other.
            let room = next.map_or(WIDTH - MARGIN, |next| next - 1) - column;
            let here: Vec<&Mark> = marks.iter().filter(|mark| mark.column == column).collect();
            put(&mut canvas, &here, room);
        }
        let mut lines = vec![self.title()];
        for (line, cells) in canvas.iter().enumerate().rev() {
            let cells: String = cells.iter().collect();
            lines.push(format!("{:.1} |{cells}", line as f64 * step).trim_end().to_owned());
        }
        lines.extend(axis(&sizes, &columns));
        lines.push(wrapped(&self.legend(), WIDTH, "  "));
        lines.join("\n") + "\n"
    }

    /// What a line is worth: as little as shows the largest figure.
    fn step(&self) -> f64 {
        let largest = self.rows().filter_map(|row| row.figure.median).fold(0.0, f64::max);
        let shows = |step: &&f64| largest < **step * (STEPS as f64 + 0.5);
        *STEP_SIZES.iter().find(shows).unwrap_or(&STEP_SIZES[STEP_SIZES.len() - 1])
    }

    fn marks(&self, step: f64, at: impl Fn(u64) -> usize) -> Vec<Mark> {
        let curves = self.curves.values().take(CURVES).zip('a'..);
        let figures = curves.flat_map(|(curve, letter)| {
            curve.iter().filter_map(move |(size, row)| {
                Some((*size, letter, row.figure.median?, row.figure.ci()))
            })
        });
        figures
            .map(|(size, letter, median, ci)| {
                let Interval { low, high } = ci.unwrap_or(Interval { low: median, high: median });
                let line = |figure| line(figure, step);
                Mark {
                    column: at(size),
                    letter,
                    line: line(median),
                    low: line(low),
                    high: line(high),
                }
            })
            .collect()
    }

    fn title(&self) -> String {
        let Some(row) = self.rows().next() else { return String::new() };
        let host = if row.flags.contains(&Flag::Host) { ", on the host" } else { "" };
        let name = fitted(&clean(&format!("{}, {}", row.kernel_text(), row.pattern_text())), 40);
        format!("{name}{host}: relative bandwidth (scattered / packed) by fragment")
    }

    fn legend(&self) -> String {
        let mut items: Vec<String> = Vec::new();
        for ((&footprint, curve), letter) in self.curves.iter().take(CURVES).zip('a'..) {
            let is_cache = curve.values().any(|row| row.flags.contains(&Flag::Cache));
            let cache = if is_cache { " (cache, not memory)" } else { "" };
            items.push(format!("{letter} {}{cache}", bytes(footprint)));
        }
        let more = match self.curves.len().saturating_sub(CURVES) {
            0 => String::new(),
            more => format!(", and {more} more not drawn"),
        };
        format!(
            "Footprints: {}{more}. * several; : 95 % interval where it is wider than a line; dots \
             packed.",
            items.join(", ")
        )
    }
}

/// The line of a figure, from the bottom; what lies above the plot is drawn at its top.
fn line(figure: f64, step: f64) -> usize {
    // A float-to-integer `as` saturates.
    ((figure / step).round() as usize).min(STEPS)
}

/// The column of each size: octaves are equally wide.
fn columns(sizes: &[u64], curves: usize) -> Vec<usize> {
    let (Some(&first), Some(&last)) = (sizes.first(), sizes.last()) else { return Vec::new() };
    let octaves = |size: u64| (size as f64 / first as f64).log2();
    // The last size needs room for its letters.
    let room = (WIDTH - MARGIN - curves.min(CURVES)) as f64;
    let octave = (room / octaves(last).max(1.0)).floor().clamp(1.0, OCTAVE as f64);
    sizes.iter().map(|&size| (octaves(size) * octave).round() as usize).collect()
}

/// Draws the figures of one size. Letters on one line stand side by side where there is room.
fn put(canvas: &mut [Vec<char>], marks: &[&Mark], room: usize) {
    let on = |line: usize| marks.iter().filter(move |mark| mark.line == line);
    let place = |mark: &Mark| {
        let beside = on(mark.line).take_while(|other| other.letter != mark.letter).count();
        let is_crowded = on(mark.line).count() > room;
        if is_crowded { (mark.column, '*') } else { (mark.column + beside, mark.letter) }
    };
    for mark in marks {
        for cells in canvas.iter_mut().take(mark.high + 1).skip(mark.low) {
            cells[place(mark).0] = ':';
        }
    }
    for mark in marks {
        let (column, letter) = place(mark);
        canvas[mark.line][column] = letter;
    }
}

/// The axis with a tick for each size, and below it as many sizes as fit.
fn axis(sizes: &[u64], columns: &[usize]) -> [String; 2] {
    let width = columns.last().map_or(0, |last| last + 1);
    let mut ticks = vec!['-'; width];
    let mut labels = String::new();
    for (&size, &column) in sizes.iter().zip(columns) {
        ticks[column] = '+';
        let (start, label) = (column + MARGIN, size::exact(size));
        let is_free = labels.is_empty() || start > labels.len();
        if is_free && start + label.len() <= WIDTH {
            labels = format!("{labels:<start$}{label}");
        }
    }
    [format!("{:>MARGIN$}{}", '+', ticks.iter().collect::<String>()), labels]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::summary::{self, fixture};

    /// The relative bandwidths of one kernel and pattern: footprint, size, median, ends.
    fn rows(figures: &[(u64, u64, f64, f64, f64)]) -> Vec<Row> {
        let groups = fixture::gpu_groups();
        let rows = summary::rows("r", &fixture::gpu_run(), &groups);
        let row = rows.iter().find(|row| BracketKey::of(row).is_some()).unwrap();
        let with = |&(footprint, size, median, low, high): &(u64, u64, f64, f64, f64)| {
            let mut row = row.clone();
            (row.footprint_bytes, row.fragment_bytes) = (Some(footprint), Some(size));
            row.figure.median = Some(median);
            (row.figure.ci_low, row.figure.ci_high) = (Some(low), Some(high));
            row
        };
        figures.iter().map(with).collect()
    }

    #[test]
    fn intervals_are_seen_where_they_are_wider_than_a_line() {
        let curve = |footprint: u64, shift: f64| {
            [(64, 0.3, 0.02), (128, 0.5, 0.25), (256, 0.8, 0.1), (512, 1.0, 0.01)].map(
                |(size, at, half)| {
                    (footprint, size, at + shift, at + shift - half, at + shift + half)
                },
            )
        };
        insta::assert_snapshot!(plot(&rows(&[curve(1 << 31, 0.0), curve(1 << 36, 0.2)].concat())));
    }

    #[test]
    fn three_sizes_are_not_drawn() {
        let figures = [64, 128, 256].map(|size| (1 << 31, size, 1.0, 1.0, 1.0));
        assert_eq!(plot(&rows(&figures)), "");
        assert_eq!(plot(&[]), "");
    }

    #[test]
    fn a_step_grows_with_the_largest_figure() {
        for (largest, top) in [(1.1, "1.1 |"), (1.3, "2.2 |"), (4.0, "5.5 |"), (900.0, "5.5 |")] {
            let figures = [1, 2, 3, 4].map(|size| (1 << 31, size << 6, largest, 0.0, largest));
            let text = plot(&rows(&figures));
            assert!(text.lines().nth(1).unwrap().starts_with(top), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_line_keeps_its_width(
            figures in prop::collection::vec(
                (1..12u64, any::<u64>(), 0..63u32, any::<f64>(), any::<f64>(), any::<f64>()),
                0..60,
            ),
        ) {
            let figures: Vec<_> = figures
                .into_iter()
                .map(|(footprint, size, shift, median, low, high)| {
                    (footprint << 30, size >> shift, median, low, high)
                })
                .collect();
            for line in plot(&rows(&figures)).lines() {
                prop_assert!(line.chars().count() <= WIDTH, "{}", line);
                prop_assert!(!line.contains("NaN"));
            }
        }
    }
}
