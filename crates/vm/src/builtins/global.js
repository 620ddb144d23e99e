// The global object's own functions that belong to no constructor.
(function () {
  %Install(%Global(), {
    // Code cannot be made from text; anything else is its own value, as the language has it.
    eval(x) {
      if (typeof x !== "string") return x;
      %ThrowTypeError("eval is unavailable in the supported surface");
    },
  }, "globalThis");
})();
