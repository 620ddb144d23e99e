// map, filter and reduce.
const list = [];
for (let i = 0; i < 100000; i++) list.push(i);
let sum = 0;
for (let round = 0; round < 5; round++) {
  sum += list.map((x) => x * 2).filter((x) => x % 3 === 0).reduce((a, b) => (a + b) % 1000003, round);
}
const result = sum;
