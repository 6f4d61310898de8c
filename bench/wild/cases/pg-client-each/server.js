// One query for each page, as in many a first tutorial.
const express = require('express');
const { Client, Pool } = require('pg');

const connectionString = process.env.DATABASE_URL;
const pool = process.env.PG_POOL ? new Pool({ connectionString, max: Number(process.env.PG_POOL) }) : null;

async function query(text) {
  if (pool) return pool.query(text);
  const client = new Client({ connectionString });
  await client.connect();
  try {
    return await client.query(text);
  } finally {
    await client.end();
  }
}

const app = express();
app.get('/', (req, res, next) => {
  query('select 11 as rows').then(({ rows }) => res.json(rows[0])).catch(next);
});
app.listen(process.env.PORT || 3000, '127.0.0.1');
