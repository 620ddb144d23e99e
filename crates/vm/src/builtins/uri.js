// The functions about URIs: what the natives leave over is objects.
(function () {
  %Install(%Global(), {
    decodeURI(encodedURI) { return %DecodeURI(`${encodedURI}`); },
    decodeURIComponent(encodedURIComponent) { return %DecodeURIComponent(`${encodedURIComponent}`); },
    encodeURI(uri) { return %EncodeURI(`${uri}`); },
    encodeURIComponent(uriComponent) { return %EncodeURIComponent(`${uriComponent}`); },
    escape(string) { return %Escape(`${string}`); },
    unescape(string) { return %Unescape(`${string}`); },
  }, "global");
})();
