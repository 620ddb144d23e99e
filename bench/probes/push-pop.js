const list = [];
let sum = 0;
for (let i = 0; i < n; i++) list.push(i);
for (let i = 0; i < n; i++) {
  list.push(i);
  sum += list.pop();
}
while (list.length > 0) sum += list.pop();
const result = sum;
