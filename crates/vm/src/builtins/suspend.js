// Async iteration: async generators once their body is over, `yield*`, sync iterators seen as async ones.
(function () {
  const ASYNC_ITERATOR = %Symbol("asyncIterator"), PROMISE_PROTO = %Proto("Promise");
  // The fields of an async generator's record, the parts of a request, and phases: see exec/suspend.rs.
  const STATE = 0, QUEUE = 10, LAST = 11;
  const MODE = 0, VALUE = 1, PROMISE = 2, NEXT = 3;
  const DONE = 3, RETURNING = 4;

  function asyncGeneratorAwaitReturn(generator, answer) {
    const value = %Slot(generator, QUEUE)[VALUE];
    let promise;
    try { promise = %PromiseResolve(value); } catch (e) {
      asyncGeneratorOver(generator, 1, e);
      return answer;
    }
    %PromiseThen(promise, v => asyncGeneratorOver(generator, 0, v), e => asyncGeneratorOver(generator, 1, e));
    return answer;
  }
  function asyncGeneratorOver(generator, failed, value) {
    for (;;) {
      const request = %Slot(generator, QUEUE), next = request[NEXT];
      %SetSlot(generator, QUEUE, next);
      if (next === undefined) %SetSlot(generator, LAST, undefined);
      if (failed === 1) %PromiseSettle(request[PROMISE], value, true);
      else %ResolvePromise(request[PROMISE], %IterResult(value, true));
      const waiting = %Slot(generator, QUEUE);
      if (waiting === undefined) {
        %SetSlot(generator, STATE, DONE);
        return;
      }
      if (waiting[MODE] === 2) {
        %SetSlot(generator, STATE, RETURNING);
        asyncGeneratorAwaitReturn(generator);
        return;
      }
      failed = waiting[MODE];
      value = failed === 1 ? waiting[VALUE] : undefined;
    }
  }

  // One step of `yield*`. Answers the hole if the iterator lacks the method that is needed.
  function delegateStep(iterator, next, mode, sent) {
    if (mode === 0) return %Call(next, iterator, sent);
    const method = mode === 1 ? iterator.throw : iterator.return;
    if (method === undefined || method === null) return %Done();
    return %Call(method, iterator, sent);
  }

  function getAsyncIterator(iterable) {
    const method = iterable[ASYNC_ITERATOR];
    if (method !== undefined && method !== null) {
      const iterator = %Call(method, iterable);
      if (!%IsObject(iterator)) %ThrowTypeError("Result of the Symbol.asyncIterator method is not an object");
      return [iterator, iterator.next];
    }
    const pair = %getIterator(iterable);
    const wrapped = %NewSlots("AsyncFromSyncIterator", FROM_SYNC, pair[0], pair[1]);
    return [wrapped, next];
  }

  // Objects of this prototype never reach a guest.
  const FROM_SYNC = %Proto("AsyncFromSyncIterator");
  const CLOSE = 1, KEEP = 0;
  function continuation(promise, result, iterator, closing) {
    if (!%IsObject(result)) %ThrowTypeError("Iterator result is not an object");
    const done = !!result.done, value = result.value;
    closing = !done && closing === CLOSE;
    let wrapped;
    try { wrapped = %PromiseResolve(value); } catch (e) {
      if (closing) %iteratorAbort(iterator);
      throw e;
    }
    %PromiseThen(wrapped, v => %IterResult(v, done),
      closing ? e => { %iteratorAbort(iterator); throw e; } : undefined, promise);
  }
  function next(v) {
    const promise = %PromiseNew(PROMISE_PROTO), iterator = %Slot(this, 0);
    try {
      continuation(promise, %ArgCount() > 0 ? %Call(%Slot(this, 1), iterator, v) : %Call(%Slot(this, 1), iterator), iterator, CLOSE);
    } catch (e) { %PromiseSettle(promise, e, true); }
    return promise;
  }
  %Install(FROM_SYNC, {
    next,
    return(v) {
      const promise = %PromiseNew(PROMISE_PROTO), iterator = %Slot(this, 0), given = %ArgCount() > 0;
      try {
        const method = %getMethod(iterator, "return");
        if (method === undefined) %ResolvePromise(promise, %IterResult(v, true));
        else continuation(promise, given ? %Call(method, iterator, v) : %Call(method, iterator), iterator, KEEP);
      } catch (e) { %PromiseSettle(promise, e, true); }
      return promise;
    },
    throw(v) {
      const promise = %PromiseNew(PROMISE_PROTO), iterator = %Slot(this, 0), given = %ArgCount() > 0;
      try {
        const method = %getMethod(iterator, "throw");
        if (method === undefined) {
          %iteratorClose(iterator);
          %ThrowTypeError("The iterator does not provide a 'throw' method");
        }
        continuation(promise, given ? %Call(method, iterator, v) : %Call(method, iterator), iterator, CLOSE);
      } catch (e) { %PromiseSettle(promise, e, true); }
      return promise;
    },
  }, "AsyncFromSyncIterator.prototype");

  const AsyncGenerator = %Proto("AsyncGenerator");
  %Install(AsyncGenerator, {
    next(v) { return %AsyncGeneratorResume(this, 0, v); },
    return(v) { return %AsyncGeneratorResume(this, 2, v); },
    throw(v) { return %AsyncGeneratorResume(this, 1, v); },
  }, "AsyncGenerator.prototype");
  %Tag(AsyncGenerator, "AsyncGenerator");
  %Tag(%Proto("Generator"), "Generator");
  %Install(%Proto("AsyncIterator"), { [ASYNC_ITERATOR]() { return this; } }, "AsyncIterator.prototype");
  for (const [name, of] of [["GeneratorFunction", "Generator"], ["AsyncGeneratorFunction", "AsyncGenerator"]]) {
    const functions = %Proto(name), objects = %Proto(of);
    %Fixed(functions, "prototype", objects);
    %Fixed(objects, "constructor", functions);
    %Tag(functions, name);
  }
  %Tag(%Proto("AsyncFunction"), "AsyncFunction");

  %Share("asyncGeneratorAwaitReturn", asyncGeneratorAwaitReturn);
  %Share("asyncGeneratorOver", asyncGeneratorOver);
  %Share("delegateStep", delegateStep);
  %Share("getAsyncIterator", getAsyncIterator);
})();
