const list = [];
for (let i = 0; i < n; i++) list.push('word' + i);
const parts = list.join(' ').split(' ');
const result = parts.length + parts[n - 1].length;
