// Array: sorting, and the text of an array.
(function () {
  const ArrayPrototype = %Proto("Array"), objectToString = %Proto("Object").toString;

  // By a comparator, in place. The list is an array of the prelude's own without holes; the sort is a record that only it
  // and the natives know, so a comparator may suspend, throw, or change the guest's array.
  function mergeSort(list, compare) {
    %SortRun(%NewSort(list), compare);
    return list;
  }
  %Share("mergeSort", mergeSort);
  // SortIndexedProperties on a list: what compares as undefined comes last.
  function sortList(list, compare) {
    if (compare === undefined) {
      const texts = %NewArray();
      for (let i = 0; i < list.length; i++) {
        const v = list[i];
        %Append(texts, v === undefined ? undefined : `${v}`);
      }
      return %SortByText(list, texts);
    }
    const defined = %NewArray();
    let undefineds = 0;
    for (let i = 0; i < list.length; i++) if (list[i] === undefined) undefineds++; else %Append(defined, list[i]);
    const sorted = mergeSort(defined, compare);
    for (; undefineds > 0; undefineds--) %Append(sorted, undefined);
    return sorted;
  }

  // The arrays whose text is being made: an array inside itself is empty, as it is in other engines.
  const joining = [];
  function join(o, n, separator, locale) {
    for (let i = 0; i < joining.length; i++) if (joining[i] === o) return "";
    %Append(joining, o);
    try {
      let text = "";
      for (let k = 0; k < n; k++) {
        if (k > 0) text += separator;
        const v = o[k];
        if (v !== undefined && v !== null) text += locale ? `${v.toLocaleString()}` : `${v}`;
      }
      return text;
    } finally {
      %SetLength(joining, joining.length - 1);
    }
  }
  %Share("joinElements", join);

  %Install(ArrayPrototype, {
    join(separator) {
      const o = %ToObject(this), n = %lengthOf(o);
      return join(o, n, separator === undefined ? "," : `${separator}`, false);
    },
    sort(compare) {
      if (compare !== undefined && !%IsCallable(compare)) {
        %ThrowTypeError("The comparison function must be either a function or undefined");
      }
      const o = %ToObject(this), n = %lengthOf(o);
      const plain = compare === undefined ? undefined : %PlainList(o);
      if (plain !== undefined) {
        mergeSort(plain, compare);
        if (!%PutAll(o, plain)) for (let k = 0; k < n; k++) o[k] = plain[k];
        return o;
      }
      const list = %NewArray();
      for (let k = 0; k < n; k++) if (k in o) %Append(list, o[k]);
      const sorted = sortList(list, compare), m = sorted.length;
      for (let k = 0; k < m; k++) o[k] = sorted[k];
      for (let k = m; k < n; k++) if (k in o) delete o[k];
      return o;
    },
    toLocaleString() {
      const o = %ToObject(this), n = %lengthOf(o);
      return join(o, n, ",", true);
    },
    toSorted(compare) {
      if (compare !== undefined && !%IsCallable(compare)) {
        %ThrowTypeError("The comparison function must be either a function or undefined");
      }
      const o = %ToObject(this), n = %lengthOf(o);
      const plain = compare === undefined ? undefined : %PlainList(o);
      if (plain !== undefined) return mergeSort(plain, compare);
      const list = %arrayCreate(undefined, n);
      for (let k = 0; k < n; k++) %Append(list, o[k]);
      return sortList(list, compare);
    },
    toString() {
      const o = %ToObject(this), join = o.join;
      if (%IsCallable(join)) return %Call(join, o);
      return %Call(objectToString, o);
    },
  }, "Array.prototype");
})();
