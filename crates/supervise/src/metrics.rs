//! The numbers of a supervisor: what was started, what ended and why, and where every child is now.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::driver::{Child, ChildId, ChildStatus, WeakChild};
use crate::state::{Cause, Incarnation, Phase};
use crate::tree::{self, Pid, Usage};

/// The numbers as of one moment. What ended children did stays in the totals; they themselves are no longer listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// Processes started.
    pub starts: u64,
    /// Of those, how many replaced another one.
    pub restarts: u64,
    /// Ended processes (and failed starts) by cause; causes that never happened are 0.
    pub exits: Vec<(Cause, u64)>,
    /// The children that have not ended for good.
    pub children: Vec<ChildMetrics>,
}

/// The numbers of one child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildMetrics {
    /// Its id.
    pub id: ChildId,
    /// Its name.
    pub name: String,
    /// Its phase.
    pub phase: Phase,
    /// Its current process.
    pub incarnation: Incarnation,
    /// Its process id, while it runs.
    pub pid: Option<Pid>,
    /// How long that process has been running.
    pub uptime: Option<Duration>,
    /// What its tree uses; `None` unless [`Metrics::measure`] was asked.
    pub usage: Option<Usage>,
}

impl Metrics {
    /// Adds what the trees of all children use, from one pass over the process table. Reads files; not for an async task.
    pub fn measure(mut self) -> io::Result<Self> {
        let running: Vec<_> =
            self.children.iter_mut().filter_map(|child| child.pid.map(|pid| (pid, child))).collect();
        let pids: Vec<Pid> = running.iter().map(|(pid, _)| *pid).collect();
        let usages = tree::usage(&pids)?;
        for ((_, child), usage) in running.into_iter().zip(usages) {
            child.usage = usage;
        }
        Ok(self)
    }

    /// The Prometheus text exposition format, version 0.0.4.
    pub fn to_prometheus(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_prometheus(&mut text);
        text
    }

    fn write_prometheus(&self, out: &mut String) -> fmt::Result {
        family(out, "outrigger_child_starts_total", "counter", "Processes started.")?;
        writeln!(out, "outrigger_child_starts_total {}", self.starts)?;
        family(
            out,
            "outrigger_child_restarts_total",
            "counter",
            "Processes started in place of another one.",
        )?;
        writeln!(out, "outrigger_child_restarts_total {}", self.restarts)?;
        family(
            out,
            "outrigger_child_exits_total",
            "counter",
            "Ended processes and failed starts, by cause.",
        )?;
        for (cause, count) in &self.exits {
            writeln!(out, "outrigger_child_exits_total{{cause=\"{cause}\"}} {count}")?;
        }
        family(out, "outrigger_child_state", "gauge", "1 for the phase that a child is in.")?;
        for child in &self.children {
            writeln!(out, "outrigger_child_state{{{},state=\"{}\"}} 1", Labels(child), child.phase)?;
        }
        family(out, "outrigger_child_incarnation", "gauge", "Which process of the child this is.")?;
        for child in &self.children {
            writeln!(out, "outrigger_child_incarnation{{{}}} {}", Labels(child), child.incarnation.0)?;
        }
        family(out, "outrigger_child_uptime_seconds", "gauge", "How long its process has been running.")?;
        for (child, uptime) in self.children.iter().filter_map(|child| Some((child, child.uptime?))) {
            writeln!(out, "outrigger_child_uptime_seconds{{{}}} {:.3}", Labels(child), uptime.as_secs_f64())?;
        }
        family(out, "outrigger_child_resident_bytes", "gauge", "Resident memory of its process tree.")?;
        for (child, usage) in self.children.iter().filter_map(|child| Some((child, child.usage?))) {
            writeln!(out, "outrigger_child_resident_bytes{{{}}} {}", Labels(child), usage.rss_bytes)?;
        }
        family(out, "outrigger_child_processes", "gauge", "Processes in its tree.")?;
        for (child, usage) in self.children.iter().filter_map(|child| Some((child, child.usage?))) {
            writeln!(out, "outrigger_child_processes{{{}}} {}", Labels(child), usage.processes)?;
        }
        Ok(())
    }
}

fn family(out: &mut String, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}")
}

/// `id="7",name="build \"x\""`, escaped as the format wants it.
struct Labels<'a>(&'a ChildMetrics);

impl fmt::Display for Labels<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "id=\"{}\",name=\"", self.0.id)?;
        for character in self.0.name.chars() {
            match character {
                '\\' => f.write_str("\\\\")?,
                '"' => f.write_str("\\\"")?,
                '\n' => f.write_str("\\n")?,
                other => f.write_char(other)?,
            }
        }
        f.write_char('"')
    }
}

/// Where drivers write their numbers down.
#[derive(Debug)]
pub(crate) struct Registry {
    books: Mutex<Books>,
}

#[derive(Debug)]
struct Books {
    starts: u64,
    restarts: u64,
    exits: BTreeMap<&'static str, u64>,
    children: BTreeMap<ChildId, Known>,
}

/// A child as the books have it. They do not keep it alive.
#[derive(Debug)]
struct Known {
    name: String,
    status: watch::Receiver<ChildStatus>,
    child: WeakChild,
}

impl Registry {
    pub(crate) fn new() -> Self {
        let books = Books { starts: 0, restarts: 0, exits: BTreeMap::new(), children: BTreeMap::new() };
        Self { books: Mutex::new(books) }
    }

    pub(crate) fn add(
        &self,
        id: ChildId,
        name: String,
        status: watch::Receiver<ChildStatus>,
        child: WeakChild,
    ) {
        self.write(|books| books.children.insert(id, Known { name, status, child }));
    }

    pub(crate) fn child(&self, id: ChildId) -> Option<Child> {
        self.write(|books| books.children.get(&id).and_then(|known| known.child.upgrade()))
    }

    pub(crate) fn remove(&self, id: ChildId) {
        self.write(|books| books.children.remove(&id));
    }

    pub(crate) fn spawned(&self, incarnation: Incarnation) {
        self.write(|books| {
            books.starts += 1;
            books.restarts += u64::from(incarnation.0 > 1);
        });
    }

    pub(crate) fn ended(&self, cause: Cause) {
        self.write(|books| *books.exits.entry(cause.code()).or_insert(0) += 1);
    }

    pub(crate) fn snapshot(&self) -> Metrics {
        self.write(|books| Metrics {
            starts: books.starts,
            restarts: books.restarts,
            exits: Cause::ALL
                .map(|cause| (cause, books.exits.get(cause.code()).copied().unwrap_or(0)))
                .into(),
            children: books
                .children
                .iter()
                .map(|(id, known)| child(*id, &known.name, *known.status.borrow()))
                .collect(),
        })
    }

    fn write<T>(&self, write: impl FnOnce(&mut Books) -> T) -> T {
        write(&mut self.books.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn child(id: ChildId, name: &str, status: ChildStatus) -> ChildMetrics {
    ChildMetrics {
        id,
        name: name.to_owned(),
        phase: status.phase,
        incarnation: status.incarnation,
        pid: status.pid,
        uptime: status.uptime(),
        usage: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scrape_is_valid_even_when_a_name_is_not_nice() {
        let registry = Registry::new();
        let (_sender, status) = watch::channel(ChildStatus {
            phase: Phase::Ready,
            incarnation: Incarnation(2),
            pid: Some(Pid::new(7)),
            running_since: None,
            ended: None,
        });
        registry.add(ChildId(1), "a \"b\" \\".into(), status, WeakChild::gone());
        registry.spawned(Incarnation(1));
        registry.spawned(Incarnation(2));
        registry.ended(Cause::Crash);
        let mut metrics = registry.snapshot();
        metrics.children[0].uptime = Some(Duration::from_millis(1500));
        metrics.children[0].usage = Some(Usage { processes: 2, rss_bytes: 4096 });
        insta::assert_snapshot!(metrics.to_prometheus());
    }

    #[test]
    fn a_child_that_ended_is_no_longer_listed() {
        let registry = Registry::new();
        let (_sender, status) = watch::channel(ChildStatus {
            phase: Phase::Exited,
            incarnation: Incarnation(1),
            pid: None,
            running_since: None,
            ended: None,
        });
        registry.add(ChildId(1), "a".into(), status, WeakChild::gone());
        registry.remove(ChildId(1));
        assert_eq!(registry.snapshot().children, []);
    }
}
