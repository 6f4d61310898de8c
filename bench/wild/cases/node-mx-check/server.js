// Sign-up: does the domain of an address take mail?
const http = require('http');
const { Resolver } = require('dns').promises;

const nameServer = process.env.NAME_SERVER || '127.0.0.1:9415';
const keep = process.env.KEEP_ANSWERS === '1';
const known = new Map();
let signups = 0;

async function takesMail(domain) {
  if (known.has(domain)) return known.get(domain);
  const resolver = new Resolver({ timeout: 5000, tries: 1 }); // of its own, so that it can be cancelled
  resolver.setServers([nameServer]);
  const hosts = await resolver.resolveMx(domain);
  const takes = hosts.length > 0;
  if (keep) known.set(domain, takes);
  return takes;
}

http.createServer(async (req, res) => {
  signups += 1;
  try {
    const takes = await takesMail(`company-${signups % 60}.example`);
    res.writeHead(200, { 'Content-Type': 'application/json' });
    res.end(JSON.stringify({ takes }));
  } catch (error) {
    res.writeHead(503);
    res.end(`${error.code}\n`);
  }
}).listen(Number(process.env.PORT || 3000), process.env.HOST || '127.0.0.1');
