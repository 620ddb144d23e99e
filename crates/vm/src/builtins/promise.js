// Promise. A capability is a list of promise, resolve and reject; one of a plain promise is just the promise: the natives
// settle it without functions.
(function () {
  const SPECIES = %Symbol("species"), PromiseProto = %Proto("Promise");
  const Promise = %Constructor(function Promise(executor) {
    if (new.target === undefined) %ThrowTypeError("Promise constructor cannot be invoked without 'new'");
    if (!%IsCallable(executor)) %ThrowTypeError("Promise resolver " + %Describe(executor) + " is not a function");
    const promise = %PromiseNew(%protoFrom(new.target, PromiseProto));
    const resolve = %PromiseResolver(promise), reject = %PromiseRejecter(resolve);
    try { %CallExecutor(executor, undefined, resolve, reject); } catch (e) { reject(e); }
    return promise;
  }, PromiseProto);
  // What resolving does with a value whose `then` is a getter.
  function resolveSlow(promise, value, answer) {
    let then;
    try { then = value.then; } catch (e) { %PromiseSettle(promise, e, true); return answer; }
    if (%IsCallable(then)) %PromiseFollow(promise, value, then);
    else %PromiseSettle(promise, value, false);
    return answer;
  }
  // A reaction of a promise whose dependent is not plain.
  function runReaction(handler, capability, value, rejected) {
    if (handler === undefined) return %Call(capability[rejected ? 2 : 1], undefined, value);
    let result;
    try { result = %Call(handler, undefined, value); } catch (e) { return %Call(capability[2], undefined, e); }
    return %Call(capability[1], undefined, result);
  }
  function newCapability(C) {
    if (C === Promise) {
      const promise = %PromiseNew(PromiseProto), resolve = %PromiseResolver(promise);
      return [promise, resolve, %PromiseRejecter(resolve)];
    }
    if (!%IsConstructor(C)) %ThrowTypeError(%Describe(C) + " is not a constructor");
    const capability = [undefined, undefined, undefined];
    const promise = new C((resolve, reject) => {
      if (capability[1] !== undefined || capability[2] !== undefined) %ThrowTypeError("Promise executor has already been invoked with non-undefined arguments");
      capability[1] = resolve;
      capability[2] = reject;
    });
    if (!%IsCallable(capability[1]) || !%IsCallable(capability[2])) %ThrowTypeError("Promise resolve or reject function is not callable");
    capability[0] = promise;
    return capability;
  }
  function promiseResolve(C, x) {
    if (%Is("Promise", x) && x.constructor === C) return x;
    if (C === Promise) {
      const promise = %PromiseNew(PromiseProto);
      if (%IsObject(x)) resolveSlow(promise, x);
      else %PromiseSettle(promise, x, false);
      return promise;
    }
    const capability = newCapability(C);
    %Call(capability[1], undefined, x);
    return capability[0];
  }
  // GetPromiseResolve.
  function resolverOf(C) {
    const resolve = C.resolve;
    if (!%IsCallable(resolve)) %ThrowTypeError("Promise resolve or reject function is not callable");
    return resolve;
  }
  function checkConstructor(C, name) {
    if (!%IsObject(C)) %ThrowTypeError("Promise." + name + " called on non-object");
  }
  %Install(Promise, { get [SPECIES]() { return this; } }, "Promise");
  %Share("promiseSpecies", %GetterOf(Promise, SPECIES));
  %Install(Promise, {
    all(iterable) {
      const capability = newCapability(this);
      try {
        const promiseResolve = resolverOf(this), values = %NewArray();
        let remaining = 1, index = 0;
        for (const item of iterable) {
          const at = index++;
          %Append(values, undefined);
          const next = %Call(promiseResolve, this, item);
          let called = false;
          remaining++;
          next.then((value) => {
            if (called) return;
            called = true;
            values[at] = value;
            if (--remaining === 0) return %Call(capability[1], undefined, values);
          }, capability[2]);
        }
        if (--remaining === 0) %Call(capability[1], undefined, values);
      } catch (e) { %Call(capability[2], undefined, e); }
      return capability[0];
    },
    allSettled(iterable) {
      const capability = newCapability(this);
      try {
        const promiseResolve = resolverOf(this), values = %NewArray();
        let remaining = 1, index = 0;
        for (const item of iterable) {
          const at = index++;
          %Append(values, undefined);
          const next = %Call(promiseResolve, this, item);
          let called = false;
          remaining++;
          next.then((value) => {
            if (called) return;
            called = true;
            values[at] = { status: "fulfilled", value };
            if (--remaining === 0) return %Call(capability[1], undefined, values);
          }, (reason) => {
            if (called) return;
            called = true;
            values[at] = { status: "rejected", reason };
            if (--remaining === 0) return %Call(capability[1], undefined, values);
          });
        }
        if (--remaining === 0) %Call(capability[1], undefined, values);
      } catch (e) { %Call(capability[2], undefined, e); }
      return capability[0];
    },
    any(iterable) {
      const capability = newCapability(this);
      try {
        const promiseResolve = resolverOf(this), errors = %NewArray();
        let remaining = 1, index = 0;
        for (const item of iterable) {
          const at = index++;
          %Append(errors, undefined);
          const next = %Call(promiseResolve, this, item);
          let called = false;
          remaining++;
          next.then(capability[1], (error) => {
            if (called) return;
            called = true;
            errors[at] = error;
            if (--remaining === 0) return %Call(capability[2], undefined, %AllRejected(errors));
          });
        }
        if (--remaining === 0) throw %AllRejected(errors);
      } catch (e) { %Call(capability[2], undefined, e); }
      return capability[0];
    },
    race(iterable) {
      const capability = newCapability(this);
      try {
        const promiseResolve = resolverOf(this);
        for (const item of iterable) {
          const next = %Call(promiseResolve, this, item);
          next.then(capability[1], capability[2]);
        }
      } catch (e) { %Call(capability[2], undefined, e); }
      return capability[0];
    },
    reject(reason) {
      const capability = newCapability(this);
      %Call(capability[2], undefined, reason);
      return capability[0];
    },
    resolve(value) {
      checkConstructor(this, "resolve");
      return promiseResolve(this, value);
    },
    try(callback) {
      checkConstructor(this, "try");
      const all = %Arguments(), capability = newCapability(this), args = %NewArray();
      for (let i = 1; i < all.length; i++) %Append(args, all[i]);
      let result;
      try { result = %Apply(callback, undefined, args); } catch (e) {
        %Call(capability[2], undefined, e);
        return capability[0];
      }
      %Call(capability[1], undefined, result);
      return capability[0];
    },
    withResolvers() {
      const capability = newCapability(this);
      return { promise: capability[0], resolve: capability[1], reject: capability[2] };
    },
  }, "Promise");
  %Install(PromiseProto, {
    catch(onRejected) { return this.then(undefined, onRejected); },
    finally(onFinally) {
      if (!%IsObject(this)) %ThrowTypeError("Promise.prototype.finally called on a non-object");
      const C = %speciesConstructor(this, Promise);
      if (!%IsCallable(onFinally)) return this.then(onFinally, onFinally);
      return this.then((value) => {
        const result = onFinally();
        const promise = promiseResolve(C, result);
        return promise.then(() => value);
      }, (reason) => {
        const result = onFinally();
        const promise = promiseResolve(C, result);
        return promise.then(() => { throw reason; });
      });
    },
    then(onFulfilled, onRejected) {
      if (!%Is("Promise", this)) %ThrowTypeError("Method Promise.prototype.then called on incompatible receiver " + %Describe(this));
      const C = %speciesConstructor(this, Promise);
      if (C === Promise) return %PromiseThen(this, onFulfilled, onRejected, %PromiseNew(PromiseProto));
      const capability = newCapability(C);
      %PromiseThen(this, onFulfilled, onRejected, capability);
      return capability[0];
    },
  }, "Promise.prototype");
  %Tag(PromiseProto, "Promise");
  %Share("promiseConstructor", Promise);
  %Share("promiseThen", PromiseProto.then);
  %Share("resolveSlow", resolveSlow);
  %Share("runReaction", runReaction);
  %Share("promiseResolve", promiseResolve);
})();
