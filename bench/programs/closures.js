// Closures made and called, over one variable that they share and one that each has for itself.
let shared = 0;
const counters = [];
for (let i = 0; i < 200000; i++) {
  let own = i;
  const bump = () => { own += 1; shared += 1; return own; };
  bump();
  counters[i % 100] = bump;
}
let sum = 0;
for (let round = 0; round < 2000; round++) {
  for (let i = 0; i < 100; i++) sum = (sum + counters[i]()) % 1000003;
}
const result = sum + shared;
