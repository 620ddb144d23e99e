let text = '';
for (let i = 0; i < n; i++) text = 'ab' + text;
const result = text.length + text.charCodeAt(n);
