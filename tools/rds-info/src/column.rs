// SPDX-License-Identifier: GPL-2.0

//! Right-aligned columns.

use std::fmt::Display;

/// Lines of a table that is being written.
pub(crate) struct Lines {
    widths: Vec<usize>,
    text: String,
}

impl Lines {
    /// Begins a table with its title and the names and widths of its columns.
    pub(crate) fn new(title: &str, columns: &[(&str, usize)]) -> Self {
        let widths = columns.iter().map(|(_, width)| *width).collect();
        let mut lines = Self {
            widths,
            text: format!("\n{title}:\n"),
        };
        let names: Vec<&dyn Display> = columns
            .iter()
            .map(|(name, _)| name as &dyn Display)
            .collect();
        lines.row(&names, "");
        lines
    }

    /// Adds a line: one cell for each column, and whatever follows them.
    pub(crate) fn row(&mut self, cells: &[&dyn Display], rest: &str) {
        for (index, (cell, width)) in cells.iter().zip(&self.widths).enumerate() {
            let gap = if index == 0 { "" } else { " " };
            // The cell becomes a string first: not every Display heeds the width.
            let cell = cell.to_string();
            self.text += &format!("{gap}{cell:>width$}");
        }
        self.text += rest;
        self.text.push('\n');
    }

    /// The finished table.
    pub(crate) fn finish(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_right_aligned_and_may_overflow() {
        let mut lines = Lines::new("Title", &[("A", 4), ("Bee", 3)]);
        lines.row(&[&"abcdef", &7], "!");
        assert_eq!(lines.finish(), "\nTitle:\n   A Bee\nabcdef   7!\n");
    }
}
