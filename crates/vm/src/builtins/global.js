// The global object's own functions that belong to no constructor.
(function () {
  // Its methods appear when the host grants them: see console.rs.
  const console = {};
  %Hidden(%Global(), "console", console);
  %Tag(console, "console");
  %Install(%Global(), {
    // Code cannot be made from text; anything else is its own value, as the language has it.
    eval(x) {
      if (typeof x !== "string") return x;
      %ThrowTypeError("eval is unavailable in the supported surface");
    },
  }, "globalThis");
})();
