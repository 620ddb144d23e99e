const list = [];
let seed = 7;
for (let i = 0; i < n; i++) {
  seed = (seed * 16807) % 2147483647;
  list.push(seed);
}
list.sort((a, b) => a - b);
const result = list[0] + list[n - 1];
