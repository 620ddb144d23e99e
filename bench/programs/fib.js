// Calls: fib(27) makes 832,039 of them.
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
const result = fib(27);
