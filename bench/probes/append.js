let text = '';
for (let i = 0; i < n; i++) text += 'ab';
const result = text.length;
