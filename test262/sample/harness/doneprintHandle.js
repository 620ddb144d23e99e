// How an asynchronous test says that it has ended.
function $DONE(error) {
  if (error === undefined) print("Test262:AsyncTestComplete");
  else print("Test262:AsyncTestFailure:" + (error.name || "Test262Error") + ": " + error.message);
}
