const list = [];
let sum = 0;
for (let i = 0; i < n; i++) list.push(i);
while (list.length > 0) sum += list.shift();
const result = sum;
