// A quote for an insurance, from the insurer's service; the SDK brings an agent of its own.
'use strict';
const http = require('node:http');

class InsurerSdk {
  constructor(url, options = {}) {
    this.url = url;
    this.agent = new http.Agent({ keepAlive: true, maxSockets: options.maxSockets ?? 3, scheduling: 'fifo' });
  }

  quote(policy) {
    const body = JSON.stringify(policy);
    return new Promise((resolve, reject) => {
      const call = http.request(this.url, {
        method: 'POST',
        agent: this.agent,
        headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
      }, (reply) => {
        const parts = [];
        reply.on('data', (part) => parts.push(part));
        reply.on('end', () => resolve(Buffer.concat(parts).length));
      });
      call.on('error', reject);
      call.end(body);
    });
  }
}

const sdk = new InsurerSdk(process.env.INSURER_URL || 'http://127.0.0.1:9520/', {
  maxSockets: process.env.SDK_SOCKETS ? Number(process.env.SDK_SOCKETS) : undefined,
});

http.createServer(async (request, response) => {
  try {
    const bytes = await sdk.quote({ kind: 'bicycle', value: 1800, town: 'Utrecht' });
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ premium: 1240, bytes }));
  } catch (error) {
    response.statusCode = 502;
    response.end(String(error));
  }
}).listen(Number(process.env.PORT), '127.0.0.1');
