// Number, Boolean and the global functions about numbers; what the natives leave over is objects.
(function () {
  const prototype = %Proto("Number"), booleanPrototype = %Proto("Boolean"), global = %Global();

  const Number = %Constructor(function Number(value) {
    let x = 0;
    if (%ArgCount() > 0) {
      x = %toNumeric(value);
      if (typeof x === "bigint") x = %BigIntToNumber(x);
    }
    if (new.target === undefined) return x;
    return %NewCell("Number", %protoFrom(new.target, prototype), x);
  }, prototype);
  %Const(Number, "EPSILON", 2.220446049250313e-16);
  %Const(Number, "MAX_SAFE_INTEGER", 9007199254740991);
  %Const(Number, "MAX_VALUE", 1.7976931348623157e308);
  %Const(Number, "MIN_SAFE_INTEGER", -9007199254740991);
  %Const(Number, "MIN_VALUE", 5e-324);
  %Const(Number, "NaN", 0 / 0);
  %Const(Number, "NEGATIVE_INFINITY", -1 / 0);
  %Const(Number, "POSITIVE_INFINITY", 1 / 0);

  // The natives answer these four for every value.
  %Install(Number, {
    isFinite(number) {},
    isInteger(number) {},
    isNaN(number) {},
    isSafeInteger(number) {},
  }, "Number");

  function numberOf(x, name) {
    if (typeof x === "number") return x;
    if (%Is("Number", x)) return %CellOf(x);
    %ThrowTypeError("Number.prototype." + name + " requires that 'this' be a Number");
  }
  %Install(prototype, {
    toExponential(fractionDigits) {
      const x = numberOf(this, "toExponential");
      return %NumberToExponential(x, fractionDigits === undefined ? fractionDigits : +fractionDigits);
    },
    toFixed(fractionDigits) { const x = numberOf(this, "toFixed"); return %NumberToFixed(x, +fractionDigits); },
    toLocaleString(locales = undefined, options = undefined) {
      return %numberToLocale(numberOf(this, "toLocaleString"), locales, options);
    },
    toPrecision(precision) {
      const x = numberOf(this, "toPrecision");
      return %NumberToPrecision(x, precision === undefined ? precision : +precision);
    },
    toString(radix) {
      const x = numberOf(this, "toString");
      return %NumberToString(x, radix === undefined ? radix : +radix);
    },
    valueOf() { return numberOf(this, "valueOf"); },
  }, "Number.prototype");

  %Install(global, {
    isFinite(number) { number = +number; return number - number === 0; },
    isNaN(number) { number = +number; return number !== number; },
    parseFloat(string) { return %ParseFloat(`${string}`); },
    parseInt(string, radix) { string = `${string}`; return %ParseInt(string, +radix); },
  }, "global");
  %Hidden(Number, "parseFloat", global.parseFloat);
  %Hidden(Number, "parseInt", global.parseInt);

  %Constructor(function Boolean(value) {
    return %NewCell("Boolean", %protoFrom(new.target, booleanPrototype), !!value);
  }, booleanPrototype);
  %Install(booleanPrototype, {
    toString() { %ThrowTypeError("Boolean.prototype.toString requires that 'this' be a Boolean"); },
    valueOf() { %ThrowTypeError("Boolean.prototype.valueOf requires that 'this' be a Boolean"); },
  }, "Boolean.prototype");
})();
