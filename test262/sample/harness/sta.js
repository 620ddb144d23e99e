// The error of a failed assertion: not an Error, so that no test takes it for one of its own.
function Test262Error(message) {
  this.message = message;
}
Test262Error.prototype.toString = function () {
  return "Test262Error: " + this.message;
};
