// Lines through patterns with groups, and a replacement.
const lines = [];
for (let i = 0; i < 10000; i++) lines.push('2024-0' + (i % 9 + 1) + '-11 [worker-' + (i % 13) + '] key' + i + '=' + (i * 7) + '; took ' + (i % 250) + 'ms');
const pattern = /^(\d{4})-(\d\d)-(\d\d) \[(\w+-\d+)\] (\w+)=(\d+);\s+took (\d+)ms$/;
let sum = 0;
for (let i = 0; i < lines.length; i++) {
  const match = pattern.exec(lines[i]);
  if (match !== null) sum += match[6].length + match[7].length + match[4].length;
  if (/error|warn(ing)?|took 1\d\d/.test(lines[i])) sum += 1;
  sum += lines[i].replace(/\d+/g, '#').length;
}
const result = sum;
