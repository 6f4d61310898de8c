// HTTP/2 without TLS: resets streams and leaves connections at random, a thousand times in all, and counts what it did.
//
// A third of these resets are REFUSED_STREAM: it did not look at the request. The other ones come before the reply or within it.
// A GOAWAY, with any code, names as its last stream one from the highest that was answered on: those above it are not looked at.
const MOST = 1000, BODY = "x".repeat(500);
const REFUSED = 7, CODES = [1, 2, 5, 8, 9, 11, 13], GOODBYES = [0, 0, 2, 11];
const counts = { requests: 0, answered: 0, reset: 0, refused: 0, goaways: 0, left: 0, lost: 0, connections: 0 };
let state = Number(process.argv[2]), events = 0;

// Park and Miller, Communications of the ACM 31 (1988): the same numbers everywhere.
function random(below) {
  state = (state * 48271) % 2147483647;
  return state % below;
}

function answer(stream) {
  stream.respond();
  stream.end(BODY);
  counts.answered += 1;
  stream.session.answered = Math.max(stream.session.answered, stream.id);
}

function reset(stream, session) {
  events += 1;
  if (random(3) === 0) {
    counts.refused += 1;
    return stream.close(REFUSED);
  }
  counts.reset += 1;
  if (random(2) === 0) {
    stream.respond();
    stream.write(BODY.slice(1));
    session.answered = Math.max(session.answered, stream.id);
  }
  stream.close(CODES[random(CODES.length)]);
}

function leave(session) {
  events += 1;
  counts.goaways += 1;
  const open = session.open.filter((one) => one.id > session.answered);
  session.last = open.length ? open[random(open.length)].id : session.answered;
  open.forEach((one) => turnAway(one, session));
  session.goaway(GOODBYES[random(GOODBYES.length)], session.last);
}

function turnAway(stream, session) {
  if (stream.id > session.last) {
    stream.isLeft = true;
    counts.left += 1;
  }
}

function act(stream, session) {
  session.open = session.open.filter((one) => one !== stream);
  if (stream.isLeft) {
    return;
  }
  if (stream.destroyed) {
    counts.lost += 1;
    return;
  }
  const chance = events < MOST ? random(16) : 15;
  if (chance === 0) {
    reset(stream, session);
    return;
  }
  answer(stream);
  if (chance === 1 && session.last === Infinity) {
    leave(session);
  }
}

const server = require("http2").createServer();
server.on("session", (session) => {
  counts.connections += 1;
  session.open = [];
  session.answered = 0;
  session.last = Infinity;
  session.on("error", () => {});
});
server.on("stream", (stream) => {
  const session = stream.session;
  counts.requests += 1;
  stream.on("error", () => {});
  session.open.push(stream);
  // It came before the GOAWAY had gone.
  turnAway(stream, session);
  setTimeout(() => act(stream, session), random(4));
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.on("data", () => console.log(JSON.stringify({ ...counts, events })));
