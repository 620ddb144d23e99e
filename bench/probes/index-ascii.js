const text = 'abcdefghij'.repeat(n / 10);
let sum = 0;
for (let i = 0; i < text.length; i++) if (text[i] === 'c') sum += text.charCodeAt(i);
const result = sum;
