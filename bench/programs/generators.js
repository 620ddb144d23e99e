// A generator in a loop, and one through another.
function* count(n) { for (let i = 0; i < n; i++) yield i; }
function* evens(n) { for (const i of count(n)) if (i % 2 === 0) yield i; }
let sum = 0;
for (const i of count(200000)) sum += i;
for (const i of evens(100000)) sum += i;
const result = sum;
