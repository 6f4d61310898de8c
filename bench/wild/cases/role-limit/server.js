// Newsletter sign-ups: a database plan that allows few connections.
const express = require('express');
const { Pool } = require('pg');

const pool = new Pool({
  connectionString: process.env.DATABASE_URL,
  max: Number(process.env.PG_MAX || 40),
});
pool.on('error', () => {});
const app = express();
app.get('/', async (req, res) => {
  try {
    const { rows } = await pool.query('select count(*)::int as n from pg_sleep(0.02)');
    res.json(rows[0]);
  } catch (error) {
    res.status(500).json({ error: error.message });
  }
});
app.listen(process.env.PORT || 3000, '127.0.0.1');
