const text = 'abcd\u20acfgh\u{1f600}'.repeat(n / 10);
let sum = 0;
for (let i = 0; i < text.length; i++) if (text[i] === '\u20ac') sum += text.charCodeAt(i);
const result = sum;
