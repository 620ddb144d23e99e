// Objects that die young.
function add(a, b) { return { x: a.x + b.x, y: a.y + b.y }; }
let at = { x: 0, y: 0 };
for (let i = 0; i < 300000; i++) {
  const step = { x: i % 7, y: i % 5 };
  at = add(at, step);
}
const result = at.x * 3 + at.y;
