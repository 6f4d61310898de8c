// Departures of a station, in the traveller's language.
const http = require("node:http");
const { day, clock } = require("./format");

const FIRST = Date.UTC(2025, 2, 3, 5, 10);
const trains = Array.from({ length: 40 }, (_, n) => ({
  number: 1200 + n,
  leaves: new Date(FIRST + n * 17 * 60_000),
  arrives: new Date(FIRST + n * 17 * 60_000 + 95 * 60_000),
  to: n % 2 ? "Wien" : "Paris",
}));

function board(locale, timeZone) {
  const rows = trains.map((train) => ({
    number: train.number,
    to: train.to,
    day: day(train.leaves, locale, timeZone),
    leaves: clock(train.leaves, locale, timeZone),
    arrives: clock(train.arrives, locale, timeZone),
  }));
  return JSON.stringify(rows);
}

const server = http.createServer((request, response) => {
  if (request.url.startsWith("/health")) {
    response.end("ok");
    return;
  }
  const locale = (request.headers["accept-language"] || "de-DE").split(",")[0];
  response.setHeader("Content-Type", "application/json");
  response.end(board(locale, "Europe/Berlin"));
});

server.listen(process.env.PORT || 3000, "127.0.0.1");
