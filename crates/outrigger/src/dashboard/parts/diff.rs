//! What changed in a workspace, as a list of files and, below, their lines.

use maud::{Markup, html};

use super::patch::{FilePatch, MAX_FILES, MAX_LINES, Patch, Sign};

/// A file with more changed lines than this is folded.
const FOLDED_FROM: usize = 120;

/// Draws a patch.
pub(in super::super) fn diff(patch: &Patch) -> Markup {
    html! {
        div.diff {
            ul.diff-files aria-label="Changed files" {
                @for (number, file) in patch.files.iter().enumerate() {
                    li {
                        a href={ "#diff-" (number) } { (file.path) }
                        (tally(file.added, file.removed))
                    }
                }
            }
            @for (number, file) in patch.files.iter().enumerate() { (file_diff(number, file)) }
            @if patch.more_files > 0 {
                p.hint { "and " (patch.more_files) " more files; " (MAX_FILES) " are shown. The patch has all of them." }
            }
            @if patch.more_lines > 0 {
                p.hint { "and " (patch.more_lines) " more lines; " (MAX_LINES) " are shown. The patch has all of them." }
            }
        }
    }
}

/// `+3 −1`.
pub(in super::super) fn tally(added: usize, removed: usize) -> Markup {
    html! {
        span.tally.num {
            span.plus { "+" (added) } " " span.minus { "−" (removed) }
        }
    }
}

fn file_diff(number: usize, file: &FilePatch) -> Markup {
    let lines: usize = file.hunks.iter().map(|hunk| hunk.lines.len()).sum();
    html! {
        details.diff-file id={ "diff-" (number) } open[lines <= FOLDED_FROM] {
            summary {
                span.path { @if let Some(was) = &file.was { (was) " → " } (file.path) }
                span.chip { (file.change.word()) }
                (tally(file.added, file.removed))
            }
            @if file.hunks.is_empty() {
                p.hint.pad { "There are no lines to show." }
            } @else {
                div.diff-scroll tabindex="0" role="region" aria-label={ "Changes in " (file.path) } {
                    table.diff-lines {
                        tbody {
                            @for hunk in &file.hunks {
                                tr.hunk { td colspan="4" { "@@ " (hunk.heading) } }
                                @for line in &hunk.lines {
                                    tr.(sign_class(line.sign)) {
                                        td.no data-no=[line.old] {}
                                        td.no data-no=[line.new] {}
                                        td.sign { (sign(line.sign)) }
                                        td.text { (line.text) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn sign_class(sign: Sign) -> &'static str {
    match sign {
        Sign::Same => "same",
        Sign::Added => "add",
        Sign::Removed => "del",
        Sign::Remark => "remark",
    }
}

fn sign(sign: Sign) -> &'static str {
    match sign {
        Sign::Same | Sign::Remark => " ",
        Sign::Added => "+",
        Sign::Removed => "−",
    }
}

#[cfg(test)]
mod tests {
    use super::super::patch::parse;
    use super::*;

    #[test]
    fn names_and_lines_of_a_patch_are_text_and_nothing_else() {
        let patch = parse(
            b"diff --git a/<script>x</script> b/<script>x</script>\n--- a/x\n+++ b/\"><script>\n@@ -1 +1 @@\n-<b>\n+</td><script>alert(1)</script>\n",
        );
        let shown = diff(&patch).into_string();
        assert!(!shown.contains("<script"), "{shown}");
        assert!(shown.contains("&lt;/td&gt;&lt;script&gt;"));
    }
}
