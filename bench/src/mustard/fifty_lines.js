// Which customers are late, and by how much?
const LIMIT = 10;
const DAY = 24 * 60 * 60 * 1000;

function days(from, to) {
  return Math.floor((to - from) / DAY);
}

function group(rows, key) {
  const groups = new Map();
  for (const row of rows) {
    const name = row[key];
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(row);
  }
  return groups;
}

function summary(customer, invoices, today) {
  let total = 0;
  let oldest = today;
  for (const { amount, due } of invoices) {
    total += amount;
    if (due < oldest) oldest = due;
  }
  return { customer, total, late: days(oldest, today), count: invoices.length };
}

async function late(today) {
  const invoices = await fetch_data("invoices", { status: "open", limit: 1000 });
  const found = [];
  for (const [customer, rows] of group(invoices, "customer")) {
    const entry = summary(customer, rows, today);
    if (entry.late > 0 && entry.total >= LIMIT) {
      found.push(entry);
    }
  }
  found.sort((a, b) => b.late - a.late || b.total - a.total);
  return found.slice(0, 20);
}

// The answer is what the last expression gives.
const today = Date.now();
const worst = await late(today);
const lines = worst.map((entry, at) => {
  const { customer, total, late, count } = entry;
  const plural = count === 1 ? "" : "s";
  return `${at + 1}. ${customer}: ${total.toFixed(2)} in ${count} invoice${plural}, ${late} days`;
});
({ lines, total: worst.reduce((sum, entry) => sum + entry.total, 0) });
