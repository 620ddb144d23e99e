let text = '';
let sum = 0;
for (let i = 0; i < n; i++) {
  text += 'xy';
  sum += text.charCodeAt(i);
}
const result = sum;
