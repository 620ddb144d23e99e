const map = new Map();
let sum = 0;
for (let i = 0; i < n; i++) map.set(i, i);
for (let i = 0; i < n; i++) {
  map.delete(i);
  for (const [key] of map) {
    sum += key;
    break;
  }
}
const result = sum + map.size;
