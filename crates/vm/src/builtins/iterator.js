// Iterator, its helpers, and the prototypes of generators. A helper is an object around a generator of ours: suspending,
// "already running" and being finished are the generator's own business.
(function () {
  const ITERATOR = %Symbol("iterator"), TAG = %Symbol("toStringTag");
  const IteratorProto = %Proto("Iterator"), HelperProto = %Proto("IteratorHelper"), WrapProto = %Proto("WrapForValidIterator");
  const GeneratorProto = %Proto("Generator");
  %Install(GeneratorProto, { next(value) {}, return(value) {}, throw(exception) {} }, "Generator.prototype");
  const generatorNext = GeneratorProto.next, generatorReturn = GeneratorProto.return;
  %Share("iteratorResult", function (result) {
    if (!%IsObject(result)) %ThrowTypeError("Iterator result " + %Describe(result) + " is not an object");
    return result.done ? %Done() : result.value;
  });
  %Share("generatorNext", generatorNext);
  %Share("mapIteratorNext", %Proto("MapIterator").next);
  %Share("setIteratorNext", %Proto("SetIterator").next);
  %Share("stringIteratorNext", %Proto("StringIterator").next);
  // Code cannot be made from text: these constructors only exist to be found along the prototype chain.
  function refuse() { %ThrowTypeError("Function constructor is unavailable in the supported surface"); }
  const Function = %Global().Function;
  %Fixed(%Proto("GeneratorFunction"), "constructor", %Class(function GeneratorFunction(code) { refuse(); }, %Proto("GeneratorFunction"), Function));
  %Fixed(%Proto("AsyncFunction"), "constructor", %Class(function AsyncFunction(code) { refuse(); }, %Proto("AsyncFunction"), Function));
  %Fixed(%Proto("AsyncGeneratorFunction"), "constructor", %Class(function AsyncGeneratorFunction(code) { refuse(); }, %Proto("AsyncGeneratorFunction"), Function));

  const Iterator = %Constructor(function Iterator() {
    if (new.target === undefined) %ThrowTypeError("Constructor Iterator requires 'new'");
    if (new.target === Iterator) %ThrowTypeError("Abstract class Iterator not directly constructable");
    return %NewObject(%protoFrom(new.target, IteratorProto));
  }, IteratorProto);
  function checkObject(that, name) {
    if (!%IsObject(that)) %ThrowTypeError("Iterator.prototype." + name + " called on non-object");
  }
  function checkCallable(that, f) {
    if (%IsCallable(f)) return;
    %iteratorAbort(that);
    %ThrowTypeError(%Describe(f) + " is not a function");
  }
  // The limit of take and drop; a bad one closes the iterator.
  function checkLimit(that, limit) {
    let n;
    try { n = +limit; } catch (e) {
      %iteratorAbort(that);
      throw e;
    }
    const integer = n !== n || n > 9007199254740991 && n !== Infinity ? -1 : %toIntegerOrInfinity(n);
    if (integer < 0) {
      %iteratorAbort(that);
      %ThrowRangeError(%Describe(limit) + " must be positive");
    }
    return integer;
  }
  // SetterThatIgnoresPrototypeProperties.
  function setOwn(that, key, value) {
    if (!%IsObject(that)) %ThrowTypeError("Iterator.prototype setter called on non-object");
    if (that === IteratorProto) %ThrowTypeError("Cannot assign to this property of Iterator.prototype");
    if (%GetOwn(that, key) === undefined) %CreateData(that, key, value);
    else that[key] = value;
  }
  // GetIteratorFlattenable for an object.
  function flattenable(o) {
    const method = %getMethod(o, ITERATOR);
    if (method === undefined) return o;
    const iterator = %Call(method, o);
    if (!%IsObject(iterator)) %ThrowTypeError(%Describe(iterator) + " is not an object");
    return iterator;
  }
  function close(iterator, e) { %iteratorAbort(iterator); throw e; }
  // What a helper yields; leaving it early closes the iterator underneath.
  function* mapping(iterator, next, mapper) {
    for (let counter = 0; ; counter++) {
      const value = %iteratorStep(iterator, next);
      if (%IsDone(value)) return;
      let mapped, left = true;
      try { mapped = mapper(value, counter); } catch (e) { close(iterator, e); }
      try { yield mapped; left = false; } finally { if (left) %iteratorClose(iterator); }
    }
  }
  function* filtering(iterator, next, predicate) {
    for (let counter = 0; ; counter++) {
      const value = %iteratorStep(iterator, next);
      if (%IsDone(value)) return;
      let selected, left = true;
      try { selected = predicate(value, counter); } catch (e) { close(iterator, e); }
      if (!selected) continue;
      try { yield value; left = false; } finally { if (left) %iteratorClose(iterator); }
    }
  }
  function* taking(iterator, next, remaining) {
    for (;; remaining--) {
      if (remaining === 0) { %iteratorClose(iterator); return; }
      const value = %iteratorStep(iterator, next);
      if (%IsDone(value)) return;
      let left = true;
      try { yield value; left = false; } finally { if (left) %iteratorClose(iterator); }
    }
  }
  function* dropping(iterator, next, remaining) {
    for (; remaining > 0; remaining--) {
      const result = %Call(next, iterator);
      if (!%IsObject(result)) %ThrowTypeError("Iterator result " + %Describe(result) + " is not an object");
      if (result.done) return;
    }
    for (;;) {
      const value = %iteratorStep(iterator, next);
      if (%IsDone(value)) return;
      let left = true;
      try { yield value; left = false; } finally { if (left) %iteratorClose(iterator); }
    }
  }
  function* flattening(iterator, next, mapper) {
    for (let counter = 0; ; counter++) {
      const value = %iteratorStep(iterator, next);
      if (%IsDone(value)) return;
      let inner, innerNext;
      try {
        const mapped = mapper(value, counter);
        if (!%IsObject(mapped)) %ThrowTypeError(%Describe(mapped) + " is not an object");
        inner = flattenable(mapped);
        innerNext = inner.next;
      } catch (e) { close(iterator, e); }
      for (;;) {
        let innerValue, left = true;
        try { innerValue = %iteratorStep(inner, innerNext); } catch (e) { close(iterator, e); }
        if (%IsDone(innerValue)) break;
        try { yield innerValue; left = false; } finally {
          if (left) {
            try { %iteratorClose(inner); } catch (e) { close(iterator, e); }
            %iteratorClose(iterator);
          }
        }
      }
    }
  }
  // Fields: the generator, the iterator underneath, whether it has begun.
  function helper(generator, iterator) { return %NewSlots("IteratorHelper", HelperProto, generator, iterator, false); }
  %Install(IteratorProto, {
    [ITERATOR]() { return this; },
    map(mapper) {
      checkObject(this, "map");
      checkCallable(this, mapper);
      return helper(mapping(this, this.next, mapper), this);
    },
    filter(predicate) {
      checkObject(this, "filter");
      checkCallable(this, predicate);
      return helper(filtering(this, this.next, predicate), this);
    },
    take(limit) {
      checkObject(this, "take");
      const count = checkLimit(this, limit);
      return helper(taking(this, this.next, count), this);
    },
    drop(limit) {
      checkObject(this, "drop");
      const count = checkLimit(this, limit);
      return helper(dropping(this, this.next, count), this);
    },
    flatMap(mapper) {
      checkObject(this, "flatMap");
      checkCallable(this, mapper);
      return helper(flattening(this, this.next, mapper), this);
    },
    reduce(reducer, initial = undefined) {
      checkObject(this, "reduce");
      checkCallable(this, reducer);
      const next = this.next;
      let accumulator = initial, counter = 0;
      if (%ArgCount() < 2) {
        const first = %iteratorStep(this, next);
        if (%IsDone(first)) %ThrowTypeError("Reduce of a done iterator with no initial value");
        accumulator = first;
        counter = 1;
      }
      for (;; counter++) {
        const value = %iteratorStep(this, next);
        if (%IsDone(value)) return accumulator;
        try { accumulator = reducer(accumulator, value, counter); } catch (e) { close(this, e); }
      }
    },
    toArray() {
      checkObject(this, "toArray");
      const next = this.next, list = %NewArray();
      for (;;) {
        const value = %iteratorStep(this, next);
        if (%IsDone(value)) return list;
        %Append(list, value);
      }
    },
    forEach(f) {
      checkObject(this, "forEach");
      checkCallable(this, f);
      const next = this.next;
      for (let counter = 0; ; counter++) {
        const value = %iteratorStep(this, next);
        if (%IsDone(value)) return;
        try { f(value, counter); } catch (e) { close(this, e); }
      }
    },
    some(predicate) {
      checkObject(this, "some");
      checkCallable(this, predicate);
      const next = this.next;
      for (let counter = 0; ; counter++) {
        const value = %iteratorStep(this, next);
        if (%IsDone(value)) return false;
        let found;
        try { found = predicate(value, counter); } catch (e) { close(this, e); }
        if (found) { %iteratorClose(this); return true; }
      }
    },
    every(predicate) {
      checkObject(this, "every");
      checkCallable(this, predicate);
      const next = this.next;
      for (let counter = 0; ; counter++) {
        const value = %iteratorStep(this, next);
        if (%IsDone(value)) return true;
        let found;
        try { found = predicate(value, counter); } catch (e) { close(this, e); }
        if (!found) { %iteratorClose(this); return false; }
      }
    },
    find(predicate) {
      checkObject(this, "find");
      checkCallable(this, predicate);
      const next = this.next;
      for (let counter = 0; ; counter++) {
        const value = %iteratorStep(this, next);
        if (%IsDone(value)) return undefined;
        let found;
        try { found = predicate(value, counter); } catch (e) { close(this, e); }
        if (found) { %iteratorClose(this); return value; }
      }
    },
    get constructor() { return Iterator; },
    set constructor(value) { setOwn(this, "constructor", value); },
    get [TAG]() { return "Iterator"; },
    set [TAG](value) { setOwn(this, TAG, value); },
  }, "Iterator.prototype");
  %Install(Iterator, {
    from(o) {
      if (!%IsObject(o) && typeof o !== "string") %ThrowTypeError(%Describe(o) + " is not an object");
      const iterator = flattenable(o), next = iterator.next;
      if (%ordinaryHasInstance(Iterator, iterator)) return iterator;
      return %NewSlots("WrapForValidIterator", WrapProto, iterator, next);
    },
  }, "Iterator");
  %Install(HelperProto, {
    next() {
      if (!%Is("IteratorHelper", this)) %ThrowTypeError("Iterator Helper.prototype.next called on incompatible receiver " + %Describe(this));
      %SetSlot(this, 2, true);
      return %Call(generatorNext, %Slot(this, 0));
    },
    return() {
      if (!%Is("IteratorHelper", this)) %ThrowTypeError("Iterator Helper.prototype.return called on incompatible receiver " + %Describe(this));
      if (%Slot(this, 2)) return %Call(generatorReturn, %Slot(this, 0));
      %SetSlot(this, 2, true);
      %Call(generatorReturn, %Slot(this, 0));
      %iteratorClose(%Slot(this, 1));
      return { value: undefined, done: true };
    },
  }, "%IteratorHelperPrototype%");
  %Tag(HelperProto, "Iterator Helper");
  %Install(WrapProto, {
    next() {
      if (!%Is("WrapForValidIterator", this)) %ThrowTypeError("%WrapForValidIteratorPrototype%.next called on incompatible receiver " + %Describe(this));
      return %Call(%Slot(this, 1), %Slot(this, 0));
    },
    return() {
      if (!%Is("WrapForValidIterator", this)) %ThrowTypeError("%WrapForValidIteratorPrototype%.return called on incompatible receiver " + %Describe(this));
      const iterator = %Slot(this, 0), method = %getMethod(iterator, "return");
      return method === undefined ? { value: undefined, done: true } : %Call(method, iterator);
    },
  }, "%WrapForValidIteratorPrototype%");
})();
