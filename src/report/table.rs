//! The compact table of a run for a terminal.

use super::allocators;
use super::answer::subject;
use super::grid::{Grid, accesses, ceilings, unmeasured, variants};
use super::heaps::heaps;
use super::scatter;
use super::text::{fitted, wrapped};
use crate::summary::Summary;

/// The widest line.
const WIDTH: usize = 150;
/// The widest cell of a text that comes from a file.
const CELL: usize = 20;
const GAP: &str = "  ";

/// The table of a run as plain text, at most 150 columns wide: the ceilings, a line for each group
/// with GB/s of its arms and its ratios, and the groups without figures with their reasons.
pub fn table(summary: &Summary) -> String {
    let Summary { run, rows, .. } = summary;
    let mut blocks = vec![wrapped(&format!("{}.", subject(run)), WIDTH, GAP)];
    let mut grids = vec![ceilings(rows), accesses(rows), heaps(rows), variants(rows)];
    grids.extend(scatter::grids(rows).map(|(_, grid)| grid));
    grids.extend(allocators::grids(rows).map(|(_, grid)| grid));
    let shown = grids.iter().filter(|grid| !grid.body.is_empty());
    blocks.extend(shown.map(|grid| aligned(grid, CELL)));
    let reasons: Vec<String> = unmeasured(rows)
        .iter()
        .map(|[case, status, why]| wrapped(&format!("{status}: {case}: {why}"), WIDTH, GAP))
        .collect();
    if !reasons.is_empty() {
        blocks.push(reasons.join("\n"));
    }
    blocks.join("\n\n") + "\n"
}

/// Texts to the left, each in at most `widest` characters, figures to the right.
pub(super) fn aligned(grid: &Grid, widest: usize) -> String {
    let last = grid.head.len() - 1;
    let head: Vec<String> = grid.head.iter().map(|&text| text.to_owned()).collect();
    let mut lines: Vec<Vec<String>> = vec![head];
    for cells in &grid.body {
        let texts = |column: usize| column < grid.texts;
        let short = |(column, cell): (usize, &String)| {
            if texts(column) { fitted(cell, widest) } else { cell.clone() }
        };
        lines.push(cells.iter().enumerate().map(short).collect());
    }
    let wide = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<usize> = (0..last).map(|column| wide(column).unwrap_or(0)).collect();
    let used: usize = widths.iter().map(|width| width + GAP.len()).sum();
    let write = |line: &Vec<String>| {
        let mut text = String::new();
        for (column, (cell, &width)) in line.iter().zip(&widths).enumerate() {
            let padded = if column < grid.texts {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            };
            text += &padded;
            text += GAP;
        }
        text += &fitted(&line[last], WIDTH.saturating_sub(used));
        text.trim_end().to_owned()
    };
    lines.iter().map(write).collect::<Vec<_>>().join("\n")
}
