// BigInt: what the natives leave over is objects.
(function () {
  const prototype = %Proto("BigInt");
  function toBigInt(x) { return %PrimitiveToBigInt(%toPrimitive(x, "number")); }
  %Share("toBigInt", toBigInt);

  const BigInt = %Constructor(function BigInt(value) {
    if (new.target !== undefined) %ThrowTypeError("BigInt is not a constructor");
    const p = %toPrimitive(value, "number");
    return typeof p === "number" ? %NumberToBigInt(p) : %PrimitiveToBigInt(p);
  }, prototype);
  %Install(BigInt, {
    asIntN(bits, bigint) { bits = %toIndex(bits); return %BigIntAsIntN(bits, toBigInt(bigint)); },
    asUintN(bits, bigint) { bits = %toIndex(bits); return %BigIntAsUintN(bits, toBigInt(bigint)); },
  }, "BigInt");

  function bigintOf(x, name) {
    if (typeof x === "bigint") return x;
    if (%Is("BigInt", x)) return %CellOf(x);
    %ThrowTypeError("BigInt.prototype." + name + " requires that 'this' be a BigInt");
  }
  %Install(prototype, {
    toLocaleString(locales = undefined, options = undefined) {
      return %numberToLocale(bigintOf(this, "toLocaleString"), locales, options);
    },
    toString(radix = undefined) {
      const x = bigintOf(this, "toString");
      return %BigIntToString(x, radix === undefined ? radix : +radix);
    },
    valueOf() { return bigintOf(this, "valueOf"); },
  }, "BigInt.prototype");
  %Tag(prototype, "BigInt");
})();
