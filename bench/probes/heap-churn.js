const live = [];
for (let i = 0; i < n; i++) live.push({ i, next: null });
let sum = 0;
for (let i = 0; i < n * 10; i++) {
  const fresh = { i, next: live[i % n] };
  if (i % 10 === 0) live[(i * 7) % n] = { i, next: null };
  sum += fresh.next.i % 3;
}
const result = sum;
