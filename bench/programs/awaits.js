// Ten thousand awaits of a value, and ten thousand of an async function's answer.
async function one(i) { return i; }
let sum = 0;
for (let i = 0; i < 10000; i++) {
  sum += await i;
  sum += await one(i);
}
const result = sum;
