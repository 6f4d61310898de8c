// Checkout: looks up the cart, asks the payment provider, books the order.
const express = require('express');
const http = require('http');
const { Pool } = require('pg');

const pool = new Pool({ connectionString: process.env.DATABASE_URL });
const agent = new http.Agent({ keepAlive: true });
const payments = process.env.PAYMENTS_URL || 'http://127.0.0.1:9103/';
const releaseEarly = process.env.RELEASE_EARLY === '1';

function authorise() {
  return new Promise((resolve, reject) => {
    http.get(payments, { agent }, (res) => {
      res.resume();
      res.on('end', () => resolve(res.statusCode));
    }).on('error', reject);
  });
}

const app = express();
app.get('/', async (req, res, next) => {
  let client = await pool.connect();
  try {
    await client.query('select 1 as cart');
    if (releaseEarly) { client.release(); client = null; }
    const status = await authorise();
    if (releaseEarly) client = await pool.connect();
    await client.query('select 2 as booking');
    res.json({ paid: status === 200 });
  } catch (error) {
    next(error);
  } finally {
    if (client) client.release();
  }
});
app.listen(process.env.PORT || 3000, '127.0.0.1');
