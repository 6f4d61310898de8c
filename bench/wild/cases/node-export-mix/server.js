// A ledger: the balance, and all bookings of the year for the accountant.
const http = require('http');

const shared = process.env.ONE_FORMATTER === '1'
  ? new Intl.NumberFormat('de-DE', { style: 'currency', currency: 'EUR' })
  : null;

function euros(cents) {
  const formatter = shared || new Intl.NumberFormat('de-DE', { style: 'currency', currency: 'EUR' });
  return formatter.format(cents / 100);
}

const bookings = [];
for (let n = 0; n < 6000; n += 1) bookings.push({ n, day: 1 + (n % 365), cents: (n * 7919) % 250000 });

http.createServer((req, res) => {
  res.setHeader('Content-Type', 'application/json');
  if (req.url === '/export') {
    const rows = bookings.map(({ n, day, cents }) => ({ n, day, amount: euros(cents) }));
    res.end(JSON.stringify(rows));
    return;
  }
  res.end(JSON.stringify({ balance: bookings[bookings.length - 1].cents / 100 }));
}).listen(Number(process.env.PORT || 3000), process.env.HOST || '127.0.0.1');
