// Events of a bot: a request waits for the next one, 1.5 s at most.
const http = require('http');
const { EventEmitter, once } = require('events');

const bot = new EventEmitter();
bot.setMaxListeners(0);

http.createServer(async (req, res) => {
  let events = [];
  try {
    events = await once(bot, 'click', { signal: AbortSignal.timeout(1500) });
  } catch {
    // nothing happened
  }
  res.setHeader('Content-Type', 'application/json');
  res.end(JSON.stringify({ events }));
}).listen(process.env.PORT || 3000, '127.0.0.1');
