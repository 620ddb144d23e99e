// A long text from short pieces, read at the end.
let text = '';
for (let i = 0; i < 300000; i++) text += 'item' + i + ',';
const result = text.length + text.charCodeAt(1000000) + text.charCodeAt(text.length - 2);
