// A hundred thousand keys of two kinds in a Map, and a Set of them.
const map = new Map();
const set = new Set();
for (let i = 0; i < 100000; i++) {
  map.set(i, i * 2);
  map.set('k' + (i % 5000), i);
  set.add(i % 1000);
}
let sum = 0;
for (let i = 0; i < 100000; i++) {
  if (map.has(i * 2)) sum += map.get(i * 2);
  if (set.has(i)) sum += 1;
}
for (let i = 0; i < 100000; i += 2) map.delete(i);
for (const [key, value] of map) if (typeof key === 'number') sum += value;
set.forEach((value) => { sum += value; });
const result = sum + map.size + set.size;
