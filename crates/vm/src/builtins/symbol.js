// Symbol: its constructor, the registry and the well-known ones.
(function () {
  const proto = %Proto("Symbol");
  const TO_PRIMITIVE = %Symbol("toPrimitive");
  const SymbolC = %Constructor(function Symbol(description = undefined) {
    if (new.target !== undefined) %ThrowTypeError("Symbol is not a constructor");
    return description === undefined ? %NewSymbol() : %NewSymbol(`${description}`);
  }, proto);
  %Const(SymbolC, "asyncIterator", %Symbol("asyncIterator"));
  %Const(SymbolC, "hasInstance", %Symbol("hasInstance"));
  %Const(SymbolC, "isConcatSpreadable", %Symbol("isConcatSpreadable"));
  %Const(SymbolC, "iterator", %Symbol("iterator"));
  %Const(SymbolC, "match", %Symbol("match"));
  %Const(SymbolC, "matchAll", %Symbol("matchAll"));
  %Const(SymbolC, "replace", %Symbol("replace"));
  %Const(SymbolC, "search", %Symbol("search"));
  %Const(SymbolC, "species", %Symbol("species"));
  %Const(SymbolC, "split", %Symbol("split"));
  %Const(SymbolC, "toPrimitive", TO_PRIMITIVE);
  %Const(SymbolC, "toStringTag", %Symbol("toStringTag"));
  %Const(SymbolC, "unscopables", %Symbol("unscopables"));
  %Install(SymbolC, {
    for(key) { return %SymbolFor(`${key}`); },
    keyFor(symbol) {
      if (typeof symbol !== "symbol") %ThrowTypeError(%Show(symbol) + " is not a symbol");
      return %SymbolKey(symbol);
    },
  }, "Symbol");
  function thisSymbol(v, name) {
    if (typeof v === "symbol") return v;
    if (%Is("Symbol", v)) return %CellOf(v);
    %ThrowTypeError("Symbol.prototype." + name + " requires that 'this' be a Symbol");
  }
  %Install(proto, {
    toString() {
      const text = %SymbolDescription(thisSymbol(this, "toString"));
      return "Symbol(" + (text === undefined ? "" : text) + ")";
    },
    valueOf() { return thisSymbol(this, "valueOf"); },
    get description() { return %SymbolDescription(thisSymbol(this, "description")); },
  }, "Symbol.prototype");
  const toPrimitive = { [TO_PRIMITIVE](hint) { return thisSymbol(this, "[Symbol.toPrimitive]"); } }[TO_PRIMITIVE];
  %DefineOwn(proto, TO_PRIMITIVE, { __proto__: null, value: toPrimitive, writable: false, enumerable: false, configurable: true });
  %Tag(proto, "Symbol");
})();
