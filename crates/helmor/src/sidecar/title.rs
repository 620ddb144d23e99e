//! Titles: what a model is asked for, and what of its answer is a title and the name of a branch.

use crate::protocol::GenerateTitle;

/// The longest title, in characters.
const LONGEST: usize = 80;

/// How much of what the user said a model gets to see, in characters: the subject is at the beginning.
const SEEN: usize = 8000;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Title {
    pub(super) title: String,
    pub(super) branch: Option<String>,
}

/// What a model is asked.
pub(super) fn prompt(request: &GenerateTitle) -> String {
    let mut prompt = String::from(
        "Name the task below. Do not carry it out, do not ask back, use no tools.\n\nAnswer with nothing but:\n\
         title: a title of at most eight words, in the language of the task\n",
    );
    if request.generate_branch {
        prompt.push_str(
            "branch: a name for a git branch: two to five words, lower case, a-z, 0-9 and hyphens only\n",
        );
        if let Some(rules) = &request.branch_rename_prompt {
            prompt.push_str("\nFor the branch this counts before everything above:\n");
            prompt.push_str(rules);
            prompt.push('\n');
        }
    }
    prompt.push_str("\nThe task:\n");
    prompt.extend(request.user_message.chars().take(SEEN));
    prompt
}

/// What a model answered; `None` if there is no title in it.
pub(super) fn read(text: &str, wants_branch: bool) -> Option<Title> {
    let line = |prefix: &str| {
        let of = |line: &str| {
            let line = line.trim();
            let head = line.get(..prefix.len())?;
            head.eq_ignore_ascii_case(prefix).then(|| line[prefix.len()..].to_owned())
        };
        text.lines().filter_map(of).next_back()
    };
    let title = line("title:").unwrap_or_else(|| text.to_owned());
    let branch = wants_branch.then(|| line("branch:")).flatten();
    let title = normal(&title);
    let branch = branch.map(|branch| branch_name(&branch)).filter(|branch| !branch.is_empty());
    (!title.is_empty()).then_some(Title { title, branch })
}

fn normal(title: &str) -> String {
    let quote = |letter: char| matches!(letter, '"' | '\'' | '“' | '”' | '‘' | '’') || letter.is_whitespace();
    let words: Vec<&str> = title.trim_matches(quote).split_whitespace().collect();
    let title = words.join(" ");
    if title.chars().count() <= LONGEST {
        return title;
    }
    title.chars().take(LONGEST - 3).chain("...".chars()).collect()
}

fn branch_name(branch: &str) -> String {
    let mut name = String::new();
    for letter in branch.chars().filter(|letter| matches!(letter, 'a'..='z' | '0'..='9' | '-')) {
        if letter != '-' || !name.ends_with('-') {
            name.push(letter);
        }
    }
    let name = name.strip_prefix('-').unwrap_or(&name);
    name.strip_suffix('-').unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_and_branches_are_taken_from_their_lines() {
        let title = |text: &str, wants_branch: bool| {
            read(text, wants_branch).map(|title| (title.title, title.branch))
        };
        let some = |title: &str, branch: Option<&str>| Some((title.to_owned(), branch.map(str::to_owned)));
        for (text, wants_branch, expected) in [
            ("title: Fix it\nbranch: fix-it", true, some("Fix it", Some("fix-it"))),
            ("title: Fix it\nbranch: fix-it", false, some("Fix it", None)),
            (
                "  TITLE:  “Fix   it”  \r\nBranch: Fix/It_now--soon-",
                true,
                some("Fix it", Some("ixtnow-soon")),
            ),
            ("title: one\ntitle: two\nbranch: ---", true, some("two", None)),
            ("Just\n words", true, some("Just words", None)),
            ("title: ''", true, None),
            ("", true, None),
            (" \n ", true, None),
            ("títle: é", true, some("títle: é", None)),
        ] {
            assert_eq!(title(text, wants_branch), expected, "{text:?}");
        }
    }

    #[test]
    fn a_title_has_eighty_characters_at_most() {
        let at = |count: usize| read(&format!("title: {}", "é".repeat(count)), true).unwrap().title;
        assert_eq!(at(80), "é".repeat(80));
        assert_eq!(at(81), format!("{}...", "é".repeat(77)));
    }
}
