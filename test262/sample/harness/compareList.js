// Lists are compared as text: they hold numbers and strings only.
assert.sameList = function (actual, expected, message) {
  assert.sameValue(text(actual), text(expected), message);
};

function text(list) {
  let out = "";
  for (let i = 0; i < list.length; i++) out += (i ? "," : "") + list[i];
  return "[" + out + "]";
}
