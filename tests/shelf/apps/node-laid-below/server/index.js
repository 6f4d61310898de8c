const { createServer } = require('node:http');
const { parseArgs } = require('node:util');

const { values } = parseArgs({ options: { port: { type: 'string' } } });
createServer((request, response) => response.end('below\n')).listen(Number(values.port));
