// Values to about a megabyte of JSON, three times.
const rows = [];
for (let i = 0; i < 12000; i++) {
  rows.push({ id: i, name: 'row number ' + i, score: i * 0.37, tags: ['a', 'b\n'], ok: true, none: null });
}
let sum = 0;
for (let round = 0; round < 3; round++) {
  const text = JSON.stringify(rows);
  sum += text.length + text.charCodeAt(500000);
}
const result = sum;
