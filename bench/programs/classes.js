// Methods through a prototype, a subclass, a getter and a field.
class Shape {
  sides = 0;
  constructor(size) { this.size = size; }
  area() { return this.size * this.size; }
  grow(by) { this.size += by; return this; }
}
class Square extends Shape {
  constructor(size) { super(size); this.sides = 4; }
  area() { return super.area() + this.sides; }
  get edge() { return this.size; }
}
const shapes = [new Shape(1), new Square(2), new Square(3)];
let sum = 0;
for (let i = 0; i < 400000; i++) {
  const shape = shapes[i % 3];
  sum = (sum + shape.area()) % 1000003;
  shape.grow(i % 2 === 0 ? 1 : -1);
}
for (let i = 0; i < 100000; i++) sum = (sum + new Square(i % 10).edge) % 1000003;
const result = sum;
