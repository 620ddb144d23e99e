// The order of a list by a comparator that the guest wrote: timsort, so that the comparator is asked the same questions in the
// same order as in the engine that most scripts are tried in, and few of them. The list is an array of the prelude's own
// without holes; everything about the sort is in registers and such arrays, so a comparator may suspend, throw, or change
// the guest's array.
(function () {
  const GALLOP = 7;

  // A run at the beginning of list[low..high], made ascending: its length.
  function countRun(list, low, high, compare) {
    let k = low + 1;
    if (k === high) return 1;
    let previous = list[k];
    let order = %Call(compare, undefined, previous, list[low]);
    const descending = (typeof order === "number" ? order : +order) < 0;
    for (k++; k < high; k++) {
      const v = list[k];
      order = %Call(compare, undefined, v, previous);
      if ((typeof order === "number" ? order : +order) < 0 !== descending) break;
      previous = v;
    }
    if (descending) %ReverseRange(list, low, k);
    return k - low;
  }
  // Sorts list[low..high], of which list[low..start] is sorted.
  function insertBinary(list, low, start, high, compare) {
    for (; start < high; start++) {
      const pivot = list[start];
      let left = low, right = start;
      while (left < right) {
        const middle = left + right >> 1;
        const order = %Call(compare, undefined, pivot, list[middle]);
        if ((typeof order === "number" ? order : +order) < 0) right = middle; else left = middle + 1;
      }
      %CopyRange(list, left, list, left + 1, start - left);
      list[left] = pivot;
    }
  }
  // Where the key belongs in list[base..base + n], left of what is equal to it. The search begins at the hint.
  function gallopLeft(list, key, base, n, hint, compare) {
    let last = 0, offset = 1, order = %Call(compare, undefined, list[base + hint], key);
    if ((typeof order === "number" ? order : +order) < 0) {
      const most = n - hint;
      while (offset < most) {
        order = %Call(compare, undefined, list[base + hint + offset], key);
        if (!((typeof order === "number" ? order : +order) < 0)) break;
        last = offset;
        offset = 2 * offset + 1;
      }
      if (offset > most) offset = most;
      last += hint;
      offset += hint;
    } else {
      const most = hint + 1;
      while (offset < most) {
        order = %Call(compare, undefined, list[base + hint - offset], key);
        if ((typeof order === "number" ? order : +order) < 0) break;
        last = offset;
        offset = 2 * offset + 1;
      }
      if (offset > most) offset = most;
      const swap = last;
      last = hint - offset;
      offset = hint - swap;
    }
    last++;
    while (last < offset) {
      const middle = last + (offset - last >> 1);
      order = %Call(compare, undefined, list[base + middle], key);
      if ((typeof order === "number" ? order : +order) < 0) last = middle + 1; else offset = middle;
    }
    return offset;
  }
  // The same, right of what is equal to the key.
  function gallopRight(list, key, base, n, hint, compare) {
    let last = 0, offset = 1, order = %Call(compare, undefined, key, list[base + hint]);
    if ((typeof order === "number" ? order : +order) < 0) {
      const most = hint + 1;
      while (offset < most) {
        order = %Call(compare, undefined, key, list[base + hint - offset]);
        if (!((typeof order === "number" ? order : +order) < 0)) break;
        last = offset;
        offset = 2 * offset + 1;
      }
      if (offset > most) offset = most;
      const swap = last;
      last = hint - offset;
      offset = hint - swap;
    } else {
      const most = n - hint;
      while (offset < most) {
        order = %Call(compare, undefined, key, list[base + hint + offset]);
        if ((typeof order === "number" ? order : +order) < 0) break;
        last = offset;
        offset = 2 * offset + 1;
      }
      if (offset > most) offset = most;
      last += hint;
      offset += hint;
    }
    last++;
    while (last < offset) {
      const middle = last + (offset - last >> 1);
      order = %Call(compare, undefined, key, list[base + middle]);
      if ((typeof order === "number" ? order : +order) < 0) offset = middle; else last = middle + 1;
    }
    return offset;
  }

  // Merges list[a..a + n] and list[b..b + m], which are neighbours, from the front; the first is the shorter one. Answers how
  // many wins in a row are worth galloping from now on. What is left when the loop ends: 1 the rest of the second and then
  // the last of the first, 2 the rest of the first. Nothing is read beyond the lists: a guest's prototype could answer.
  function mergeLow(list, temp, a, n, b, m, gallop, compare) {
    %CopyRange(list, a, temp, 0, n);
    let to = a, i = 0, j = b, rest = 0;
    list[to++] = list[j++];
    if (--m === 0) rest = 2; else if (n === 1) rest = 1;
    while (rest === 0) {
      let winsA = 0, winsB = 0, u = temp[i], v = list[j];
      for (;;) {
        const order = %Call(compare, undefined, v, u);
        if ((typeof order === "number" ? order : +order) < 0) {
          list[to++] = v;
          j++;
          winsB++;
          winsA = 0;
          if (--m === 0) { rest = 2; break; }
          if (winsB >= gallop) break;
          v = list[j];
        } else {
          list[to++] = u;
          u = temp[++i];
          winsA++;
          winsB = 0;
          if (--n === 1) { rest = 1; break; }
          if (winsA >= gallop) break;
        }
      }
      if (rest !== 0) break;
      gallop++;
      do {
        gallop = gallop > 2 ? gallop - 1 : 1;
        winsA = gallopRight(temp, list[j], i, n, 0, compare);
        if (winsA > 0) {
          %CopyRange(temp, i, list, to, winsA);
          to += winsA;
          i += winsA;
          n -= winsA;
          if (n === 1) { rest = 1; break; }
          if (n === 0) { rest = 2; break; }
        }
        list[to++] = list[j++];
        if (--m === 0) { rest = 2; break; }
        winsB = gallopLeft(list, temp[i], j, m, 0, compare);
        if (winsB > 0) {
          %CopyRange(list, j, list, to, winsB);
          to += winsB;
          j += winsB;
          m -= winsB;
          if (m === 0) { rest = 2; break; }
        }
        list[to++] = temp[i++];
        if (--n === 1) { rest = 1; break; }
      } while (winsA >= GALLOP || winsB >= GALLOP);
      if (rest === 0) gallop++;
    }
    if (rest === 2) %CopyRange(temp, i, list, to, n);
    else {
      %CopyRange(list, j, list, to, m);
      list[to + m] = temp[i];
    }
    return gallop;
  }
  // The same from the back; the second is the shorter one.
  function mergeHigh(list, temp, a, n, b, m, gallop, compare) {
    %CopyRange(list, b, temp, 0, m);
    let to = b + m - 1, i = a + n - 1, j = m - 1, rest = 0;
    list[to--] = list[i--];
    if (--n === 0) rest = 2; else if (m === 1) rest = 1;
    while (rest === 0) {
      let winsA = 0, winsB = 0, u = list[i], v = temp[j];
      for (;;) {
        const order = %Call(compare, undefined, v, u);
        if ((typeof order === "number" ? order : +order) < 0) {
          list[to--] = u;
          i--;
          winsA++;
          winsB = 0;
          if (--n === 0) { rest = 2; break; }
          if (winsA >= gallop) break;
          u = list[i];
        } else {
          list[to--] = v;
          v = temp[--j];
          winsB++;
          winsA = 0;
          if (--m === 1) { rest = 1; break; }
          if (winsB >= gallop) break;
        }
      }
      if (rest !== 0) break;
      gallop++;
      do {
        gallop = gallop > 2 ? gallop - 1 : 1;
        winsA = n - gallopRight(list, temp[j], a, n, n - 1, compare);
        if (winsA > 0) {
          to -= winsA;
          i -= winsA;
          %CopyRange(list, i + 1, list, to + 1, winsA);
          n -= winsA;
          if (n === 0) { rest = 2; break; }
        }
        list[to--] = temp[j--];
        if (--m === 1) { rest = 1; break; }
        winsB = m - gallopLeft(temp, list[i], 0, m, m - 1, compare);
        if (winsB > 0) {
          to -= winsB;
          j -= winsB;
          %CopyRange(temp, j + 1, list, to + 1, winsB);
          m -= winsB;
          if (m === 1) { rest = 1; break; }
          if (m === 0) { rest = 2; break; }
        }
        list[to--] = list[i--];
        if (--n === 0) { rest = 2; break; }
      } while (winsA >= GALLOP || winsB >= GALLOP);
      if (rest === 0) gallop++;
    }
    if (rest === 2) %CopyRange(temp, 0, list, to - (m - 1), m);
    else {
      to -= n;
      i -= n;
      %CopyRange(list, i + 1, list, to + 1, n);
      list[to] = temp[j];
    }
    return gallop;
  }

  // The runs that wait: where each begins and how long it is.
  function mergeAt(list, temp, starts, lengths, at, gallop, compare) {
    let a = starts[at], n = lengths[at];
    const b = starts[at + 1], all = n + lengths[at + 1];
    let m = lengths[at + 1];
    lengths[at] = all;
    if (at === lengths.length - 3) {
      starts[at + 1] = starts[at + 2];
      lengths[at + 1] = lengths[at + 2];
    }
    %SetLength(starts, starts.length - 1);
    %SetLength(lengths, lengths.length - 1);
    const skip = gallopRight(list, list[b], a, n, 0, compare);
    a += skip;
    n -= skip;
    if (n === 0) return gallop;
    m = gallopLeft(list, list[a + n - 1], b, m, m - 1, compare);
    if (m === 0) return gallop;
    return n <= m
      ? mergeLow(list, temp, a, n, b, m, gallop, compare)
      : mergeHigh(list, temp, a, n, b, m, gallop, compare);
  }
  // Whether the run at n is shorter than those before it, as it should be.
  function balanced(lengths, n) { return n < 2 || lengths[n - 2] > lengths[n - 1] + lengths[n]; }

  function mergeSort(list, compare) {
    const n = list.length;
    if (n < 2) return list;
    let shortest = n, odd = 0;
    while (shortest >= 64) {
      odd |= shortest & 1;
      shortest >>= 1;
    }
    shortest += odd;
    const starts = %NewArray(), lengths = %NewArray();
    // As long as the shorter of two runs can be.
    const temp = n > shortest ? %CopyArray(list) : list;
    let low = 0, left = n, gallop = GALLOP;
    while (left > 0) {
      let run = countRun(list, low, low + left, compare);
      if (run < shortest) {
        const forced = shortest < left ? shortest : left;
        insertBinary(list, low, low + run, low + forced, compare);
        run = forced;
      }
      %Append(starts, low);
      %Append(lengths, run);
      while (lengths.length > 1) {
        let at = lengths.length - 2;
        if (!balanced(lengths, at + 1) || !balanced(lengths, at)) {
          if (lengths[at - 1] < lengths[at + 1]) at--;
        } else if (lengths[at] > lengths[at + 1]) break;
        gallop = mergeAt(list, temp, starts, lengths, at, gallop, compare);
      }
      low += run;
      left -= run;
    }
    while (lengths.length > 1) {
      let at = lengths.length - 2;
      if (at > 0 && lengths[at - 1] < lengths[at + 1]) at--;
      gallop = mergeAt(list, temp, starts, lengths, at, gallop, compare);
    }
    return list;
  }
  %Share("mergeSort", mergeSort);
})();
