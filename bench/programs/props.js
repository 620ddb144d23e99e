// Property reads and writes on one object.
const o = { a: 1, b: 2, c: 3 };
for (let i = 0; i < 1000000; i++) {
  o.a = o.b + i;
  o.b = o.c & 255;
  o.c = o.a ^ o.b;
}
const result = o.a + o.b + o.c;
