const object = {};
let sum = 0;
for (let i = 0; i < n; i++) object['key' + i] = i;
for (const key in object) sum += object[key];
for (let i = 0; i < n; i += 2) delete object['key' + i];
const result = sum + Object.keys(object).length;
