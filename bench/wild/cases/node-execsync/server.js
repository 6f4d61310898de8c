// A dashboard's status page: asks a tool for the state of the machine.
const express = require('express');
const path = require('path');
const { execFile, execFileSync } = require('child_process');

const tool = path.join(__dirname, 'tools', 'state.sh');
const ttl = Number(process.env.STATE_TTL_MS || 0);
let cached = null;
let pending = null;

function refreshed() {
  if (cached && Date.now() - cached.at < ttl) return Promise.resolve(cached.text);
  pending = pending || new Promise((resolve, reject) => {
    execFile(tool, (error, stdout) => {
      pending = null;
      if (error) return reject(error);
      cached = { at: Date.now(), text: stdout };
      return resolve(stdout);
    });
  });
  return pending;
}

const app = express();
app.get('/', (req, res, next) => {
  if (ttl > 0) {
    refreshed().then((text) => res.type('text/plain').send(text)).catch(next);
  } else {
    res.type('text/plain').send(execFileSync(tool).toString());
  }
});
app.listen(process.env.PORT || 3000, '127.0.0.1');
