// Array: sorting, and the text of an array.
(function () {
  const ArrayPrototype = %Proto("Array"), objectToString = %Proto("Object").toString;

  // A stable merge sort, bottom up: a comparator may suspend, throw, or change the array, which is why the list is a copy. The
  // list is an array of the prelude's own without holes.
  function mergeSort(list, compare) {
    const n = list.length;
    const RUN = 8;
    for (let start = 0; start < n; start += RUN) {
      const end = start + RUN < n ? start + RUN : n;
      for (let i = start + 1; i < end; i++) {
        const v = list[i];
        let j = i - 1;
        while (j >= start) {
          const u = list[j];
          const order = %Call(compare, undefined, u, v);
          if (!((typeof order === "number" ? order : +order) > 0)) break;
          list[j + 1] = u;
          j--;
        }
        list[j + 1] = v;
      }
    }
    if (n <= RUN) return list;
    let from = list, to = %CopyArray(list);
    for (let width = RUN; width < n; width *= 2) {
      for (let start = 0; start < n; start += 2 * width) {
        const middle = start + width < n ? start + width : n;
        const end = middle + width < n ? middle + width : n;
        let i = start, j = middle, k = start;
        if (j < end) {
          // Runs that are in order already need one question.
          const order = %Call(compare, undefined, from[j - 1], from[j]);
          if ((typeof order === "number" ? order : +order) > 0) {
            let u = from[i], v = from[j];
            for (;;) {
              const order = %Call(compare, undefined, u, v);
              if ((typeof order === "number" ? order : +order) > 0) {
                to[k++] = v;
                if (++j >= end) break;
                v = from[j];
              } else {
                to[k++] = u;
                if (++i >= middle) break;
                u = from[i];
              }
            }
          }
        }
        while (i < middle) to[k++] = from[i++];
        while (j < end) to[k++] = from[j++];
      }
      const swap = from;
      from = to;
      to = swap;
    }
    return from;
  }
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
  %Share("mergeSort", mergeSort);

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
      const o = %ToObject(this), n = %lengthOf(o), list = %arrayCreate(undefined, n);
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
