// About a megabyte of JSON to values, three times.
let text = '[';
for (let i = 0; i < 12000; i++) {
  if (i > 0) text += ',';
  text += '{"id":' + i + ',"name":"row number ' + i + '","score":' + (i * 0.37) + ',"tags":["a","b\\n"],"ok":true,"none":null}';
}
text += ']';
let sum = text.length;
for (let round = 0; round < 3; round++) {
  const rows = JSON.parse(text);
  for (let i = 0; i < rows.length; i += 101) sum += rows[i].id + rows[i].name.length + rows[i].tags.length;
}
const result = sum;
