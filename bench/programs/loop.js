// Integers in a loop, with a remainder that keeps them small.
let sum = 0;
for (let i = 0; i < 3000000; i++) sum = (sum + i * 3) % 1000003;
const result = sum;
