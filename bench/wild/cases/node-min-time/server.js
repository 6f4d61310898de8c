// A contact from the CRM; calls go through a schedule, so that the CRM's quota is kept.
'use strict';
const http = require('node:http');

const CRM = process.env.CRM_URL || 'http://127.0.0.1:9519/';
const MIN_TIME = Number(process.env.MIN_TIME_MS || 40); // between the starts of two calls
const agent = new http.Agent({ keepAlive: true });

let nextStart = 0;
function scheduled(task) {
  const now = Date.now();
  const start = Math.max(now, nextStart);
  nextStart = start + MIN_TIME;
  return new Promise((resolve, reject) => {
    setTimeout(() => task().then(resolve, reject), start - now);
  });
}

function get(url) {
  return new Promise((resolve, reject) => {
    http.get(url, { agent }, (reply) => {
      let body = '';
      reply.setEncoding('utf8');
      reply.on('data', (part) => { body += part; });
      reply.on('end', () => resolve(body));
    }).on('error', reject);
  });
}

http.createServer(async (request, response) => {
  try {
    const body = await scheduled(() => get(CRM));
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ contact: 'C-1029', bytes: body.length }));
  } catch (error) {
    response.statusCode = 502;
    response.end(String(error));
  }
}).listen(Number(process.env.PORT), '127.0.0.1');
