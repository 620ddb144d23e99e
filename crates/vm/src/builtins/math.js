// Math: what the natives leave over is arguments that are objects; they are converted here, in order.
(function () {
  const Math = {};
  %Hidden(%Global(), "Math", Math);
  %Tag(Math, "Math");
  %Const(Math, "E", 2.718281828459045);
  %Const(Math, "LN10", 2.302585092994046);
  %Const(Math, "LN2", 0.6931471805599453);
  %Const(Math, "LOG10E", 0.4342944819032518);
  %Const(Math, "LOG2E", 1.4426950408889634);
  %Const(Math, "PI", 3.141592653589793);
  %Const(Math, "SQRT1_2", 0.7071067811865476);
  %Const(Math, "SQRT2", 1.4142135623730951);
  function numbers(list) {
    for (let i = 0; i < list.length; i++) list[i] = +list[i];
    return list;
  }
  %Install(Math, {
    abs(x) { return %MathAbs(+x); },
    acos(x) { return %MathAcos(+x); },
    acosh(x) { return %MathAcosh(+x); },
    asin(x) { return %MathAsin(+x); },
    asinh(x) { return %MathAsinh(+x); },
    atan(x) { return %MathAtan(+x); },
    atanh(x) { return %MathAtanh(+x); },
    atan2(y, x) { return %MathAtan2(+y, +x); },
    cbrt(x) { return %MathCbrt(+x); },
    ceil(x) { return %MathCeil(+x); },
    clz32(x) { return %MathClz32(+x); },
    cos(x) { return %MathCos(+x); },
    cosh(x) { return %MathCosh(+x); },
    exp(x) { return %MathExp(+x); },
    expm1(x) { return %MathExpm1(+x); },
    floor(x) { return %MathFloor(+x); },
    fround(x) { return %MathFround(+x); },
    hypot(x, y) {
      const list = numbers(%Arguments());
      let result = 0;
      for (let i = 0; i < list.length; i++) result = %MathHypot(result, list[i]);
      return result;
    },
    imul(x, y) { return %MathImul(+x, +y); },
    log(x) { return %MathLog(+x); },
    log1p(x) { return %MathLog1p(+x); },
    log10(x) { return %MathLog10(+x); },
    log2(x) { return %MathLog2(+x); },
    max(x, y) {
      const list = numbers(%Arguments());
      let result = -Infinity;
      for (let i = 0; i < list.length; i++) result = %MathMax(result, list[i]);
      return result;
    },
    min(x, y) {
      const list = numbers(%Arguments());
      let result = Infinity;
      for (let i = 0; i < list.length; i++) result = %MathMin(result, list[i]);
      return result;
    },
    pow(base, exponent) { return %MathPow(+base, +exponent); },
    random() { return %MathRandom(); },
    round(x) { return %MathRound(+x); },
    sign(x) { return %MathSign(+x); },
    sin(x) { return %MathSin(+x); },
    sinh(x) { return %MathSinh(+x); },
    sqrt(x) { return %MathSqrt(+x); },
    tan(x) { return %MathTan(+x); },
    tanh(x) { return %MathTanh(+x); },
    trunc(x) { return %MathTrunc(+x); },
  }, "Math");
})();
