//! The runs that a new daemon shows: one that is done, and one that waits for whoever looks at it.

use serde_json::json;

use crate::runs::{Actor, NewRun, Runs, RunsError};

/// A script that reads something, computes, and is done.
const REPORT: &str = "\
// Three orders come from a tool; the sum is made in the sandbox.
const orders = load_orders();
const total = orders.reduce((sum, order) => sum + order.amount, 0);
print(`${orders.length} orders, ${total} in all`);
({ count: orders.length, total, largest: orders.toSorted((a, b) => b.amount - a.amount)[0].customer });
";

/// A script that needs a person.
const REFUND: &str = "\
// The call of `refund` needs a person. Until somebody answers, this run is a snapshot of a few kilobytes and no process:
// stop the daemon, start it again, and approve it tomorrow.
const order = { id: 1042, customer: 'Ada', amount: 129.5 };
print(`order ${order.id} of ${order.customer} came back`);
const done = refund(order.id, order.amount);
({ refunded: order.amount, reference: done.reference });
";

/// Gives a new daemon something to show.
pub(crate) async fn submit(runs: &Runs) -> Result<(), RunsError> {
    let report = json!({
        "id": "example-report",
        "title": "Example: add up three orders",
        "backend": "mustard",
        "script": REPORT,
        "tools": {
            "load_orders": {"value": [
                {"customer": "Ada", "amount": 120},
                {"customer": "Grace", "amount": 240},
                {"customer": "Edsger", "amount": 60},
            ]},
            "print": {"tool": "print"},
        },
    });
    let refund = json!({
        "id": "example-refund",
        "title": "Example: a refund that waits for you",
        "backend": "mustard",
        "script": REFUND,
        "tools": {"refund": "person", "print": {"tool": "print"}},
    });
    for run in [report, refund] {
        runs.submit(NewRun::from_value(run)?, Actor::new("daemon")).await?;
    }
    Ok(())
}
