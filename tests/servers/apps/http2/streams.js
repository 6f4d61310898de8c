// HTTP/2 without TLS. `/alone`: each reply after 200 ms. `/beside`: the same, but one stream of each connection is always slow:
// its body comes in pieces, over two seconds. Counts the slow ones, and how long each quick one was kept here, in ms.
const QUICK_MS = 200, SLOW_MS = 2000, PIECE_MS = 10;
let slow = 0, kept = [];

function trickle(stream, done) {
  const begun = performance.now();
  const timer = setInterval(() => {
    if (stream.destroyed || performance.now() - begun >= SLOW_MS) {
      clearInterval(timer);
      stream.end();
      done();
    } else {
      stream.write("x".repeat(1000));
    }
  }, PIECE_MS);
}

const server = require("http2").createServer();
server.on("session", (session) => { session.isSlow = false; });
server.on("stream", (stream, headers) => {
  const begun = performance.now(), session = stream.session;
  stream.on("error", () => {});
  if (headers[":path"] === "/beside" && !session.isSlow) {
    session.isSlow = true;
    slow += 1;
    stream.respond();
    trickle(stream, () => { session.isSlow = false; });
    return;
  }
  setTimeout(() => {
    stream.respond();
    stream.end("hello");
    kept.push(performance.now() - begun);
  }, QUICK_MS);
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.on("data", () => {
  console.log(JSON.stringify({ slow, kept }));
  slow = 0;
  kept = [];
});
