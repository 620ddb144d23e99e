// A comparator written by the guest.
const list = [];
let seed = 42;
for (let i = 0; i < 100000; i++) {
  seed = (seed * 16807) % 2147483647;
  list.push(seed);
}
list.sort((a, b) => a - b);
let sum = 0;
for (let i = 0; i < list.length; i += 997) sum = (sum * 31 + list[i]) % 1000003;
const result = sum;
