//! What a panel shows beside its title: a small tree of plain parts that the host draws. No markup, no links, no code.

use serde::{Deserialize, Serialize};

use super::text::{Flaw, Flaws, TextRule};
use crate::protocol::words::words;

/// The most nodes of one panel; each row of a `kv` counts as one.
pub const MAX_NODES: usize = 100;
/// How deep lists may be inside lists; a node that stands alone has depth 1.
pub const MAX_NODE_DEPTH: usize = 3;
/// The longest text of a node, in code points.
pub const MAX_NODE_TEXT: usize = 1024;

words! {
    /// What a text or badge means; the host chooses the colour.
    Tone ("tone") {
        /// Nothing in particular.
        Neutral = "neutral",
        /// Worth knowing.
        Info = "info",
        /// It went well.
        Success = "success",
        /// It may go wrong.
        Warning = "warning",
        /// It went wrong.
        Error = "error",
    }
}

/// One part of what a panel shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Node {
    /// A paragraph.
    Text {
        /// The text; newlines are kept.
        text: String,
        /// What it means.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tone: Option<Tone>,
    },
    /// Names and values.
    Kv {
        /// The rows.
        items: Vec<Row>,
    },
    /// A word in a coloured box.
    Badge {
        /// The word.
        text: String,
        /// What it means.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tone: Option<Tone>,
    },
    /// Nodes below each other.
    List {
        /// The nodes.
        items: Vec<Node>,
    },
    /// How far something is.
    Progress {
        /// How far; never more than `max`.
        value: u32,
        /// What is the whole; 100 when it is not said.
        #[serde(default = "hundred")]
        max: u32,
        /// What it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<String>,
    },
    /// A line across.
    Separator {},
}

/// A name and its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The name.
    pub key: String,
    /// The value.
    pub value: String,
}

/// Checks the nodes of one panel. Every flaw is named by its path below `content`.
pub fn check_nodes(nodes: &[Node]) -> Result<(), Vec<Flaw>> {
    let mut flaws = Flaws::default();
    check_content(&mut flaws, "/content", nodes);
    flaws.into_result()
}

pub(super) fn check_content(flaws: &mut Flaws, path: &str, nodes: &[Node]) {
    let mut left = MAX_NODES;
    check_level(flaws, path, nodes, 1, &mut left);
    if left == 0 && count(nodes) > MAX_NODES {
        flaws.add(path, format!("more than {MAX_NODES} nodes"));
    }
}

fn check_level(flaws: &mut Flaws, path: &str, nodes: &[Node], depth: usize, left: &mut usize) {
    if depth > MAX_NODE_DEPTH && !nodes.is_empty() {
        flaws.add(path, format!("nested deeper than {MAX_NODE_DEPTH}"));
        return;
    }
    for (index, node) in nodes.iter().enumerate() {
        if *left == 0 {
            return;
        }
        *left = left.saturating_sub(own_count(node));
        check_node(flaws, &format!("{path}/{index}"), node, depth, left);
    }
}

fn check_node(flaws: &mut Flaws, path: &str, node: &Node, depth: usize, left: &mut usize) {
    let paragraph = TextRule::lines(0, MAX_NODE_TEXT);
    let line = TextRule::line(0, MAX_NODE_TEXT);
    match node {
        Node::Text { text, tone: _ } => flaws.text(&format!("{path}/text"), text, paragraph),
        Node::Badge { text, tone: _ } => flaws.text(&format!("{path}/text"), text, line),
        Node::Kv { items } => {
            for (index, row) in items.iter().enumerate().take(MAX_NODES) {
                flaws.text(&format!("{path}/items/{index}/key"), &row.key, line);
                flaws.text(&format!("{path}/items/{index}/value"), &row.value, line);
            }
        }
        Node::List { items } => check_level(flaws, &format!("{path}/items"), items, depth + 1, left),
        Node::Progress { value, max, label } => {
            if *max == 0 {
                flaws.add(format!("{path}/max"), "zero");
            } else if value > max {
                flaws.add(format!("{path}/value"), "more than `max`");
            }
            if let Some(label) = label {
                flaws.text(&format!("{path}/label"), label, line);
            }
        }
        Node::Separator {} => {}
    }
}

/// All nodes, those inside lists too. The depth was bounded by whoever parsed the frame.
fn count(nodes: &[Node]) -> usize {
    let below = |node: &Node| match node {
        Node::List { items } => count(items),
        Node::Text { .. }
        | Node::Kv { .. }
        | Node::Badge { .. }
        | Node::Progress { .. }
        | Node::Separator {} => 0,
    };
    nodes.iter().map(|node| own_count(node) + below(node)).sum()
}

fn own_count(node: &Node) -> usize {
    match node {
        Node::Kv { items } => items.len().max(1),
        Node::Text { .. }
        | Node::Badge { .. }
        | Node::List { .. }
        | Node::Progress { .. }
        | Node::Separator {} => 1,
    }
}

fn hundred() -> u32 {
    100
}

#[cfg(test)]
mod tests {
    use super::*;

    fn separators(count: usize) -> Vec<Node> {
        vec![Node::Separator {}; count]
    }

    fn reasons(nodes: &[Node]) -> Vec<String> {
        let flaws = check_nodes(nodes).err().unwrap_or_default();
        flaws.into_iter().map(|flaw| format!("{} {}", flaw.path, flaw.reason)).collect()
    }

    #[test]
    fn a_hundred_nodes_are_shown_and_one_more_is_refused() {
        assert_eq!(check_nodes(&separators(100)), Ok(()));
        assert_eq!(reasons(&separators(101)), ["/content more than 100 nodes"]);
        let rows = |count| Node::Kv { items: vec![Row { key: "k".into(), value: "v".into() }; count] };
        assert_eq!(check_nodes(&[rows(100)]), Ok(()));
        assert_eq!(reasons(&[rows(99), rows(2)]), ["/content more than 100 nodes"]);
        assert_eq!(check_nodes(&[Node::List { items: separators(99) }]), Ok(()));
        assert_eq!(reasons(&[Node::List { items: separators(100) }]), ["/content more than 100 nodes"]);
    }

    #[test]
    fn lists_may_be_three_deep_and_not_four() {
        let list = |items| Node::List { items };
        assert_eq!(check_nodes(&[list(vec![list(separators(1))])]), Ok(()));
        let deep = [list(vec![list(vec![list(separators(1))])])];
        assert_eq!(reasons(&deep), ["/content/0/items/0/items/0/items nested deeper than 3"]);
    }

    #[test]
    fn texts_and_progress_are_checked_at_their_limits() {
        let text = |length: usize| Node::Text { text: "x".repeat(length), tone: None };
        assert_eq!(check_nodes(&[text(1024)]), Ok(()));
        assert_eq!(reasons(&[text(1025)]), ["/content/0/text longer than 1024 characters"]);
        let progress = |value, max| Node::Progress { value, max, label: None };
        assert_eq!(check_nodes(&[progress(7, 7)]), Ok(()));
        assert_eq!(reasons(&[progress(8, 7)]), ["/content/0/value more than `max`"]);
        assert_eq!(reasons(&[progress(0, 0)]), ["/content/0/max zero"]);
    }

    #[test]
    fn nodes_are_read_as_they_are_written_and_strangers_are_refused() {
        let json = r#"[{"type":"text","text":"hi"},{"type":"kv","items":[{"key":"a","value":"b"}]},{"type":"badge","text":"ok","tone":"success"},{"type":"list","items":[{"type":"separator"}]},{"type":"progress","value":3,"max":100,"label":"done"}]"#;
        let nodes: Vec<Node> = serde_json::from_str(json).expect("all six types");
        assert_eq!(serde_json::to_string(&nodes).expect("nodes are JSON"), json);
        for wrong in [
            r#"{"type":"html","text":"x"}"#,
            r#"{"type":"text","text":"x","href":"y"}"#,
            r#"{"type":"text"}"#,
            r#"{"type":"separator","x":1}"#,
        ] {
            assert!(serde_json::from_str::<Node>(wrong).is_err(), "{wrong}");
        }
    }
}
