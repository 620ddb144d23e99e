// The Error family. A `stack` is written when an error is made.
(function () {
  function make(newTarget, active, fallback, message, options) {
    const prototype = %protoFrom(newTarget === undefined ? active : newTarget, fallback);
    const error = message === undefined ? %MakeError(prototype) : %MakeError(prototype, `${message}`);
    if (%IsObject(options) && "cause" in options) %Hidden(error, "cause", options.cause);
    return error;
  }
  function name(proto, text) {
    %Hidden(proto, "name", text);
    %Hidden(proto, "message", "");
  }

  // The defaults only keep a parameter out of `length`.
  const proto = %Proto("Error");
  const ErrorC = %Constructor(function Error(message, options = undefined) { return make(new.target, ErrorC, proto, message, options); }, proto);
  name(proto, "Error");
  %Install(proto, {
    toString() {
      if (!%IsObject(this)) %ThrowTypeError("Error.prototype.toString requires that 'this' be a JSReceiver");
      const given = this.name, name = given === undefined ? "Error" : `${given}`;
      const said = this.message, message = said === undefined ? "" : `${said}`;
      if (name === "") return message;
      return message === "" ? name : name + ": " + message;
    },
  }, "Error.prototype");
  %Install(ErrorC, {
    captureStackTrace(target) {
      if (!%IsObject(target)) %ThrowTypeError("Invalid argument");
      %DefineOwn(target, "stack", { __proto__: null, value: %Traceback(target), writable: true, enumerable: false, configurable: true });
    },
    isError(v) { return %Is("Error", v); },
  }, "Error");

  const typeProto = %Proto("TypeError");
  const TypeErrorC = %Constructor(function TypeError(message, options = undefined) { return make(new.target, TypeErrorC, typeProto, message, options); }, typeProto, ErrorC);
  name(typeProto, "TypeError");
  const referenceProto = %Proto("ReferenceError");
  const ReferenceErrorC = %Constructor(function ReferenceError(message, options = undefined) { return make(new.target, ReferenceErrorC, referenceProto, message, options); }, referenceProto, ErrorC);
  name(referenceProto, "ReferenceError");
  const rangeProto = %Proto("RangeError");
  const RangeErrorC = %Constructor(function RangeError(message, options = undefined) { return make(new.target, RangeErrorC, rangeProto, message, options); }, rangeProto, ErrorC);
  name(rangeProto, "RangeError");
  const syntaxProto = %Proto("SyntaxError");
  const SyntaxErrorC = %Constructor(function SyntaxError(message, options = undefined) { return make(new.target, SyntaxErrorC, syntaxProto, message, options); }, syntaxProto, ErrorC);
  name(syntaxProto, "SyntaxError");
  const evalProto = %Proto("EvalError");
  const EvalErrorC = %Constructor(function EvalError(message, options = undefined) { return make(new.target, EvalErrorC, evalProto, message, options); }, evalProto, ErrorC);
  name(evalProto, "EvalError");
  const uriProto = %Proto("URIError");
  const URIErrorC = %Constructor(function URIError(message, options = undefined) { return make(new.target, URIErrorC, uriProto, message, options); }, uriProto, ErrorC);
  name(uriProto, "URIError");
  const aggregateProto = %Proto("AggregateError");
  const AggregateErrorC = %Constructor(function AggregateError(errors, message, options = undefined) {
    const error = make(new.target, AggregateErrorC, aggregateProto, message, options);
    const list = %NewArray();
    for (const e of errors) %Append(list, e);
    %Hidden(error, "errors", list);
    return error;
  }, aggregateProto, ErrorC);
  name(aggregateProto, "AggregateError");
})();
